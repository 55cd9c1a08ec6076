"""Handlers of one visit: check, fetch, extract, enqueue links (steps 3, 4, 5 and 7).

They do not store pages. Their results go into the finishing transaction, where `VisitStore.store`
writes them together with the end of the task.
"""

import asyncio
import functools
import hashlib
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import structs

from trapline.db.pool import Database
from trapline.errors import OUTCOMES, Category, ExitCode, VisitFailed
from trapline.extract.soft_404 import is_soft_404
from trapline.fetch import Fetcher
from trapline.fetch.browser.fetcher import BrowserFetcher
from trapline.frontier.canonical_url import origin_of, split_url
from trapline.frontier.politeness import DEFAULT_IN_FLIGHT, HostAnswer, HostPace, gap_of, pace_after
from trapline.frontier.recrawl import is_due
from trapline.frontier.scope import ScopeDecision
from trapline.frontier.sitemaps import (
    SitemapReader,
)
from trapline.model import (
    APPROVED,
    Approval,
    Approve,
    Conditional,
    Document,
    Fetched,
    FetchLimits,
    FetchRequest,
    Link,
    SiteId,
)
from trapline.pipeline import document_formats
from trapline.pipeline.crawl import change_tracking, job_log_messages, link_tasks
from trapline.pipeline.crawl.change_detection import compare_versions
from trapline.pipeline.crawl.change_tracking import GIT_DIFF, JSON
from trapline.pipeline.crawl.extraction_slices import SlicedExtractor
from trapline.pipeline.crawl.job_context import JobContext, JobContexts, LinkFollowing
from trapline.pipeline.crawl.page_fetcher import PageFetcher
from trapline.pipeline.crawl.page_lookup import PageLookup
from trapline.pipeline.crawl.robots_cache import OriginRobots, RobotsCache, check_robots
from trapline.pipeline.crawl.visit_result import LoggedResult, PageVisit, detail, join_traces
from trapline.pipeline.kinds import Kickoff, PageTask, SitemapTask
from trapline.pipeline.llm import Answers, LanguageModel
from trapline.pipeline.options import PageOptions, Tracking
from trapline.pipeline.sql import page_lookup as queries
from trapline.pipeline.sql.page_lookup import KnownPagesRow
from trapline.pipeline.submit import host_gate
from trapline.queue import gates, tasks
from trapline.queue.finish import TaskResult
from trapline.queue.gate_release import GateRelease
from trapline.queue.gates import GateChange
from trapline.queue.tasks import NewTask, Task, Unique
from trapline.settings import Settings
from trapline.store.content_hash import content_hash, without_nulls

_MAX_HOSTS: Final = 10_000
_UNKNOWN_HOST: Final = HostPace()
_LARGE_DIFF: Final = 200_000
_FEW_SLOTS: Final = 8
_MAX_REFRESHES: Final = 3


@dataclass(slots=True)
class VisitHandlers:
    """The task handlers of jobs that visit pages."""

    database: Database
    settings: Settings
    fetcher: Fetcher
    model: LanguageModel | None = None
    # Lets the host get its next request while this page is still being stored.
    gate_release: GateRelease | None = None
    browser: BrowserFetcher | None = None
    pages: PageFetcher = field(init=False)
    robots: RobotsCache = field(init=False)
    contexts: JobContexts = field(init=False)
    page_lookup: PageLookup = field(init=False)
    extractor: SlicedExtractor = field(default_factory=SlicedExtractor)
    _paces: dict[str, HostPace] = field(default_factory=dict)
    _floors: dict[str, OriginRobots] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pages = PageFetcher(self.fetcher, self.browser)
        self.robots = RobotsCache(self.database, self.fetcher)
        self.contexts = JobContexts(self.database, self.settings, self.robots)
        self.page_lookup = PageLookup(self.database)

    async def kickoff(self, task: Task) -> TaskResult:
        """Read robots.txt, then enqueue the start page and the sitemaps."""
        # In a thread meanwhile, because the kickoff mostly waits for the database and the server.
        asyncio.get_running_loop().run_in_executor(None, document_formats.load_extractor)
        payload: Kickoff = task.payload
        context = await self.contexts.of(task.job_id)
        options = link_tasks.link_following(context).options
        origin = origin_of(payload.url)
        sitemaps: list[NewTask] = []
        robots = None if options.ignore_robots else await self.robots_of(context, origin)
        if options.sitemap != "skip":
            declared = robots.robots.sitemaps if robots is not None else []
            sitemaps = list(link_tasks.sitemap_tasks(context, payload.url, declared))
        pages = [] if options.sitemap == "only" else [link_tasks.seed_task(context, payload.url)]
        result = LoggedResult(
            {"sitemaps": len(sitemaps)},
            job_log_messages.crawl_started(payload.url, robots, context.robots_agent),
        )
        return TaskResult(result, children=[*pages, *sitemaps])

    async def sitemap(self, task: Task) -> TaskResult:
        """Read a sitemap and enqueue its entries."""
        payload: SitemapTask = task.payload
        context = await self.contexts.of(task.job_id)
        fetched = await self.fetcher.fetch(
            self.request(context, payload.url, self.approve(context, task, scoped=False), task)
        )
        if fetched.exit_code is not ExitCode.CONTENT:
            return link_tasks.sitemap_failure(context, payload, fetched)
        reader = SitemapReader()
        entries = [*reader.feed(fetched.body), *reader.close()]
        children, refused = link_tasks.tasks_for_sitemap(
            context, payload, entries, datetime.now(UTC)
        )
        result = {"url": payload.url, "entries": len(entries), "problems": reader.problems[:20]}
        note = job_log_messages.sitemap_read(
            payload.url, len(entries), len(children), reader.problems
        )
        return TaskResult(LoggedResult(result, [note, *refused]), children=children)

    async def page(self, task: Task) -> TaskResult:
        """Visit a page of a job, then answer its LLM requests and track its changes."""
        context = await self.contexts.of(task.job_id)
        result = await self.visit(context, task)
        llm_requests = context.options.scrape.llm_requests
        if llm_requests and self.model is not None and result.error is None:
            text = await self._text(result.value)
            result.value.answers = await self.model.answer(llm_requests, text)
        if context.options.scrape.tracking is not None and result.error is None:
            await self._track(context.options.scrape.tracking, task, result.value)
        return result

    async def _track(self, tracking: Tracking, task: Task, visit: "PageVisit") -> None:
        """Compare with the last scrape of the tag; the snapshot is stored when the task ends."""
        if not isinstance(visit, PageVisit):
            return
        snapshot = change_tracking.take_snapshot(
            task.organisation_id,
            visit.task.url,
            await self._text(visit),
            scraped_at=datetime.now(UTC),
            tag=tracking.tag,
            variant=visit.context.variant,
        )
        modes = [GIT_DIFF] if tracking.diff and not task.zero_data_retention else []
        fields = None if task.zero_data_retention else tracking.fields
        with_fields = fields is not None and self.model is not None
        async with self.database.system_tx() as conn:
            tracked = await change_tracking.compare(
                conn, snapshot, modes=[*modes, JSON] if with_fields else modes
            )
        if fields is not None and self.model is not None:
            tracked, snapshot, answers = await change_tracking.read_fields(
                self.model, fields, tracked, snapshot
            )
            visit.answers = (visit.answers or Answers()).with_cost_of(answers)
        visit.tracked = tracked.as_json()
        visit.snapshot = None if task.zero_data_retention else snapshot

    async def _text(self, visit: "PageVisit") -> str:
        """Return the markdown of a page; of an unchanged one, that of its stored version."""
        if visit.document is not None:
            return visit.document.markdown
        version_id = None if visit.previous is None else visit.previous.version_id
        if version_id is None:
            return ""
        async with self.database.system_tx() as conn:
            version = await queries.version_by_id(conn, version_id=version_id)
        return "" if version is None else version.markdown

    async def visit(
        self, context: JobContext, task: Task, known_page: KnownPagesRow | None = None
    ) -> TaskResult:
        """Check, fetch and extract a page, and return its links as tasks; `known_page` if looked up."""
        payload: PageTask = task.payload
        site_id, previous = await self._look_up(context, task, known_page)
        if (
            context.following is not None
            and previous is not None
            and not _is_due(context, previous, payload)
        ):
            return await self._skip_until_due(context, task, site_id, previous)
        started, clock = datetime.now(UTC), time.perf_counter()
        fetched = await self._fetch(context, task, previous)
        took_ms = round((time.perf_counter() - clock) * 1000)
        pace = self._pace(context, task, fetched)
        released = self._release_gate(context, task, fetched, pace)
        visit = PageVisit(payload, context, site_id, fetched, started, took_ms, previous)
        visit.source = await self.contexts.source_of(context, site_id)
        error = await self._extract(context, task, visit)
        links = await self._links(context, visit)
        children = link_tasks.tasks_for_links(context, task, visit, links)
        if released is not None:
            await released
        return TaskResult(visit, children=children, gate=pace, error=error)

    async def _look_up(
        self, context: JobContext, task: Task, known_page: KnownPagesRow | None
    ) -> tuple[SiteId, KnownPagesRow | None]:
        """Return the site of a page, and its state after the previous visit."""
        url, origin = task.payload.url, origin_of(task.payload.url)
        if task.zero_data_retention:
            return await self.contexts.site_of(context, origin), None
        site_id = context.options.site_id or context.sites.get(origin)
        page = known_page or await self.page_lookup.find(
            context.organisation_id, site_id, url, context.variant
        )
        if page.site_id is None:
            return await self.contexts.site_of(context, origin), None
        context.sites[origin] = page.site_id
        return page.site_id, None if page.last_visit_at is None else _comparable(context, page)

    async def _skip_until_due(
        self, context: JobContext, task: Task, site_id: SiteId, previous: KnownPagesRow
    ) -> TaskResult:
        """Do not fetch a page that is not due, but follow the links of its stored version."""
        url = task.payload.url
        unchanged = Fetched(exit_code=ExitCode.NOT_MODIFIED, message="", url=url)
        visit = PageVisit(task.payload, context, site_id, unchanged, datetime.now(UTC), 0, previous)
        links = await self._links(context, visit)
        children = link_tasks.tasks_for_links(context, task, visit, links)
        return TaskResult(LoggedResult({"url": url, "due_at": previous.due_at}), children=children)

    # Check

    async def robots_of(self, context: JobContext, origin: str) -> OriginRobots:
        """Return the robots.txt of an origin; its Crawl-delay is the floor of the host's gate."""
        robots = await self.robots.get(origin, verify_tls=context.options.scrape.verify_tls)
        delay = robots.access(context.robots_agent).crawl_delay
        if delay and self._floors.get(origin) is not robots:
            self._floors[origin] = robots
            gate = host_gate(context.options, origin + "/")
            async with self.database.system_tx() as conn:
                await gates.set_gate(conn, gate.name, floor=timedelta(seconds=delay), bound=1)
        return robots

    def approve(self, context: JobContext, task: Task, *, scoped: bool = True) -> Approve:
        """Return the hook that approves each request: hops by scope and duplicates, all by robots.txt."""

        async def approve(url: str) -> Approval:
            if scoped and context.following is not None and url != task.payload.url:
                approval = await self._approve_hop(context.following, task, url)
                if approval.refusal is not None:
                    return approval
            if context.options.ignore_robots:
                return Approval(robots_approved=False)
            robots = await self.robots_of(context, origin_of(url))
            return check_robots(robots, robots.access(context.robots_agent), url)

        return approve

    async def _approve_hop(self, following: LinkFollowing, task: Task, url: str) -> Approval:
        """Approve a redirect only to a page in scope that no other task of the job has."""
        place = following.scope.decide(url)
        if place not in (ScopeDecision.IN_SCOPE, ScopeDecision.TOO_DEEP):
            return Approval(ExitCode.OUT_OF_SCOPE, place.sentence)
        async with self.database.system_tx() as conn:
            taken = await tasks.take_key(conn, task, Unique(following.key(url)))
        return APPROVED if taken else Approval(ExitCode.DUPLICATE_REDIRECT)

    # Fetch

    async def _fetch(
        self, context: JobContext, task: Task, previous: KnownPagesRow | None
    ) -> Fetched:
        conditional = None
        if previous is not None and previous.version_id is not None and _accepts_304(context):
            conditional = Conditional(
                url=task.payload.url, etag=previous.last_etag, last_modified=previous.last_modified
            )
        approve = self.approve(context, task)
        return await self.pages.fetch(
            context, self.request(context, task.payload.url, approve, task, conditional)
        )

    def request(
        self,
        context: JobContext,
        url: str,
        approve: Approve,
        task: Task,
        conditional: Conditional | None = None,
    ) -> FetchRequest:
        options = context.options.scrape
        return FetchRequest(
            url=url,
            approve=approve,
            headers=options.headers,
            conditional=conditional,
            cookies=context.cookies,
            mobile=options.mobile,
            language=options.accept_language,
            proxy=options.proxy,
            verify_tls=options.verify_tls,
            limits=self._limits(options.timeout, task.deadline),
        )

    def _limits(self, timeout: float | None, deadline: datetime | None) -> FetchLimits | None:
        """Return the limits of a fetch whose caller allows less time than the settings."""
        times = [] if timeout is None else [timeout]
        if deadline is not None:
            times.append(max((deadline - datetime.now(UTC)).total_seconds(), 0.001))
        usual = self.fetcher.limits
        return replace(usual, total=min(usual.total, *times)) if times else None

    def _release_gate(
        self, context: JobContext, task: Task, fetched: Fetched, pace: GateChange
    ) -> Awaitable[None] | None:
        """Release the host's slot before the page is stored, where slots are few and others wait."""
        bound = context.options.max_concurrency or DEFAULT_IN_FLIGHT
        if self.gate_release is None or bound > _FEW_SLOTS:
            return None
        if isinstance(context.options, PageOptions) and document_formats.is_html(fetched):
            # A scrape of HTML waits for no other server before its end.
            return None
        return self.gate_release.release(task, pace.not_before)

    # Extract

    async def _extract(
        self, context: JobContext, task: Task, visit: PageVisit
    ) -> VisitFailed | None:
        """Extract a page and compare it with its previous version; return why there is no content."""
        fetched = visit.fetched
        if fetched.exit_code is ExitCode.CONTENT:
            try:
                visit.document = await self._document(context, fetched)
            except VisitFailed as error:
                return error
            await self._render_scripts(context, task, visit)
            await self._follow_refresh(context, task, visit)
            soft_404 = _soft_404(visit)
            if visit.document is not None:
                await self._compare(context, visit, visit.document)
            return soft_404
        if OUTCOMES[fetched.exit_code].category is Category.CONTENTFUL:
            return None
        return VisitFailed(fetched.exit_code, detail(fetched), retry_after=fetched.retry_after)

    async def _document(self, context: JobContext, fetched: Fetched) -> Document | None:
        """Extract a page as it is stored, whatever formats the caller requests."""
        options = context.options.scrape
        if not options.read_files and not document_formats.is_html(fetched):
            return None
        return await self.extractor.extract(fetched, context.extraction)

    # Compare

    async def _compare(self, context: JobContext, visit: PageVisit, document: Document) -> None:
        """Compare a page with its previous version, if their hashes differ."""
        known = visit.previous
        is_new = known is None or known.version_id is None
        if is_new and context.following is None:
            # The caller of a scrape need not wait for the hash: the store computes it.
            return
        visit.digest = content_hash(without_nulls(document.text))
        if known is None or known.version_id is None or known.content_hash == visit.digest:
            return
        async with self.database.system_tx() as conn:
            previous = await queries.previous_version(conn, version_id=known.version_id)
        if previous is None:
            return
        sha256 = hashlib.sha256(visit.fetched.body).digest()
        compare = functools.partial(
            compare_versions, known.version_id, previous, document, sha256, context.noise
        )
        # A large diff would block the loop.
        large = len(previous.markdown) + len(document.markdown) > _LARGE_DIFF
        visit.comparison = await asyncio.to_thread(compare) if large else compare()

    async def _render_scripts(self, context: JobContext, task: Task, visit: PageVisit) -> None:
        """Show the page in a browser if its text is made by scripts."""
        fetched = visit.fetched
        if visit.document is None:
            return
        request = self.request(context, fetched.url, self.approve(context, task), task)
        rendered = await self.pages.render_scripts(context, request, fetched, visit.document)
        if rendered is not None:
            visit.document = await self._document(context, rendered)
            visit.fetched = join_traces(fetched, rendered, fetched.redirects)

    async def _follow_refresh(self, context: JobContext, task: Task, visit: PageVisit) -> None:
        """Fetch the target of an immediate refresh. In a crawl it is a link like any other."""
        for _ in range(_MAX_REFRESHES if context.following is None else 0):
            refresh = visit.directives.refresh
            if refresh is None or not refresh.is_immediate:
                return
            approve = self.approve(context, task)
            target = await self.fetcher.fetch(self.request(context, refresh.url, approve, task))
            if target.exit_code is not ExitCode.CONTENT:
                return
            document = await self._document(context, target)
            visit.fetched = join_traces(visit.fetched, target, visit.redirects)
            visit.document = document

    # Enqueue links

    async def _links(self, context: JobContext, visit: PageVisit) -> Sequence[Link]:
        """Return the links of a page; of an unchanged one, those of its stored version."""
        if context.following is None:
            return ()
        if visit.fetched.exit_code is not ExitCode.NOT_MODIFIED:
            return visit.links
        previous = visit.previous
        if previous is None or previous.version_id is None:
            return ()
        async with self.database.system_tx() as conn:
            urls = await queries.links_of(conn, version_id=previous.version_id)
        return [Link(url) for url in urls or ()]

    # Politeness

    def _pace(self, context: JobContext, task: Task, fetched: Fetched) -> GateChange:
        """Return the host's next gap, and how long to pause its gate."""
        url, settings = task.payload.url, self.settings.crawl
        host = split_url(url).host
        pace = pace_after(
            self._paces.get(host, _UNKNOWN_HOST),
            HostAnswer(
                fetched.exit_code,
                fetched.requests[-1].total_ms / 1000 if fetched.requests else None,
                fetched.retry_after,
                retried=task.attempt > 1,
            ),
            longest_pause=settings.retry_after_most,
            now=datetime.now(UTC),
        )
        if len(self._paces) >= _MAX_HOSTS:
            self._paces.clear()
        self._paces[host] = pace
        in_flight = context.options.max_concurrency or DEFAULT_IN_FLIGHT
        gap = gap_of(pace, minimum=settings.host_gap, in_flight=in_flight)
        quiet, delayed = pace.quiet_until, _delay_end(context, url, fetched)
        if quiet is None or (delayed is not None and delayed > quiet):
            quiet = delayed
        return GateChange(timedelta(seconds=gap), pace.pressure, quiet)


def _delay_end(context: JobContext, url: str, fetched: Fetched) -> datetime | None:
    """Return when the delay of robots.txt or the job ends, counted from the last response.

    The gate counts it from the claim. A busy worker sends some requests later after their claim than
    others, so that the server would see a shorter delay.
    """
    access = context.access.get(origin_of(url))
    floor = None if access is None or context.options.ignore_robots else access.crawl_delay
    delay = max(floor or 0.0, context.options.delay or 0.0)
    if not delay or not fetched.requests:
        return None
    last = fetched.requests[-1]
    answered = timedelta(milliseconds=last.first_byte_ms or last.total_ms)
    return last.sent_at + answered + timedelta(seconds=delay)


def _soft_404(visit: PageVisit) -> VisitFailed | None:
    """Treat a page that says it does not exist as not found; its content is not stored."""
    if visit.document is None or not is_soft_404(visit.document):
        return None
    code = ExitCode.SOFT_NOT_FOUND
    visit.fetched = structs.replace(visit.fetched, exit_code=code, message=OUTCOMES[code].sentence)
    visit.document = None
    return VisitFailed(code)


def _comparable(context: JobContext, found: KnownPagesRow) -> KnownPagesRow:
    """Leave out the version of a page that was asked for in another way, with its validators."""
    if found.version_id is None or found.variant == context.variant:
        return found
    return structs.replace(
        found,
        last_etag=None,
        last_modified=None,
        due_at=None,
        version_id=None,
        content_hash=None,
    )


def _is_due(context: JobContext, previous: KnownPagesRow, page: PageTask) -> bool:
    """Whether to visit a page now; only a crawl with `only_due` skips any."""
    return is_due(
        previous.due_at,
        now=datetime.now(UTC),
        last_visit=previous.last_visit_at,
        modified=page.modified,
        force=context.options.force or not context.options.only_due,
    )


def _accepts_304(context: JobContext) -> bool:
    """Whether a 304 suffices: not where the caller requests formats that need the bytes."""
    options = context.options
    return not options.force and (context.following is not None or options.scrape.as_stored)
