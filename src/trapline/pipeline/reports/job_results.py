"""The results of a job that visits pages: counts, pages in the order they were finished, failures."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import OUTCOMES, ExitCode, NotFound, VisitFailed
from trapline.extract.html.attributes import AttributeValues
from trapline.model import Document, Fetched, JobId, TaskId
from trapline.pipeline import document_formats
from trapline.pipeline.crawl import job_log_messages
from trapline.pipeline.crawl.job_context import options_of
from trapline.pipeline.options import ScrapeOptions
from trapline.pipeline.sql import job_results as queries
from trapline.pipeline.sql import page_lookup
from trapline.pipeline.sql.job_results import PageFailuresRow, PagesDoneRow
from trapline.pipeline.sql.page_lookup import StoredVersion
from trapline.queue.sql.jobs import JobRow
from trapline.store import zero_retention
from trapline.store.blobs import BlobStore
from trapline.store.sql.zero_retention import FleetingRow

# Few enough to hold in memory; two reads give a status of a hundred documents and the one more that
# tells whether others follow.
_AT_ONCE: Final = 51
_MOST_FAILURES: Final = 10_000
_GONE: Final = "Its content is no longer stored."


@dataclass(frozen=True, slots=True)
class PageCounts:
    """Pages only: other tasks of a job, such as sitemaps, are not counted."""

    completed: int
    remaining: int
    failed: int
    skipped: int
    robots_blocked: bool = False
    """Whether robots.txt kept a completed crawl from some URLs."""


@dataclass(frozen=True, slots=True)
class PageResult:
    """A page in the formats of its job; `number` is that of its event."""

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
    """Its changeTracking since the last scrape under the job's tag."""


async def count_pages(conn: Connection, job_id: JobId) -> PageCounts:
    row = await queries.count_pages(conn, job_id=job_id, refusing_step=job_log_messages.ROBOTS)
    if row is None:
        raise NotFound(f"There is no job {job_id}.")
    return PageCounts(row.completed, row.remaining, row.failed, row.skipped, row.robots_blocked)


def scrape_options(job: JobRow) -> ScrapeOptions:
    """Return the scrape options of a job."""
    return options_of(job.kind, job.options).scrape


@dataclass(frozen=True, slots=True)
class JobResults:
    """Reads the pages of jobs."""

    database: Database
    blobs: BlobStore

    async def pages(
        self, job: JobRow, *, after: int = 0, skip: int = 0, most: int | None = None
    ) -> AsyncIterator[PageResult]:
        """Yield pages in the order they were finished, read in small batches."""
        options, yielded = scrape_options(job), 0
        while most is None or yielded < most:
            at_once = _AT_ONCE if most is None else min(_AT_ONCE, most - yielded)
            async with self.database.tenant_tx(job.organisation_id) as conn:
                rows = await queries.pages_done(
                    conn, job_id=job.id, after=after, skip=skip, most=at_once
                )
                pages = await self._read(conn, job, rows, options)
            for page in pages:
                yield page
            if len(rows) < at_once:
                return
            yielded, after, skip = yielded + len(rows), rows[-1].number, 0

    async def page(self, conn: Connection, job: JobRow, number: int) -> PageResult | None:
        """Return the page of one event."""
        rows = await queries.pages_done(conn, job_id=job.id, after=number - 1, skip=0, most=1)
        if not rows or rows[0].number != number:
            return None
        return (await self._read(conn, job, rows, scrape_options(job)))[0]

    async def _read(
        self, conn: Connection, job: JobRow, rows: Sequence[PagesDoneRow], options: ScrapeOptions
    ) -> list[PageResult]:
        if job.zero_data_retention:
            kept = await zero_retention.of_tasks(conn, job.id, [row.task_id for row in rows])
            return [
                _result(row, await _zero_retention(row, kept.get(row.task_id), options))
                for row in rows
            ]
        ids = [row.version_id for row in rows if row.version_id is not None]
        versions = {
            version.id: version
            for version in await page_lookup.versions_by_ids(conn, version_ids=ids)
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
            return _Content(document_formats.stored_document(version, options.formats))
        try:
            body = await document_formats.version_body(conn, self.blobs, version)
        except NotFound:
            return _Content(document_formats.stored_document(version, options.formats))
        return await _extract(document_formats.version_as_fetched(version, body), options)


@dataclass(frozen=True, slots=True)
class _Content:
    document: Document
    attributes: tuple[AttributeValues, ...] = ()
    body: bytes | None = None


async def _zero_retention(
    row: PagesDoneRow, kept: FleetingRow | None, options: ScrapeOptions
) -> _Content:
    """Return the content of a zero-retention job, while it is kept."""
    if kept is None:
        return _Content(Document(row.url, warning=_GONE))
    body = zero_retention.body_of(kept)
    return await _extract(
        document_formats.as_fetched(kept.url, kept.status, kept.content_type, body), options
    )


async def _extract(fetched: Fetched, options: ScrapeOptions) -> _Content:
    body = fetched.body if options.with_body else None
    try:
        return _Content(
            await document_formats.requested_document(fetched, options),
            await document_formats.attributes(fetched.body, fetched.content_type, options),
            body,
        )
    except VisitFailed as error:
        return _Content(Document(fetched.url, warning=error.message), body=body)


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
    """Return the failed pages of a job."""
    return await queries.page_failures(conn, job_id=job_id, most=_MOST_FAILURES)


async def robots_blocked(conn: Connection, job_id: JobId) -> list[str]:
    """Return the URLs that robots.txt forbids: of skipped pages and of links."""
    skipped = await queries.pages_skipped(
        conn, job_id=job_id, code=ExitCode.ROBOTS_DISALLOWED, most=_MOST_FAILURES
    )
    links = await queries.links_refused(
        conn, job_id=job_id, step=job_log_messages.ROBOTS, most=_MOST_FAILURES
    )
    return list(dict.fromkeys([*skipped, *links]))[:_MOST_FAILURES]


def firecrawl_code(code: int) -> str | None:
    """Return Firecrawl's error code for an exit code."""
    return OUTCOMES[ExitCode(code)].firecrawl_code
