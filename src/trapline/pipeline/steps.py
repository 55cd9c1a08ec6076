"""The order of things for one task: decide, fetch, extract, spread. Storing is in `keeping`.

Nothing here writes to the database. What a handler returns goes into the finishing transaction,
where `keeping.keep` stores it together with the end of its task.
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
from trapline.extract.absence import says_it_is_not_there
from trapline.fetch import Fetcher
from trapline.frontier.politeness import HostPace, PaceRules, gate_of, pace_after
from trapline.frontier.recrawl import is_due
from trapline.frontier.scope import Verdict as Scoped
from trapline.frontier.sitemaps import (
    SitemapReader,
)
from trapline.frontier.url import origin_of, split_url
from trapline.model import (
    APPROVED,
    Approve,
    Conditional,
    Document,
    Fetched,
    FetchLimits,
    FetchRequest,
    Link,
    SiteId,
    Verdict,
)
from trapline.pipeline import documents, noting, spreading, tracking
from trapline.pipeline.comparing import compared
from trapline.pipeline.crawls import Crawl, Crawls, Spread
from trapline.pipeline.desk import Desk
from trapline.pipeline.kinds import Kickoff, PageTask, SitemapTask
from trapline.pipeline.known import KnownPages
from trapline.pipeline.language import Answers, LanguageModel
from trapline.pipeline.options import PageOptions, Tracking
from trapline.pipeline.robots import OriginRobots, RobotsFiles, refusal
from trapline.pipeline.sql import known
from trapline.pipeline.sql.known import KnownPagesRow
from trapline.pipeline.submit import DEFAULT_IN_FLIGHT, host_gate
from trapline.pipeline.tracking import GIT_DIFF, JSON
from trapline.pipeline.visits import PageVisit, Told, detail, joined
from trapline.queue import gates, tasks
from trapline.queue.finishing import Finished
from trapline.queue.gates import GateChange
from trapline.queue.leaving import Leaving
from trapline.queue.tasks import NewTask, Task, Unique
from trapline.settings import Settings
from trapline.store.identity import content_hash, without_nulls

_MOST_HOSTS: Final = 10_000
_UNKNOWN_HOST: Final = HostPace()
_LARGE_DIFF: Final = 200_000
_FEW_PLACES: Final = 8
_MOST_REFRESHES: Final = 3


@dataclass(slots=True)
class Steps:
    """The handlers, with what they need."""

    database: Database
    settings: Settings
    fetcher: Fetcher
    model: LanguageModel | None = None
    robots: RobotsFiles = field(init=False)
    crawls: Crawls = field(init=False)
    known: KnownPages = field(init=False)
    # Where there is one, a host gets its next request while this page is still being stored.
    leaving: Leaving | None = None
    desk: Desk = field(default_factory=Desk)
    _paces: dict[str, HostPace] = field(default_factory=dict)
    _floors: dict[str, OriginRobots] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.robots = RobotsFiles(self.database, self.fetcher)
        self.crawls = Crawls(self.database, self.settings, self.robots)
        self.known = KnownPages(self.database)

    async def kickoff(self, task: Task) -> Finished:
        """Read robots.txt, then queue the start page and the sitemaps."""
        # Meanwhile, for this waits for the database and the server time and again.
        asyncio.get_running_loop().run_in_executor(None, documents.load_reader)
        payload: Kickoff = task.payload
        crawl = await self.crawls.of(task.job_id)
        options = spreading.spread_of(crawl).options
        origin = origin_of(payload.url)
        sitemaps: list[NewTask] = []
        found = None if options.ignore_robots else await self.robots_of(crawl, origin)
        if options.sitemap != "skip":
            named = found.robots.sitemaps if found is not None else []
            sitemaps = list(spreading.sitemap_tasks(crawl, payload.url, named))
        pages = [] if options.sitemap == "only" else [spreading.seed(crawl, payload.url)]
        told = Told({"sitemaps": len(sitemaps)}, noting.beginning(payload.url, found, crawl))
        return Finished(told, children=[*pages, *sitemaps])

    async def sitemap(self, task: Task) -> Finished:
        """Read a sitemap and queue what it names."""
        payload: SitemapTask = task.payload
        crawl = await self.crawls.of(task.job_id)
        fetched = await self.fetcher.fetch(
            self.request(crawl, payload.url, self.approve(crawl, task, scoped=False), task)
        )
        if fetched.exit_code is not ExitCode.CONTENT:
            return spreading.without_sitemap(payload, fetched)
        reader = SitemapReader()
        entries = [*reader.feed(fetched.body), *reader.close()]
        children, refused = spreading.from_sitemap(crawl, payload, entries, datetime.now(UTC))
        result = {"url": payload.url, "entries": len(entries), "problems": reader.problems[:20]}
        note = noting.sitemap(payload.url, len(entries), len(children), reader.problems)
        return Finished(Told(result, [note, *refused]), children=children)

    async def page(self, task: Task) -> Finished:
        """Visit a page of a job, and ask of it what the job wishes to know."""
        crawl = await self.crawls.of(task.job_id)
        finished = await self.visit(crawl, task)
        wishes = crawl.options.scrape.wishes
        if wishes and self.model is not None and finished.error is None:
            text = await self._text(finished.result)
            finished.result.answers = await self.model.answer(wishes, text)
        if crawl.options.scrape.tracking is not None and finished.error is None:
            await self._track(crawl.options.scrape.tracking, task, finished.result)
        return finished

    async def _track(self, wish: Tracking, task: Task, visit: "PageVisit") -> None:
        """Compare with the last scrape of the tag; what is found is kept when the task ends."""
        if not isinstance(visit, PageVisit):
            return
        found = tracking.snapshot(
            task.organisation_id,
            visit.task.url,
            await self._text(visit),
            scraped_at=datetime.now(UTC),
            tag=wish.tag,
        )
        modes = [GIT_DIFF] if wish.diff and not task.zero_data_retention else []
        reads = wish.fields is not None and self.model is not None and not task.zero_data_retention
        async with self.database.system_tx() as conn:
            tracked = await tracking.compare(conn, found, modes=[*modes, JSON] if reads else modes)
        if wish.fields is not None and self.model is not None and reads:
            tracked, found, asked = await tracking.read_fields(
                self.model, wish.fields, tracked, found
            )
            visit.answers = (visit.answers or Answers()).and_for(asked)
        visit.tracked = tracked.as_json()
        visit.snapshot = None if task.zero_data_retention else found

    async def _text(self, visit: "PageVisit") -> str:
        """Return what was found on a page, or is known of it while it has not changed."""
        if visit.document is not None:
            return visit.document.markdown
        version_id = None if visit.before is None else visit.before.version_id
        if version_id is None:
            return ""
        async with self.database.system_tx() as conn:
            version = await known.version_by_id(conn, version_id=version_id)
        return "" if version is None else version.markdown

    async def visit(self, crawl: Crawl, task: Task, known: KnownPagesRow | None = None) -> Finished:
        """Visit a page: decide, fetch, extract, and judge its links. `known`: it is looked up already."""
        payload: PageTask = task.payload
        site_id, before = await self._known(crawl, task, known)
        if crawl.spread is not None and before is not None and not _is_due(crawl, before, payload):
            return await self._not_due(crawl, task, site_id, before)
        started, clock = datetime.now(UTC), time.perf_counter()
        fetched = await self._fetch(crawl, task, before)
        took_ms = round((time.perf_counter() - clock) * 1000)
        left = self._leave(crawl, task, fetched)
        visit = PageVisit(payload, crawl, site_id, fetched, started, took_ms, before)
        visit.source = await self.crawls.source_of(crawl, site_id)
        error: VisitFailed | None = None
        children: list[NewTask] = []
        if fetched.exit_code is ExitCode.CONTENT:
            try:
                visit.document = await self._document(crawl, fetched)
            except VisitFailed as failed:
                error = failed
            else:
                await self._refreshed(crawl, task, visit)
                error = _missing(visit)
                if visit.document is not None:
                    await self._compare(crawl, visit, visit.document)
                if crawl.spread is not None:
                    children = spreading.follow(crawl, task, visit, visit.links)
        elif fetched.exit_code is ExitCode.NOT_MODIFIED:
            links_before = await self._links_before(crawl, before)
            children = spreading.follow(crawl, task, visit, links_before)
        elif OUTCOMES[fetched.exit_code].category is not Category.CONTENTFUL:
            error = VisitFailed(fetched.exit_code, detail(fetched), retry_after=fetched.retry_after)
        if left is not None:
            await left
        return Finished(
            visit, children=children, gate=self._pace(crawl, payload.url, fetched), error=error
        )

    async def _known(
        self, crawl: Crawl, task: Task, known: KnownPagesRow | None
    ) -> tuple[SiteId, KnownPagesRow | None]:
        """Return the site that a page belongs to, and what an earlier visit left of the page."""
        url, origin = task.payload.url, origin_of(task.payload.url)
        if task.zero_data_retention:
            return await self.crawls.site_of(crawl, origin), None
        site_id = crawl.options.site_id or crawl.sites.get(origin)
        found = known or await self.known.find(crawl.organisation_id, site_id, url)
        if found.site_id is None:
            return await self.crawls.site_of(crawl, origin), None
        crawl.sites[origin] = found.site_id
        return found.site_id, None if found.last_visit_at is None else found

    async def _not_due(
        self, crawl: Crawl, task: Task, site_id: SiteId, before: KnownPagesRow
    ) -> Finished:
        """Leave a page alone that is not due, but go on from where it led before."""
        url = task.payload.url
        seen = Fetched(exit_code=ExitCode.NOT_MODIFIED, message="", url=url)
        visit = PageVisit(task.payload, crawl, site_id, seen, datetime.now(UTC), 0, before)
        children = spreading.follow(crawl, task, visit, await self._links_before(crawl, before))
        return Finished(Told({"url": url, "due_at": before.due_at}), children=children)

    # Decide

    async def robots_of(self, crawl: Crawl, origin: str) -> OriginRobots:
        """Return the robots.txt of an origin; its Crawl-delay is the floor of the host's gate."""
        found = await self.robots.of(origin, verify_tls=crawl.options.scrape.verify_tls)
        delay = found.access(crawl.robots_agent).crawl_delay
        if delay and self._floors.get(origin) is not found:
            self._floors[origin] = found
            gate = host_gate(crawl.options, origin + "/")
            async with self.database.system_tx() as conn:
                await gates.set_gate(conn, gate.name, floor=timedelta(seconds=delay), bound=1)
        return found

    def approve(self, crawl: Crawl, task: Task, *, scoped: bool = True) -> Approve:
        """Make the hook that fetch asks before every request: for hops scope and duplicates, robots."""

        async def approve(url: str) -> Verdict:
            if scoped and crawl.spread is not None and url != task.payload.url:
                verdict = await self._approve_hop(crawl.spread, task, url)
                if verdict.refusal is not None:
                    return verdict
            if crawl.options.ignore_robots:
                return Verdict(robots_approved=False)
            found = await self.robots_of(crawl, origin_of(url))
            return refusal(found, found.access(crawl.robots_agent), url)

        return approve

    async def _approve_hop(self, spread: Spread, task: Task, url: str) -> Verdict:
        """Let a redirect lead to pages of the job alone, and to none that another task has."""
        place = spread.scope.verdict(url)
        if place not in (Scoped.IN_SCOPE, Scoped.TOO_DEEP):
            return Verdict(ExitCode.OUT_OF_SCOPE, place.sentence)
        async with self.database.system_tx() as conn:
            taken = await tasks.take_key(conn, task, Unique(spread.key(url)))
        return APPROVED if taken else Verdict(ExitCode.DUPLICATE_REDIRECT)

    # Fetch

    async def _fetch(self, crawl: Crawl, task: Task, before: KnownPagesRow | None) -> Fetched:
        conditional = None
        if before is not None and before.version_id is not None and _may_confirm(crawl):
            conditional = Conditional(
                url=task.payload.url, etag=before.last_etag, last_modified=before.last_modified
            )
        approve = self.approve(crawl, task)
        return await self.fetcher.fetch(
            self.request(crawl, task.payload.url, approve, task, conditional)
        )

    def request(
        self,
        crawl: Crawl,
        url: str,
        approve: Approve,
        task: Task,
        conditional: Conditional | None = None,
    ) -> FetchRequest:
        options = crawl.options.scrape
        return FetchRequest(
            url=url,
            approve=approve,
            headers=options.headers,
            conditional=conditional,
            cookies=crawl.cookies,
            mobile=options.mobile,
            language=options.accept_language,
            proxy=options.proxy,
            verify_tls=options.verify_tls,
            limits=self._limits(options.timeout, task.deadline),
        )

    def _limits(self, timeout: float | None, deadline: datetime | None) -> FetchLimits | None:
        """Return how long a fetch may take, where its caller has less time than the settings."""
        times = [] if timeout is None else [timeout]
        if deadline is not None:
            times.append(max((deadline - datetime.now(UTC)).total_seconds(), 0.001))
        usual = self.fetcher.limits
        return replace(usual, total=min(usual.total, *times)) if times else None

    def _leave(self, crawl: Crawl, task: Task, fetched: Fetched) -> Awaitable[None] | None:
        """Give the host's place back at once, where places are so few that others wait for it."""
        bound = crawl.options.max_concurrency or DEFAULT_IN_FLIGHT
        if self.leaving is None or bound > _FEW_PLACES:
            return None
        if isinstance(crawl.options, PageOptions) and documents.is_html(fetched):
            # A scrape of a page waits for no server between here and its end.
            return None
        return self.leaving.leave(task)

    # Extract

    async def _document(self, crawl: Crawl, fetched: Fetched) -> Document | None:
        """Read a page as it is stored, whatever the caller wants of it."""
        options = crawl.options.scrape
        if not options.read_files and not documents.is_html(fetched):
            return None
        return await self.desk.read(fetched, crawl.extraction)

    # Compare

    async def _compare(self, crawl: Crawl, visit: PageVisit, document: Document) -> None:
        """Look at the version before, if this one differs: what changed, and does it count?"""
        before = visit.before
        is_new = before is None or before.version_id is None
        if is_new and crawl.spread is None:
            # Who waits for a scrape need not wait for this: the store hashes what has no digest.
            return
        visit.digest = content_hash(without_nulls(document.text))
        if before is None or before.version_id is None or before.content_hash == visit.digest:
            return
        async with self.database.system_tx() as conn:
            previous = await known.previous_version(conn, version_id=before.version_id)
        if previous is None:
            return
        sha256 = hashlib.sha256(visit.fetched.body).digest()
        compare = functools.partial(
            compared, before.version_id, previous, document, sha256, crawl.noise
        )
        # A large diff takes its time; the loop has other pages to see to.
        large = len(previous.markdown) + len(document.markdown) > _LARGE_DIFF
        visit.comparison = await asyncio.to_thread(compare) if large else compare()

    async def _refreshed(self, crawl: Crawl, task: Task, visit: PageVisit) -> None:
        """Go where a page sends its visitor at once. To a crawl that is a link like any other."""
        for _ in range(_MOST_REFRESHES if crawl.spread is None else 0):
            refresh = visit.claims.refresh
            if refresh is None or not refresh.at_once:
                return
            approve = self.approve(crawl, task)
            there = await self.fetcher.fetch(self.request(crawl, refresh.url, approve, task))
            if there.exit_code is not ExitCode.CONTENT:
                return
            document = await self._document(crawl, there)
            visit.fetched = joined(visit.fetched, there, visit.redirects)
            visit.document = document

    # Spread

    async def _links_before(self, crawl: Crawl, before: KnownPagesRow | None) -> Sequence[Link]:
        """Return the links of a page that has not changed, from the version that is kept."""
        if crawl.spread is None or before is None or before.version_id is None:
            return ()
        async with self.database.system_tx() as conn:
            urls = await known.links_of(conn, version_id=before.version_id)
        return [Link(url) for url in urls or ()]

    # Politeness

    def _rules(self, crawl: Crawl) -> PaceRules:
        return PaceRules(
            minimum=self.settings.host_gap, max_in_flight=crawl.options.max_concurrency
        )

    def _pace(self, crawl: Crawl, url: str, fetched: Fetched) -> GateChange | None:
        """Return what the visit taught of the host: its next gap, and how long to leave it alone."""
        host = split_url(url).host
        before = self._paces.get(host, _UNKNOWN_HOST)
        seconds = fetched.requests[-1].total_ms / 1000 if fetched.requests else None
        pace = pace_after(
            before,
            fetched.exit_code,
            response_seconds=seconds,
            retry_after=fetched.retry_after,
            now=datetime.now(UTC),
        )
        if len(self._paces) >= _MOST_HOSTS:
            self._paces.clear()
        self._paces[host] = pace
        gap = gate_of(pace, self._rules(crawl)).gap
        quiet, asked = pace.quiet_until, _asked_pause(crawl, url, fetched)
        if quiet is None or (asked is not None and asked > quiet):
            quiet = asked
        return GateChange(timedelta(seconds=gap), pace.pressure, quiet)


def _asked_pause(crawl: Crawl, url: str, fetched: Fetched) -> datetime | None:
    """Return until when a delay that was asked for lasts, from when the last answer began.

    The gate counts it from the claim; but a busy worker sends one request sooner after its claim than
    another, and the server would see less than what it asked for.
    """
    access = crawl.access.get(origin_of(url))
    floor = None if access is None or crawl.options.ignore_robots else access.crawl_delay
    delay = max(floor or 0.0, crawl.options.delay or 0.0)
    if not delay or not fetched.requests:
        return None
    last = fetched.requests[-1]
    answered = timedelta(milliseconds=last.first_byte_ms or last.total_ms)
    return last.sent_at + answered + timedelta(seconds=delay)


def _missing(visit: PageVisit) -> VisitFailed | None:
    """Take a page that says that it is not there for what it says; nothing of it is kept."""
    if visit.document is None or not says_it_is_not_there(visit.document):
        return None
    code = ExitCode.SOFT_NOT_FOUND
    visit.fetched = structs.replace(visit.fetched, exit_code=code, message=OUTCOMES[code].sentence)
    visit.document = None
    return VisitFailed(code)


def _is_due(crawl: Crawl, before: KnownPagesRow, page: PageTask) -> bool:
    """Whether a crawl that looks only at what is due visits a page; any other visits them all."""
    return is_due(
        before.due_at,
        now=datetime.now(UTC),
        last_visit=before.last_visit_at,
        modified=page.modified,
        force=crawl.options.force or not crawl.options.only_due,
    )


def _may_confirm(crawl: Crawl) -> bool:
    """Whether a 304 will do: not for who wants what only the bytes have."""
    options = crawl.options
    return not options.force and (crawl.spread is not None or options.scrape.as_stored)
