"""Operations on sources: progress, cancel, retry, delete; and the end of their jobs."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict, NotFound
from trapline.knowledge import applications, progress_counters, sources
from trapline.knowledge.progress_counters import CounterChange
from trapline.knowledge.sql import applications as application_queries
from trapline.knowledge.sql import firecrawl_inbox as intake_queries
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.applications import ApplicationRow
from trapline.knowledge.sql.firecrawl_inbox import IntakeRow
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, JobId, OrganisationId, SourceId
from trapline.pipeline.ingest import remote_firecrawl, source_schedules
from trapline.pipeline.ingest.firecrawl_inbox import SENDER
from trapline.pipeline.kinds import FILE, INDEX
from trapline.pipeline.sql import sources as reads
from trapline.pipeline.sql.sources import SourceDetails
from trapline.queue import dead_letters, jobs
from trapline.queue.dead_letters import DeadLetterFilter, RetryJob
from trapline.queue.kinds import Kinds
from trapline.queue.sql.jobs import JobRow


@dataclass(frozen=True, slots=True)
class Progress:
    """The items of a source or an application; `total` is the sum of the states."""

    total: int
    completed: int
    failed: int
    processing: int
    pending: int
    cancelled: int = 0

    @property
    def ended(self) -> bool:
        return not self.processing and not self.pending


_BUSY: Final = frozenset({"pending", "processing"})


async def require_idle(conn: Connection, source: SourceRow) -> None:
    """Raise Conflict while a job fills a source."""
    row = await reads.get_source(conn, source_id=source.id)
    if source.job_id is not None and row is not None and row.status in _BUSY:
        raise Conflict(f"The source is being fetched already, by job {source.job_id}.")


async def show(
    conn: Connection, organisation_id: OrganisationId, source_id: SourceId
) -> SourceDetails:
    row = await reads.get_source(conn, source_id=source_id)
    if row is None or row.organisation_id != organisation_id:
        raise NotFound(f"There is no knowledge source {source_id}.")
    return row


async def progress(
    conn: Connection, organisation_id: OrganisationId, scope: UUID, *, now: datetime
) -> Progress:
    """Return the progress of a source, or of an application in the last 24 hours."""
    row = await reads.get_source(conn, source_id=SourceId(scope))
    if row is not None and row.organisation_id == organisation_id:
        return _of_file(row) if row.kind == "file" else await _of_scope(conn, scope, None)
    application = await application_queries.get_application(
        conn, application_id=ApplicationId(scope)
    )
    if application is None or application.organisation_id != organisation_id:
        raise NotFound(f"There is no knowledge source or application {scope}.")
    return await _of_scope(conn, scope, progress_counters.since(now))


def _of_file(row: SourceDetails) -> Progress:
    """A file is one item."""
    return Progress(total=1, **{name: int(row.status == name) for name in _STATES})


_STATES: Final = ("completed", "failed", "processing", "pending", "cancelled")


async def _of_scope(conn: Connection, scope: UUID, since: datetime | None) -> Progress:
    row = await reads.scope_progress(conn, scope=scope, since=since)
    assert row is not None  # noqa: S101 (sums have one row, also those of nothing)
    processing = min(row.in_hand, row.rest)
    return Progress(
        row.total, row.completed, row.failed, processing, row.rest - processing, row.cancelled
    )


async def cancel(conn: Connection, source: SourceRow, *, by: str | None = None) -> JobId:
    """Cancel the job that fetches a source. A file has the job of its whole upload."""
    if source.job_id is None:
        raise Conflict("No job runs for that source.")
    job_id = JobId(source.job_id)
    await jobs.cancel(conn, job_id, by=by)
    return job_id


async def retry(conn: Connection, job_id: JobId, *, by: str | None = None) -> JobId:
    """Run a job's failed tasks again."""
    now = datetime.now(UTC)
    retried = await dead_letters.retry_job(conn, Kinds.stored(), job_id, by=by, now=now)
    await _count_again(conn, retried)
    return retried.job_id


async def retry_letters(
    conn: Connection,
    organisation_id: OrganisationId,
    chosen: DeadLetterFilter,
    *,
    by: str | None = None,
) -> JobId:
    """Run dead letters of any jobs again."""
    now = datetime.now(UTC)
    retried = await dead_letters.retry(
        conn, Kinds.stored(), organisation_id, chosen, by=by, now=now
    )
    await _count_again(conn, retried)
    return retried.job_id


async def _count_again(conn: Connection, retried: RetryJob) -> None:
    """Sources whose items are tried again are pending again, and counted in the new job alone."""
    items = [
        (letter.job_id, msgspec.convert(letter.payload, Item))
        for letter in retried.letters
        if letter.kind in {FILE, INDEX}
    ]
    if not items:
        return
    source_ids = list({item.source_id for _, item in items})
    await queries.begin_job(conn, source_ids=source_ids, job_id=retried.job_id)
    places = {
        row.source_id: row for row in await queries.source_targets(conn, source_ids=source_ids)
    }
    new = await jobs.get(conn, retried.job_id)
    olds = {job_id: await jobs.get(conn, job_id) for job_id in {job_id for job_id, _ in items}}
    changes = []
    for job_id, item in items:
        if item.source_id not in places:
            continue
        for scope in _scopes(places[item.source_id].kind, item.source_id, item.application_id):
            made = olds[job_id].created_at
            changes.append(CounterChange(new.organisation_id, scope, job_id, made, -1, 0, -1))
            changes.append(CounterChange(new.organisation_id, scope, new.id, new.created_at, 1))
    await progress_counters.add(conn, changes)


class Item(msgspec.Struct, frozen=True):
    """What the tasks that fill a source have in common."""

    source_id: SourceId
    application_id: ApplicationId | None = None


def _scopes(kind: str, source_id: SourceId, application_id: ApplicationId | None) -> list[UUID]:
    scopes: list[UUID] = [] if kind == "file" else [source_id]
    return scopes if application_id is None else [*scopes, application_id]


async def delete(conn: Connection, source: SourceRow) -> None:
    """Delete a source with all that search reads of it; what is under way for it comes to nothing."""
    shown = await reads.get_source(conn, source_id=source.id)
    busy = shown is not None and shown.status in _BUSY
    if busy and source.job_id is not None and source.kind != "file":
        await _cancel_job(conn, JobId(source.job_id), by="the source was deleted")
    elif busy and source.job_id is not None and source.application_id is not None:
        job = await jobs.get(conn, JobId(source.job_id))
        gone = CounterChange(
            source.organisation_id, source.application_id, job.id, job.created_at, -1
        )
        await progress_counters.add(conn, [gone])
    await source_schedules.remove(conn, source.organisation_id, [source.id])
    await sources.delete(conn, [source.id])


async def _cancel_job(conn: Connection, job_id: JobId, *, by: str) -> None:
    """Cancel the job of a source before its deletion, and its remote crawl, which is still known."""
    await jobs.cancel(conn, job_id, by=by)
    await _cancel_remote(conn, await intake_queries.intake_of_job(conn, job_id=job_id))


async def delete_application(conn: Connection, application: ApplicationRow) -> int:
    """Delete an application with its sources; the jobs that fill them are cancelled."""
    rows = await queries.sources_of_application(conn, application_id=application.id)
    for job_id in sorted({row.job_id for row in rows if row.job_id is not None}):
        try:
            await _cancel_job(conn, JobId(job_id), by="the application was deleted")
        except (Conflict, NotFound):
            continue
    fetched = [row.source_id for row in rows if row.kind != "file"]
    await source_schedules.remove(conn, application.organisation_id, fetched)
    await sources.delete(conn, [row.source_id for row in rows], application.id)
    await applications.delete(conn, application.id)
    return len(rows)


async def note_job_end(conn: Connection, job: JobRow) -> None:
    """Record in sources how their job ended."""
    failed = {row.source_id: row.error for row in await reads.failed_items(conn, job_id=job.id)}
    reason = (
        await reads.last_page_error(conn, job_id=job.id)
        or next(iter(failed.values()), None)
        or "There is no text in it."
    )
    status, error = job.status, job.error
    intake = await intake_queries.intake_of_job(conn, job_id=job.id)
    if intake is not None and intake.ended in {"failed", "cancelled"}:
        # The pages that came are indexed, but the remote crawl says that some are missing.
        status, error = intake.ended, intake.error or f"The remote crawl was {intake.ended}."
    elif job.status == "cancelled":
        await _cancel_remote(conn, intake)
    await queries.finish_sources(conn, job_id=job.id, status=status, error=error, reason=reason)
    left = await queries.unfinished_files(conn, job_id=job.id)
    await queries.finish_files(
        conn,
        source_ids=[row.source_id for row in left],
        job_ids=[job.id] * len(left),
        statuses=["failed" if row.source_id in failed else "cancelled" for row in left],
        errors=[failed.get(row.source_id) for row in left],
    )
    if failed:
        await _count_lost_items(conn, job)
    await progress_counters.close_job(conn, job.id)


async def _cancel_remote(conn: Connection, intake: IntakeRow | None) -> None:
    """Cancel a remote crawl that was requested here; other crawls belong to their owners."""
    if intake is None or intake.ended is not None:
        return
    source = await queries.get_source(conn, source_id=SourceId(intake.source_id))
    if source is not None and source.provider == SENDER:
        await remote_firecrawl.queue_cancellation(
            conn, source.organisation_id, intake.job_id, intake.crawl
        )


async def _count_lost_items(conn: Connection, job: JobRow) -> None:
    """Count items that failed without an event: their worker died of them, or could not store them."""
    lost = await reads.lost_items(conn, job_id=job.id)
    await progress_counters.add(
        conn,
        [
            CounterChange(job.organisation_id, row.scope, job.id, job.created_at, failed=row.items)
            for row in lost
        ],
    )
