"""A scrape: one page for a caller who waits, visited in the caller's own process.

It is a job with one task that nobody else runs. It waits at the host's gate and in its
organisation's limit as any other, leaves the same provenance, and ends in the same transaction.
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
from trapline.extract.attributes import AttributeValues
from trapline.extract.diff import Diff, diff
from trapline.frontier.url import origin_of, url_hash
from trapline.model import Document, Fetched, JobId, OrganisationId, PageId
from trapline.pipeline import documents
from trapline.pipeline.asking import Asker, AskerChanged, until
from trapline.pipeline.crawls import Crawl
from trapline.pipeline.kinds import PAGE, SCRAPE, PageTask
from trapline.pipeline.options import DEFAULT_TIMEOUT, PageOptions, ScrapeOptions
from trapline.pipeline.sql import known
from trapline.pipeline.sql import scraping as scrapes
from trapline.pipeline.sql.known import KnownPagesRow, StoredVersion
from trapline.pipeline.sql.scraping import BeginScrapeRow
from trapline.pipeline.steps import Steps
from trapline.pipeline.submit import host_gate
from trapline.pipeline.visits import PageVisit
from trapline.queue import jobs
from trapline.queue.direct import Beginning, Direct, Held, ended_by
from trapline.queue.finishing import Attempt
from trapline.queue.jobs import NewJob
from trapline.queue.retries import Verdict
from trapline.queue.tasks import NewTask
from trapline.settings import Settings
from trapline.store.blobs import Blobs
from trapline.store.pages import Change

# Beyond its fetch, a page needs this to be read and stored.
_READING: Final = timedelta(seconds=5)
# What waits to be stored is in memory; a page that is larger is stored before it is answered.
_LARGE: Final = 2**20


# What `tenancy.refused` says.
_ASKER: Final = "asker"


class NotCached(NotFound):
    """There is no stored answer of that age, and only a stored one was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraped:
    """What a scrape came to. `code` says how it ended; a page that is not there has a document too."""

    url: str
    """As asked for, in canonical form."""
    final_url: str
    code: ExitCode
    job_id: JobId | None = None
    """None for an answer that was stored: nothing was done for it. And where the job was taken for dead."""
    error: str | None = None
    """A sentence for people, where it did not end well."""
    status: int | None = None
    content_type: str | None = None
    document: Document | None = None
    body: bytes | None = None
    """Only where `with_body` asks for it."""
    attributes: tuple[AttributeValues, ...] = ()
    cache: Literal["hit", "miss"] = "miss"
    cached_at: datetime | None = None
    """When the stored answer was last confirmed."""
    visit_id: int | None = None
    page_id: PageId | None = None
    version_id: int | None = None
    change: Change | None = None
    previous_at: datetime | None = None
    """When the version before was fetched; only where `track_changes` asks for it."""
    diff: Diff | None = None
    retry_after: float | None = None
    waited: float = 0.0
    """Seconds before its turn at the host, or within its organisation's limit."""
    waited_for: str | None = None
    took_ms: int = 0

    @property
    def outcome(self) -> Outcome:
        """What follows from how it ended."""
        return OUTCOMES[self.code]

    @property
    def ok(self) -> bool:
        return self.outcome.category is Category.CONTENTFUL

    @property
    def warning(self) -> str | None:
        return None if self.document is None else self.document.warning


@dataclass(slots=True)
class Scraper:
    """Scrapes in this process."""

    database: Database
    steps: Steps
    direct: Direct
    blobs: Blobs

    async def scrape(
        self, asker: Asker, options: PageOptions, *, answer_first: bool = False
    ) -> Scraped:
        """Visit a page and answer with what is wanted of it.

        Every end of a visit is an answer. Raised are TookTooLong when its time is up before there
        is one, and NotCached where only a stored answer would do.

        With `answer_first` a page that was read may be stored after this returns, by `afterwards`:
        then nothing is said of its visit, version and change.

        Who asks with a claim that does not hold gets AskerChanged, before anything is done or told.
        """
        if not self._begins_at_once(options):
            asker = await self._established(asker)
        await self.settled(_page(asker.organisation_id, options.url))
        stored = await self._stored(asker, options)
        if stored is not None:
            return stored
        latest = datetime.now(UTC) + timedelta(seconds=options.scrape.timeout or DEFAULT_TIMEOUT)
        job = _job(asker, options, self.database.settings)
        crawl = self.steps.crawls.make(job.id, asker.organisation_id, options)
        if not options.ignore_robots:
            await self._robots(crawl, options.url, latest)
        held, known = await self._begin(asker, job, options, latest)
        attempt = await self._attempt(crawl, held, latest, known)
        first = answer_first and self._may_be_stored_later(attempt)
        if first:
            await self._store_later(attempt)
        else:
            await self.direct.finish(attempt)
        return await self._filled(_answer(held, attempt, is_stored=not first), attempt.value)

    async def settled(self, about: Hashable | None = None) -> None:
        """Wait until what this process has answered is stored: all of it, or of an organisation, or a job."""
        await self.direct.afterwards.settled(about)

    # From what is stored

    async def _stored(self, asker: Asker, options: PageOptions) -> Scraped | None:
        """Return an older answer where that will do."""
        scrape = options.scrape
        only = scrape.only_cached or scrape.min_age is not None
        if not scrape.max_age and not only:
            return None
        version = await self._version(asker, options)
        answer = None if version is None else await self._from_version(options, version)
        if answer is None and only:
            raise NotCached
        return answer

    async def _version(self, asker: Asker, options: PageOptions) -> StoredVersion | None:
        scrape, now = options.scrape, datetime.now(UTC)
        async with self.database.tenant_tx(asker.organisation_id, asker.member_id) as conn:
            return await known.latest_version(
                conn,
                organisation_id=asker.organisation_id,
                hash=url_hash(options.url),
                site_id=options.site_id,
                origin=origin_of(options.url),
                seen_since=_ago(now, scrape.max_age),
                seen_until=_ago(now, scrape.min_age),
            )

    async def _from_version(self, options: PageOptions, version: StoredVersion) -> Scraped | None:
        scrape = options.scrape
        answer = Scraped(
            url=options.url,
            final_url=version.url,
            code=ExitCode.CONTENT,
            status=version.status,
            content_type=version.content_type,
            document=documents.as_stored(version, scrape.formats),
            cache="hit",
            cached_at=version.last_seen_at,
            visit_id=version.visit_id,
            page_id=version.page_id,
            version_id=version.id,
            change=Change.SAME,
        )
        if not scrape.as_stored:
            try:
                async with self.database.tenant_tx(version.organisation_id) as conn:
                    body = await documents.bytes_of(conn, self.blobs, version)
            except NotFound:
                return None
            answer = await _read(answer, documents.refetched(version, body), scrape, None)
        return await self._compared(answer) if scrape.track_changes else answer

    # From the site

    async def _robots(self, crawl: Crawl, url: str, latest: datetime) -> None:
        """Read robots.txt before the gate: its Crawl-delay decides how long to wait there."""
        async with until(latest):
            await self.steps.robots_of(crawl, origin_of(url))

    async def _begin(
        self, asker: Asker, job: NewJob, options: PageOptions, latest: datetime
    ) -> tuple[Held, KnownPagesRow | None]:
        """Take a place at the host; the same statement tells what is known of the page."""
        found: list[BeginScrapeRow] = []

        async def ask(conn: Connection, asked: Beginning) -> BeginScrapeRow:
            found.append(await _begun(conn, asked, asker, options))
            return found[-1]

        held = await self.direct.begin(job, _task(asker, options), latest=latest, ask=ask)
        # Who had to wait asks again: others may have visited the page since.
        useless = held.waited_for or job.zero_data_retention
        return held, None if useless else _known(found[-1])

    # Who asks

    def _begins_at_once(self, options: PageOptions) -> bool:
        """Whether the first thing to be done is to take a place: then, who asks is looked up there."""
        scrape = options.scrape
        older = scrape.max_age or scrape.only_cached or scrape.min_age is not None
        asks_nobody = options.ignore_robots or self.steps.robots.is_known(
            origin_of(options.url), verify_tls=scrape.verify_tls
        )
        return asks_nobody and not older

    async def _established(self, asker: Asker) -> Asker:
        claim = asker.claim
        if claim is None:
            return asker
        reason = await self.database.statement(
            lambda conn: scrapes.refused(
                conn, api_key_id=claim.api_key_id, organisation_id=asker.organisation_id
            )
        )
        if reason is not None:
            raise AskerChanged
        return replace(asker, claim=None)

    async def _attempt(
        self, crawl: Crawl, held: Held, latest: datetime, known: KnownPagesRow | None
    ) -> Attempt:
        """Visit the page; a visit that comes to nothing is finished here, by what it was ended by."""
        task = held.task
        try:
            async with until(latest + _READING):
                done = await self.steps.visit(crawl, task, known)
        except BaseException as error:
            await self.direct.finish(ended_by(task, error))
            raise
        attempt = Attempt(task) if done.error is None else ended_by(task, done.error)
        attempt.value, attempt.gate = done.result, done.gate
        return attempt

    def _may_be_stored_later(self, attempt: Attempt) -> bool:
        """Whether the answer needs nothing of what is stored, and others nothing of how it ended."""
        visit: PageVisit = attempt.value
        return (
            self.steps.settings.answer_first
            and attempt.verdict is Verdict.COMPLETED
            and visit.fetched.exit_code is ExitCode.CONTENT
            and len(visit.fetched.body) <= _LARGE
            and not visit.crawl.options.scrape.track_changes
        )

    async def _store_later(self, attempt: Attempt) -> None:
        visit: PageVisit = attempt.value
        task, organisation_id = attempt.task, attempt.task.organisation_id
        pages = {_page(organisation_id, url) for url in (visit.task.url, visit.fetched.url)}
        await self.direct.afterwards.add(attempt, frozenset({task.job_id, organisation_id, *pages}))

    async def _filled(self, answer: Scraped, visit: PageVisit) -> Scraped:
        """Add what is wanted of the page to how its visit ended."""
        fetched, options = visit.fetched, visit.crawl.options.scrape
        if fetched.exit_code is ExitCode.NOT_MODIFIED and answer.version_id is not None:
            async with self.database.tenant_tx(visit.crawl.organisation_id) as conn:
                document = await documents.of_version(conn, self.blobs, answer.version_id, options)
            answer = replace(answer, document=document, content_type=document.content_type)
        elif fetched.body:
            ready = visit.document if options.canonical else None
            answer = await _read(answer, fetched, options, ready)
        return await self._compared(answer) if options.track_changes else answer

    async def _compared(self, answer: Scraped) -> Scraped:
        """Add what changed since the version before."""
        if answer.version_id is None:
            return answer
        async with self.database.system_tx() as conn:
            before = await known.version_before(conn, version_id=answer.version_id)
            now = await known.version_by_id(conn, version_id=answer.version_id)
        if before is None or now is None:
            return replace(answer, previous_at=None if answer.change is Change.NEW else _at(now))
        if answer.change is Change.SAME:
            return replace(answer, previous_at=now.fetched_at)
        difference = diff(before.markdown, now.markdown)
        return replace(answer, previous_at=before.fetched_at, diff=difference)


def _at(version: StoredVersion | None) -> datetime | None:
    return None if version is None else version.fetched_at


def _job(asker: Asker, options: PageOptions, settings: Settings) -> NewJob:
    ttl, failed_ttl = jobs.times_kept(settings, single=True)
    return NewJob(
        SCRAPE,
        asker.organisation_id,
        id=asker.job_id or jobs.new_id(),
        member_id=asker.member_id,
        options=msgspec.to_builtins(options),
        metadata=asker.metadata,
        trace_id=asker.trace_id,
        zero_data_retention=options.scrape.zero_data_retention,
        ttl=ttl,
        failed_ttl=failed_ttl,
    )


def _task(asker: Asker, options: PageOptions) -> NewTask:
    return NewTask(
        PAGE,
        PageTask(url=options.url),
        gate=host_gate(options, options.url),
        max_attempts=1,
        trace_id=asker.trace_id,
    )


async def _begun(
    conn: Connection, asked: Beginning, asker: Asker, options: PageOptions
) -> BeginScrapeRow:
    claim = asker.claim
    row = await scrapes.begin_scrape(
        conn,
        jobs=asked.jobs,
        tasks=asked.tasks,
        gates=asked.gates,
        latest=asked.latest,
        agent_id=asked.agent_id,
        lease_time=asked.lease_time,
        again=asked.again,
        is_claimed=claim is not None,
        api_key_id=None if claim is None else claim.api_key_id,
        organisation_id=asker.organisation_id,
        given_site=options.site_id,
        origin=origin_of(options.url),
        hash=url_hash(options.url),
    )
    assert row is not None  # noqa: S101 (a function with OUT columns has one row)
    if row.blocked_by == _ASKER:
        raise AskerChanged
    return row


def _known(row: BeginScrapeRow) -> KnownPagesRow:
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
    )


def _page(organisation_id: OrganisationId, url: str) -> Hashable:
    """What the scrapes of a page are waited for by."""
    return organisation_id, url


def _answer(held: Held, attempt: Attempt, *, is_stored: bool) -> Scraped:
    visit: PageVisit = attempt.value
    fetched, recorded = visit.fetched, visit.recorded
    named = attempt.held or not is_stored
    if not attempt.held:
        # The page is here, but its task was taken away, or is not finished yet.
        visit.visit_id = recorded = None
    return Scraped(
        job_id=held.task.job_id if named else None,
        url=visit.task.url,
        final_url=fetched.url,
        code=attempt.code or fetched.exit_code,
        error=attempt.error,
        status=fetched.status,
        content_type=fetched.content_type or fetched.media_type,
        visit_id=visit.visit_id,
        page_id=None if recorded is None else recorded.page_id,
        version_id=None if recorded is None else recorded.version_id,
        change=None if recorded is None else recorded.change,
        retry_after=fetched.retry_after,
        waited=held.waited,
        waited_for=held.waited_for,
        took_ms=visit.took_ms,
    )


async def _read(
    answer: Scraped, fetched: Fetched, options: ScrapeOptions, ready: Document | None
) -> Scraped:
    """Read the bytes as wanted. A page that is not there may have no more than its status."""
    try:
        document = ready or await documents.wanted(fetched, options)
    except VisitFailed:
        document = None
    return replace(
        answer,
        document=document,
        body=fetched.body if options.with_body else None,
        attributes=documents.attributes(fetched.body, answer.content_type, options),
    )


def _ago(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now - timedelta(seconds=seconds)
