"""What a job that visits pages has come to: its counts, its pages in the order they were finished,
and those that it could not have.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import OUTCOMES, ExitCode, NotFound
from trapline.extract.attributes import AttributeValues
from trapline.model import Document, Fetched, JobId, TaskId
from trapline.pipeline import documents, noting
from trapline.pipeline.crawls import options_of
from trapline.pipeline.options import ScrapeOptions
from trapline.pipeline.sql import known
from trapline.pipeline.sql import results as queries
from trapline.pipeline.sql.known import StoredVersion
from trapline.pipeline.sql.results import PageFailuresRow, PagesDoneRow
from trapline.queue.sql.jobs import JobRow
from trapline.store import fleeting
from trapline.store.blobs import Blobs
from trapline.store.sql.fleeting import FleetingRow

# So many are read at once: few enough to hold in memory, and a status with a hundred documents, and
# the one more that tells whether others follow, in two reads.
_AT_ONCE: Final = 51
_MOST_FAILURES: Final = 10_000
_GONE: Final = "Its content is no longer stored."


@dataclass(frozen=True, slots=True)
class Counts:
    """Pages only: what else a job does, such as reading sitemaps, is not counted."""

    completed: int
    remaining: int
    failed: int
    skipped: int
    robots_blocked: bool = False
    """Whether a crawl that is completed left something out because robots.txt forbids it."""


@dataclass(frozen=True, slots=True)
class PageResult:
    """A page as its job's options want it. `number` is that of the event that told of it."""

    number: int
    task_id: TaskId
    source_url: str
    url: str
    status: int | None
    finished_at: datetime
    document: Document
    attributes: tuple[AttributeValues, ...] = ()
    body: bytes | None = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    """What a language model said of it, by the kind of the wish."""
    warnings: Sequence[str] = ()
    change: str | None = None
    tracking: Mapping[str, Any] | None = None
    """What became of it since the last scrape under the job's tag."""


async def counts(conn: Connection, job_id: JobId) -> Counts:
    row = await queries.count_pages(conn, job_id=job_id, refusing_step=noting.ROBOTS)
    if row is None:
        raise NotFound(f"There is no job {job_id}.")
    return Counts(row.completed, row.remaining, row.failed, row.skipped, row.robots_blocked)


def scrape_options(job: JobRow) -> ScrapeOptions:
    """Return what a job's pages are wanted as."""
    return options_of(job.kind, job.options).scrape


@dataclass(frozen=True, slots=True)
class Results:
    """Reads the pages of jobs."""

    database: Database
    blobs: Blobs

    async def pages(
        self, job: JobRow, *, after: int = 0, skip: int = 0, most: int | None = None
    ) -> AsyncIterator[PageResult]:
        """Give pages in the order they were finished, a few at a time, until nobody asks for more."""
        options, given = scrape_options(job), 0
        while most is None or given < most:
            at_once = _AT_ONCE if most is None else min(_AT_ONCE, most - given)
            async with self.database.tenant_tx(job.organisation_id) as conn:
                rows = await queries.pages_done(
                    conn, job_id=job.id, after=after, skip=skip, most=at_once
                )
                found = await self._read(conn, job, rows, options)
            for page in found:
                yield page
            if len(rows) < at_once:
                return
            given, after, skip = given + len(rows), rows[-1].number, 0

    async def page(self, conn: Connection, job: JobRow, number: int) -> PageResult | None:
        """Return the page that one event told of."""
        rows = await queries.pages_done(conn, job_id=job.id, after=number - 1, skip=0, most=1)
        if not rows or rows[0].number != number:
            return None
        return (await self._read(conn, job, rows, scrape_options(job)))[0]

    async def _read(
        self, conn: Connection, job: JobRow, rows: Sequence[PagesDoneRow], options: ScrapeOptions
    ) -> list[PageResult]:
        if job.zero_data_retention:
            kept = await fleeting.of_tasks(conn, job.id, [row.task_id for row in rows])
            return [
                _result(row, await _fleeting(row, kept.get(row.task_id), options)) for row in rows
            ]
        ids = [row.version_id for row in rows if row.version_id is not None]
        versions = {
            version.id: version for version in await known.versions_by_ids(conn, version_ids=ids)
        }
        return [
            _result(row, await self._stored(conn, row, versions.get(row.version_id or 0), options))
            for row in rows
        ]

    async def _stored(
        self,
        conn: Connection,
        row: PagesDoneRow,
        version: StoredVersion | None,
        options: ScrapeOptions,
    ) -> "_Content":
        """Return the content of a version."""
        if version is None:
            return _Content(Document(row.url, warning=_GONE))
        if options.as_stored:
            return _Content(documents.as_stored(version, options.formats))
        try:
            body = await documents.bytes_of(conn, self.blobs, version)
        except NotFound:
            return _Content(documents.as_stored(version, options.formats))
        return await _wanted(documents.refetched(version, body), options)


@dataclass(frozen=True, slots=True)
class _Content:
    document: Document
    attributes: tuple[AttributeValues, ...] = ()
    body: bytes | None = None


async def _fleeting(
    row: PagesDoneRow, kept: FleetingRow | None, options: ScrapeOptions
) -> _Content:
    """Return content that leaves no trace, while it is there."""
    if kept is None:
        return _Content(Document(row.url, warning=_GONE))
    body = fleeting.body_of(kept)
    return await _wanted(
        documents.as_fetched(kept.url, kept.status, kept.content_type, body), options
    )


async def _wanted(fetched: Fetched, options: ScrapeOptions) -> _Content:
    return _Content(
        await documents.wanted(fetched, options),
        documents.attributes(fetched.body, fetched.content_type, options),
        fetched.body if options.with_body else None,
    )


def _result(row: PagesDoneRow, content: _Content) -> PageResult:
    return PageResult(
        row.number,
        row.task_id,
        row.source_url,
        row.url,
        row.status,
        row.created_at,
        content.document,
        content.attributes,
        content.body,
        row.answers or {},
        row.warnings or (),
        row.change,
        row.tracking,
    )


async def failures(conn: Connection, job_id: JobId) -> list[PageFailuresRow]:
    """Return the pages that could not be had."""
    return await queries.page_failures(conn, job_id=job_id, most=_MOST_FAILURES)


async def robots_blocked(conn: Connection, job_id: JobId) -> list[str]:
    """Return the URLs that robots.txt forbids: of pages that were to be visited, and of links."""
    skipped = await queries.pages_skipped(
        conn, job_id=job_id, code=ExitCode.ROBOTS_DISALLOWED, most=_MOST_FAILURES
    )
    links = await queries.links_refused(
        conn, job_id=job_id, step=noting.ROBOTS, most=_MOST_FAILURES
    )
    return list(dict.fromkeys([*skipped, *links]))[:_MOST_FAILURES]


def firecrawl_code(code: int) -> str | None:
    """Return what clients of Firecrawl call a failure."""
    return OUTCOMES[ExitCode(code)].firecrawl_code
