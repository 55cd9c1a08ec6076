"""What people do with sources: fetch, look how far they are, cancel, retry, delete."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict, NotFound
from trapline.knowledge import applications, sources, tally
from trapline.knowledge.config import IngestConfig
from trapline.knowledge.sources import NewSource, Provider
from trapline.knowledge.sql import applications as application_queries
from trapline.knowledge.sql import intake as intake_queries
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql import tally as tally_queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.knowledge.tally import Change
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId
from trapline.pipeline import submit
from trapline.pipeline.kinds import stored_kinds
from trapline.pipeline.options import CrawlOptions, PageOptions, VisitOptions
from trapline.pipeline.sql import ingestion as reads
from trapline.pipeline.sql.ingestion import ShownSource
from trapline.queue import deadletters, jobs
from trapline.queue.sql.jobs import JobRow
from trapline.settings import Settings

CRAWL_LIMIT: Final = 50
CRAWL_DEPTH: Final = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How many items there are, and how far they are. They add up."""

    total: int
    completed: int
    failed: int
    processing: int
    pending: int
    cancelled: int = 0

    @property
    def ended(self) -> bool:
        return not self.processing and not self.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A page or a site to be fetched into a source."""

    organisation_id: OrganisationId
    url: str
    config: IngestConfig
    crawl_links: bool = False
    limit: int = CRAWL_LIMIT
    max_depth: int = CRAWL_DEPTH
    application_id: ApplicationId | None = None
    member_id: MemberId | None = None
    rescrape_every: Any = None
    provider: Provider = "trapline"
    options: dict[str, Any] | None = None
    """Further options of the crawl or the visit."""

    def crawl(self, source_id: SourceId | None = None) -> CrawlOptions:
        return CrawlOptions.parse(
            **(self.options or {})
            | {
                "url": self.url,
                "limit": self.limit,
                "max_depth": self.max_depth,
                "index": True,
                "source_id": source_id,
            }
        )

    def page(self, source_id: SourceId | None = None) -> PageOptions:
        return PageOptions.parse(
            **(self.options or {}) | {"url": self.url, "index": True, "source_id": source_id}
        )


async def fetch(conn: Connection, wanted: Wanted, settings: Settings) -> tuple[SourceRow, JobId]:
    """Fetch a page or a site into its source, made on first use; return it with the job."""
    checked = wanted.crawl() if wanted.crawl_links else wanted.page()
    source = await sources.ensure(
        conn,
        NewSource(
            organisation_id=wanted.organisation_id,
            kind="site" if wanted.crawl_links else "url",
            uri=checked.url,
            config=wanted.config,
            application_id=wanted.application_id,
            rescrape_every=wanted.rescrape_every,
            created_by=wanted.member_id,
        ),
    )
    await _refuse_busy(conn, source)
    job_id = await _start(conn, wanted, source, settings)
    await sources.begin(conn, [source.id], job_id)
    return source, job_id


async def _refuse_busy(conn: Connection, source: SourceRow) -> None:
    shown = await reads.shown_source(conn, source_id=source.id)
    if source.job_id is not None and shown is not None and shown.status in _BUSY:
        raise Conflict(f"The source is being fetched already, by job {source.job_id}.")


_BUSY: Final = frozenset({"pending", "processing"})


async def _start(conn: Connection, wanted: Wanted, source: SourceRow, settings: Settings) -> JobId:
    ttl, _ = jobs.times_kept(settings)
    metadata = {"knowledgeSourceId": str(source.id)}
    if wanted.crawl_links:
        return await submit.crawl(
            conn,
            wanted.organisation_id,
            wanted.crawl(source.id),
            member_id=wanted.member_id,
            ttl=ttl,
            metadata=metadata,
        )
    page = wanted.page(source.id)
    visit = msgspec.convert(
        {name: getattr(page, name) for name in VisitOptions.__struct_fields__}, VisitOptions
    )
    return await submit.batch(
        conn,
        wanted.organisation_id,
        [page.url],
        visit,
        member_id=wanted.member_id,
        ttl=ttl,
        metadata=metadata,
    )


async def refresh(conn: Connection, source: SourceRow, settings: Settings) -> JobId:
    """Fetch a source again, as it was fetched."""
    if source.kind == "file":
        raise Conflict("A file is not fetched; upload it again.")
    from_config = IngestConfig(**source.config)
    wanted = Wanted(
        organisation_id=source.organisation_id,
        url=source.uri,
        config=from_config,
        crawl_links=source.kind == "site",
        application_id=source.application_id,
        member_id=None if source.created_by is None else MemberId(source.created_by),
    )
    await _refuse_busy(conn, source)
    job_id = await _start(conn, wanted, source, settings)
    await sources.begin(conn, [source.id], job_id)
    return job_id


# Looking


async def shown(
    conn: Connection, organisation_id: OrganisationId, source_id: SourceId
) -> ShownSource:
    row = await reads.shown_source(conn, source_id=source_id)
    if row is None or row.organisation_id != organisation_id:
        raise NotFound(f"There is no knowledge source {source_id}.")
    return row


async def progress(
    conn: Connection, organisation_id: OrganisationId, scope: UUID, *, now: datetime
) -> Progress:
    """Return how far a source is, or an application with what was asked of it in the last 24 hours."""
    row = await reads.shown_source(conn, source_id=SourceId(scope))
    if row is not None and row.organisation_id == organisation_id:
        return _of_file(row) if row.kind == "file" else await _of_scope(conn, scope, None)
    found = await application_queries.get_application(conn, application_id=ApplicationId(scope))
    if found is None or found.organisation_id != organisation_id:
        raise NotFound(f"There is no knowledge source or application {scope}.")
    return await _of_scope(conn, scope, tally.since(now))


def _of_file(row: ShownSource) -> Progress:
    """A file is one item."""
    is_in = {name: int(row.status == name) for name in _STATES}
    return Progress(total=1, **is_in)


_STATES: Final = ("completed", "failed", "processing", "pending", "cancelled")


async def _of_scope(conn: Connection, scope: UUID, since: datetime | None) -> Progress:
    row = await reads.scope_progress(conn, scope=scope, since=since)
    assert row is not None  # noqa: S101 (sums have one row, also those of nothing)
    processing = min(row.in_hand, row.rest)
    return Progress(
        row.total, row.completed, row.failed, processing, row.rest - processing, row.cancelled
    )


# Changing


async def cancel(conn: Connection, source: SourceRow, *, by: str | None = None) -> JobId:
    """Stop what fills a source that is fetched. A file goes with the whole upload: see its job."""
    if source.job_id is None:
        raise Conflict("Nothing is being done for that source.")
    job_id = JobId(source.job_id)
    await jobs.cancel(conn, job_id, by=by)
    return job_id


async def retry(conn: Connection, job_id: JobId, *, by: str | None = None) -> JobId:
    """Run a job's failed tasks again; their sources are pending again, and counted in the new job."""
    old = await jobs.get(conn, job_id)
    failed = [
        row for row in await reads.failed_items(conn, job_id=job_id) if row.resolved_at is None
    ]
    again = await deadletters.retry_job(conn, stored_kinds(), job_id, by=by, now=datetime.now(UTC))
    if not failed:
        return again
    await queries.begin_job(conn, source_ids=list({r.source_id for r in failed}), job_id=again)
    new = await jobs.get(conn, again)
    places = {
        row.source_id: row
        for row in await queries.places(conn, source_ids=list({r.source_id for r in failed}))
    }
    scopes = [
        scope
        for row in failed
        if row.source_id in places
        for scope in _scopes(places[row.source_id].kind, row.source_id, row.application_id)
    ]
    moved = [Change(old.organisation_id, s, old.id, old.created_at, -1, 0, -1) for s in scopes]
    added = [Change(old.organisation_id, s, again, new.created_at, 1) for s in scopes]
    await tally.add(conn, [*moved, *added])
    return again


def _scopes(kind: str, source_id: SourceId, application_id: ApplicationId | None) -> list[UUID]:
    scopes: list[UUID] = [] if kind == "file" else [source_id]
    return scopes if application_id is None else [*scopes, application_id]


async def delete(conn: Connection, source: SourceRow) -> None:
    """Delete a source with all that search reads of it; what is under way for it comes to nothing."""
    shown = await reads.shown_source(conn, source_id=source.id)
    busy = shown is not None and shown.status in _BUSY
    if busy and source.job_id is not None and source.kind != "file":
        await jobs.cancel(conn, JobId(source.job_id), by="the source was deleted")
    elif busy and source.job_id is not None and source.application_id is not None:
        job = await jobs.get(conn, JobId(source.job_id))
        gone = Change(source.organisation_id, source.application_id, job.id, job.created_at, -1)
        await tally.add(conn, [gone])
    await sources.delete(conn, [source.id])


async def delete_application(conn: Connection, application_id: ApplicationId) -> int:
    """Delete an application with its sources; the jobs that fill them are cancelled."""
    rows = await queries.sources_of_application(conn, application_id=application_id)
    for job_id in sorted({row.job_id for row in rows if row.job_id is not None}):
        try:
            await jobs.cancel(conn, JobId(job_id), by="the application was deleted")
        except (Conflict, NotFound):
            continue
    await sources.delete(conn, [row.source_id for row in rows])
    await tally_queries.forget_tally(conn, scopes=[application_id], but_job_id=None)
    await applications.delete(conn, application_id)
    return len(rows)


# After a job


async def settle(conn: Connection, job: JobRow) -> None:
    """Note for sources how the job that fills them ended, once it has."""
    failed = {row.source_id: row.error for row in await reads.failed_items(conn, job_id=job.id)}
    reason = await reads.last_refusal(conn, job_id=job.id) or "There is no text in it."
    status, error = job.status, job.error
    intake = await intake_queries.intake_of_job(conn, job_id=job.id)
    if intake is not None and intake.ended in {"failed", "cancelled"}:
        # What came is in; but whoever sent it says that it is not all.
        status, error = intake.ended, intake.error or f"The crawl elsewhere was {intake.ended}."
    await queries.end_sources(conn, job_id=job.id, status=status, error=error, reason=reason)
    left = await queries.left_files(conn, job_id=job.id)
    # What a worker could not say itself: it died of the file nine times, or could not store it.
    lost = [row for row in left if row.source_id in failed]
    await queries.end_files(
        conn,
        source_ids=[row.source_id for row in left],
        job_ids=[job.id] * len(left),
        statuses=["failed" if row.source_id in failed else "cancelled" for row in left],
        errors=[failed.get(row.source_id) for row in left],
    )
    await tally.add(
        conn,
        [
            Change(job.organisation_id, row.application_id, job.id, job.created_at, failed=1)
            for row in lost
            if row.application_id is not None
        ],
    )
    await tally.close_job(conn, job.id)
