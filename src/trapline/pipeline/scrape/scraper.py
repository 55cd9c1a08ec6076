"""Scrape of one page for a caller who waits, run in the caller's own process.

It is a job with one inline task. The task waits at the host's gate and within its organisation's
limit as any other, leaves the same provenance, and ends in the same transaction.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import (
    OUTCOMES,
    Category,
    ExitCode,
    NotFound,
    Outcome,
    VisitFailed,
)
from trapline.extract.diff import Diff, diff
from trapline.extract.html.attributes import AttributeValues
from trapline.frontier.canonical_url import origin_of, url_hash
from trapline.model import Document, Fetched, JobId, OrganisationId, PageId
from trapline.pipeline import document_formats
from trapline.pipeline.caller import Caller, CallerChanged, deadline
from trapline.pipeline.crawl.job_context import JobContext
from trapline.pipeline.crawl.visit import VisitHandlers
from trapline.pipeline.crawl.visit_result import PageResult, PageVisit
from trapline.pipeline.kinds import PAGE, SCRAPE, PageTask
from trapline.pipeline.options import DEFAULT_TIMEOUT, PageOptions, ScrapeOptions
from trapline.pipeline.sql import page_lookup
from trapline.pipeline.sql import scrape as scrapes
from trapline.pipeline.sql.page_lookup import KnownPagesRow, StoredVersion
from trapline.pipeline.sql.scrape import BeginScrapeRow
from trapline.pipeline.submit import host_gate
from trapline.queue import jobs
from trapline.queue.finish import Attempt, TaskResult
from trapline.queue.inline_tasks import BeginRequest, InlineTask, InlineTasks, failed_attempt
from trapline.queue.jobs import NewJob
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.tasks import NewTask
from trapline.rendering import Rendering
from trapline.settings import Settings
from trapline.store.blobs import BlobStore
from trapline.store.pages import PageChange

# Extra time after the fetch, to extract and store a page.
_EXTRACTION_TIME: Final = timedelta(seconds=5)
# The write-behind queue is in memory; a larger page is stored before the response.
_MAX_DEFERRED_BYTES: Final = 2**20
# The reason that `tenancy.write_denial` gives.
_CALLER: Final = "caller"


class NotCached(NotFound):
    """No stored version is of the requested age, and the request allows no fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeResult:
    """The result of a scrape. `code` is its exit code; a page that is not found may have a document too."""

    url: str
    """The requested URL, in canonical form."""
    final_url: str
    code: ExitCode
    job_id: JobId | None = None
    """None for a cache hit, and where the job was taken for dead."""
    error: str | None = None
    """A sentence for people, where the scrape failed."""
    status: int | None = None
    content_type: str | None = None
    document: Document | None = None
    body: bytes | None = None
    """Only with `with_body`."""
    attributes: tuple[AttributeValues, ...] = ()
    cache: Literal["hit", "miss"] = "miss"
    cached_at: datetime | None = None
    """When the stored version was last confirmed."""
    visit_id: int | None = None
    page_id: PageId | None = None
    version_id: int | None = None
    change: PageChange | None = None
    previous_at: datetime | None = None
    """When the previous version was fetched; only with `track_changes`."""
    diff: Diff | None = None
    retry_after: float | None = None
    waited: float = 0.0
    """Seconds in the queue of the host or of the organisation's limit."""
    waited_for: str | None = None
    took_ms: int = 0
    variant: bytes = b""
    """How it was asked for."""
    rendering: Rendering | None = None
    """How a browser showed the page; None over plain HTTP and for a cache hit."""

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[self.code]

    @property
    def ok(self) -> bool:
        return self.outcome.category is Category.CONTENTFUL

    @property
    def warning(self) -> str | None:
        warnings = [
            None if self.document is None else self.document.warning,
            None if self.rendering is None else self.rendering.warning,
        ]
        return " ".join(filter(None, warnings)) or None


@dataclass(slots=True)
class Scraper:
    """Runs scrapes in this process."""

    database: Database
    handlers: VisitHandlers
    inline_tasks: InlineTasks
    blobs: BlobStore

    async def scrape(
        self, caller: Caller, options: PageOptions, *, answer_first: bool = False
    ) -> ScrapeResult:
        """Visit a page and return it in the requested formats; a failed visit is a result too.

        Raises DeadlineExceeded when there is no result in time, and NotCached where only a stored
        version would do.

        With `answer_first` a page may be stored after this returns, by write-behind: then the result
        has no visit, version and change.

        A caller whose claim is out of date gets CallerChanged before anything is written or returned.
        """
        if not self._starts_with_gate(options):
            caller = await self._verify(caller)
        await self.wait_until_stored(_page(caller.organisation_id, options.url))
        stored = await self._from_cache(caller, options)
        if stored is not None:
            return stored
        latest = datetime.now(UTC) + timedelta(seconds=options.scrape.timeout or DEFAULT_TIMEOUT)
        job = _job(caller, options, self.database.settings)
        context = self.handlers.contexts.make(job.id, caller.organisation_id, options)
        if not options.ignore_robots:
            await self._robots(context, options.url, latest)
        held, known_page = await self._begin(caller, job, options, latest)
        attempt = await self._attempt(context, held, latest, known_page)
        visit: PageVisit = attempt.result.value
        if answer_first and self._can_defer_store(attempt):
            await self._defer_store(attempt)
            answer = _answer(held, visit, attempt)
        else:
            answer = await self._finish(held, visit, attempt)
        return await self._with_content(answer, visit)

    async def wait_until_stored(self, about: Hashable | None = None) -> None:
        """Wait until the results that this process returned are stored: all, or those of one key."""
        await self.inline_tasks.write_behind.wait_stored(about)

    # Cache

    async def _from_cache(self, caller: Caller, options: PageOptions) -> ScrapeResult | None:
        """Return the stored version, if the request accepts one of its age."""
        scrape = options.scrape
        version = await self._version(caller, options) if scrape.reads_cache else None
        answer = None if version is None else await self._from_version(options, version)
        if answer is None and scrape.needs_cache:
            raise NotCached
        return answer

    async def _version(self, caller: Caller, options: PageOptions) -> StoredVersion | None:
        scrape, now = options.scrape, datetime.now(UTC)
        async with self.database.tenant_tx(caller.organisation_id, caller.member_id) as conn:
            return await page_lookup.latest_version(
                conn,
                organisation_id=caller.organisation_id,
                hash=url_hash(options.url),
                site_id=options.site_id,
                origin=origin_of(options.url),
                variant=options.variant,
                seen_since=_ago(now, scrape.max_age),
                seen_until=_ago(now, scrape.min_age),
            )

    async def _from_version(
        self, options: PageOptions, version: StoredVersion
    ) -> ScrapeResult | None:
        scrape = options.scrape
        answer = ScrapeResult(
            url=options.url,
            final_url=version.url,
            code=ExitCode.CONTENT,
            status=version.status,
            content_type=version.content_type,
            document=document_formats.stored_document(version, scrape.formats),
            cache="hit",
            cached_at=version.last_seen_at,
            visit_id=version.visit_id,
            page_id=version.page_id,
            version_id=version.id,
            change=PageChange.SAME,
            variant=version.variant,
        )
        if not scrape.as_stored:
            try:
                async with self.database.tenant_tx(version.organisation_id) as conn:
                    body = await document_formats.version_body(conn, self.blobs, version)
            except NotFound:
                return None
            answer = await _read(
                answer, document_formats.version_as_fetched(version, body), scrape, None
            )
        return await self._with_changes(answer) if scrape.track_changes else answer

    # Visit

    async def _robots(self, context: JobContext, url: str, latest: datetime) -> None:
        """Read robots.txt before the gate: its Crawl-delay decides how long to wait there."""
        async with deadline(latest):
            await self.handlers.robots_of(context, origin_of(url))

    async def _begin(
        self, caller: Caller, job: NewJob, options: PageOptions, latest: datetime
    ) -> tuple[InlineTask, KnownPagesRow | None]:
        """Take a slot of the host's gate; the same statement looks up the page."""
        rows: list[BeginScrapeRow] = []

        async def ask(conn: Connection, request: BeginRequest) -> BeginScrapeRow:
            rows.append(await _begin_scrape(conn, request, caller, options))
            return rows[-1]

        held = await self.inline_tasks.begin(job, _task(caller, options), latest=latest, ask=ask)
        # After a wait the page is looked up again: another task may have visited it.
        outdated = held.waited_for or job.zero_data_retention
        return held, None if outdated else _known_page(rows[-1])

    # Caller

    def _starts_with_gate(self, options: PageOptions) -> bool:
        """Whether the scrape begins by taking a slot: that statement also verifies the caller."""
        scrape = options.scrape
        cached = scrape.reads_cache or scrape.needs_cache
        has_robots = options.ignore_robots or self.handlers.robots.is_cached(
            origin_of(options.url), verify_tls=scrape.verify_tls
        )
        return has_robots and not cached

    async def _verify(self, caller: Caller) -> Caller:
        claim = caller.claim
        if claim is None:
            return caller
        reason = await self.database.run_statement(
            lambda conn: scrapes.write_refusal(
                conn, api_key_id=claim.api_key_id, organisation_id=caller.organisation_id
            )
        )
        if reason is not None:
            raise CallerChanged
        return replace(caller, claim=None)

    async def _attempt(
        self,
        context: JobContext,
        held: InlineTask,
        latest: datetime,
        known_page: KnownPagesRow | None,
    ) -> Attempt:
        """Visit the page; a visit that raises is finished here, with its error."""
        task = held.task
        try:
            async with deadline(latest + _EXTRACTION_TIME):
                done = await self.handlers.visit(context, task, known_page)
        except BaseException as error:
            await self.inline_tasks.finish(failed_attempt(task, error))
            raise
        result = TaskResult(done.value, gate=done.gate)
        return (
            Attempt(task, result=result)
            if done.error is None
            else failed_attempt(task, done.error, result)
        )

    async def _finish(self, held: InlineTask, visit: PageVisit, attempt: Attempt) -> ScrapeResult:
        finished = await self.inline_tasks.finish(attempt)
        if finished is None:
            # The page was fetched, but another worker took over the task.
            return replace(_answer(held, visit, attempt), job_id=None)
        return _answer(held, visit, finished, finished.result.value)

    def _can_defer_store(self, attempt: Attempt) -> bool:
        """Whether the result can be returned before it is stored."""
        visit: PageVisit = attempt.result.value
        return (
            self.handlers.settings.server.answer_first
            and attempt.outcome is TaskOutcome.COMPLETED
            and visit.fetched.exit_code is ExitCode.CONTENT
            and len(visit.fetched.body) <= _MAX_DEFERRED_BYTES
            and not visit.context.options.scrape.track_changes
        )

    async def _defer_store(self, attempt: Attempt) -> None:
        visit: PageVisit = attempt.result.value
        task, organisation_id = attempt.task, attempt.task.organisation_id
        pages = {_page(organisation_id, url) for url in (visit.task.url, visit.fetched.url)}
        await self.inline_tasks.write_behind.add(
            attempt, frozenset({task.job_id, organisation_id, *pages})
        )

    async def _with_content(self, answer: ScrapeResult, visit: PageVisit) -> ScrapeResult:
        """Add the requested formats to the outcome of the visit."""
        fetched, options = visit.fetched, visit.context.options.scrape
        if fetched.exit_code is ExitCode.NOT_MODIFIED and answer.version_id is not None:
            async with self.database.tenant_tx(visit.context.organisation_id) as conn:
                document = await document_formats.document_of_version(
                    conn, self.blobs, answer.version_id, options
                )
            answer = replace(answer, document=document, content_type=document.content_type)
        elif fetched.body:
            ready = visit.document if options.canonical else None
            answer = await _read(answer, fetched, options, ready)
        return await self._with_changes(answer) if options.track_changes else answer

    async def _with_changes(self, answer: ScrapeResult) -> ScrapeResult:
        """Add the changes since the previous version."""
        if answer.version_id is None:
            return answer
        async with self.database.system_tx() as conn:
            before = await page_lookup.version_before(conn, version_id=answer.version_id)
            now = await page_lookup.version_by_id(conn, version_id=answer.version_id)
        if before is None or now is None:
            return replace(
                answer, previous_at=None if answer.change is PageChange.NEW else _at(now)
            )
        if answer.change is PageChange.SAME:
            return replace(answer, previous_at=now.fetched_at)
        difference = diff(before.markdown, now.markdown)
        return replace(answer, previous_at=before.fetched_at, diff=difference)


def _at(version: StoredVersion | None) -> datetime | None:
    return None if version is None else version.fetched_at


def _job(caller: Caller, options: PageOptions, settings: Settings) -> NewJob:
    ttl, failed_ttl = jobs.retention_times(settings.retention, single=True)
    return NewJob(
        SCRAPE,
        caller.organisation_id,
        id=caller.job_id or jobs.new_id(),
        member_id=caller.member_id,
        options=msgspec.to_builtins(options),
        metadata=caller.metadata,
        trace_id=caller.trace_id,
        zero_data_retention=options.scrape.zero_data_retention,
        ttl=ttl,
        failed_ttl=failed_ttl,
    )


def _task(caller: Caller, options: PageOptions) -> NewTask:
    return NewTask(
        PAGE,
        PageTask(url=options.url),
        gate=host_gate(options, options.url),
        max_attempts=1,
        trace_id=caller.trace_id,
    )


async def _begin_scrape(
    conn: Connection, request: BeginRequest, caller: Caller, options: PageOptions
) -> BeginScrapeRow:
    claim = caller.claim
    row = await scrapes.begin_scrape(
        conn,
        jobs=request.jobs,
        tasks=request.tasks,
        gates=request.gates,
        latest=request.latest,
        agent_id=request.agent_id,
        lease_time=request.lease_time,
        again=request.again,
        is_claimed=claim is not None,
        api_key_id=None if claim is None else claim.api_key_id,
        organisation_id=caller.organisation_id,
        site_id=options.site_id,
        origin=origin_of(options.url),
        variant=options.variant,
        hash=url_hash(options.url),
    )
    assert row is not None  # noqa: S101 (a function with OUT columns has one row)
    if row.blocked_by == _CALLER:
        raise CallerChanged
    return row


def _known_page(row: BeginScrapeRow) -> KnownPagesRow:
    return KnownPagesRow(
        position=1,
        site_id=row.site_id,
        last_visit_at=row.last_visit_at,
        last_contentful_at=row.last_contentful_at,
        last_etag=row.last_etag,
        last_modified=row.last_modified,
        looks=row.looks,
        changes=row.changes,
        seconds=row.seconds,
        failures=row.failures,
        due_at=row.due_at,
        version_id=row.version_id,
        content_hash=row.content_hash,
        variant=row.variant,
    )


def _page(organisation_id: OrganisationId, url: str) -> Hashable:
    """Return the write-behind key of a page's scrapes."""
    return organisation_id, url


def _answer(
    held: InlineTask, visit: PageVisit, attempt: Attempt, stored: PageResult | None = None
) -> ScrapeResult:
    """Say how a visit ended; with `stored` also what was written of it."""
    fetched, stored = visit.fetched, stored or PageResult()
    return ScrapeResult(
        job_id=held.task.job_id,
        url=visit.task.url,
        final_url=fetched.url,
        code=attempt.code or fetched.exit_code,
        error=attempt.error,
        status=fetched.status,
        content_type=fetched.content_type or fetched.media_type,
        visit_id=stored.get("visit_id"),
        page_id=stored.get("page_id"),
        version_id=stored.get("version_id"),
        change=stored.get("change"),
        retry_after=fetched.retry_after,
        waited=held.waited,
        waited_for=held.waited_for,
        took_ms=visit.took_ms,
        variant=visit.context.variant,
        rendering=fetched.rendering,
    )


async def _read(
    answer: ScrapeResult, fetched: Fetched, options: ScrapeOptions, ready: Document | None
) -> ScrapeResult:
    """Add the requested formats. The body of an error status may be unreadable."""
    body = fetched.body if options.with_body else None
    try:
        document = ready or await document_formats.requested_document(fetched, options)
        attributes = await document_formats.attributes(fetched.body, answer.content_type, options)
    except VisitFailed as error:
        if fetched.exit_code is ExitCode.CONTENT and answer.error is None:
            return replace(answer, code=error.code, error=error.message, body=body)
        return replace(answer, body=body)
    return replace(answer, document=document, body=body, attributes=attributes)


def _ago(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now - timedelta(seconds=seconds)
