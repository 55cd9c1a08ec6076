"""Typed functions of jobs.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, MemberId, OrganisationId, TaskId, TraceId


class JobRow(Struct, frozen=True, gc=False):
    id: JobId
    organisation_id: OrganisationId
    member_id: MemberId | None
    kind: str
    status: str
    standing: bool
    priority: int
    parent_id: UUID | None
    retry_of: UUID | None
    retry_count: int
    max_retries: int
    round: int
    options: Any
    variables: Any
    metadata: Any
    trace_id: TraceId | None
    zero_data_retention: bool
    task_limit: int | None
    max_active: int | None
    required_workers: int
    total: int
    remaining: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    found: int
    from_sitemap: int
    reserved: int
    overflow: int
    active: int
    last_event: int
    created_at: datetime
    scheduled_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    ttl: timedelta
    failed_ttl: timedelta | None
    expires_at: datetime | None
    cancelled_by: str | None
    cancel_reason: str | None
    error: str | None
    id_text: str
    begun_at: datetime


class ErrorsOfJobRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    kind: str
    payload: Any
    code: int | None
    error: str
    failed_at: datetime
    resolution: str | None


class UrlsOfJobsRow(Struct, frozen=True, gc=False):
    job_id: JobId
    url: str | None


_CREATE_JOB: Final = """
-- name: CreateJob
INSERT INTO queue.job (
    id, organisation_id, member_id, kind, priority, parent_id, retry_of, retry_count,
    max_retries, options, variables, metadata, trace_id, zero_data_retention, task_limit, max_active,
    required_workers, scheduled_at, ttl, failed_ttl
) VALUES (
    $1, $2, $3, $4,
    $5, $6, $7,
    $8, $9, $10, $11,
    $12, $13, $14, $15,
    $16, $17, $18, $19,
    $20
)
ON CONFLICT DO NOTHING
RETURNING *
"""


async def create_job(
    conn: Connection,
    *,
    id: UUID,
    organisation_id: OrganisationId,
    member_id: MemberId | None,
    kind: str,
    priority: int,
    parent_id: UUID | None,
    retry_of: UUID | None,
    retry_count: int,
    max_retries: int,
    options: Any,
    variables: Any,
    metadata: Any,
    trace_id: TraceId | None,
    zero_data_retention: bool,
    task_limit: int | None,
    max_active: int | None,
    required_workers: int,
    scheduled_at: datetime | None,
    ttl: timedelta,
    failed_ttl: timedelta | None,
) -> JobRow | None:
    """Create a job; no row if the id is taken."""
    row = await conn.fetchrow(
        _CREATE_JOB,
        id,
        organisation_id,
        member_id,
        kind,
        priority,
        parent_id,
        retry_of,
        retry_count,
        max_retries,
        options,
        variables,
        metadata,
        trace_id,
        zero_data_retention,
        task_limit,
        max_active,
        required_workers,
        scheduled_at,
        ttl,
        failed_ttl,
    )
    return None if row is None else JobRow(*row)


_GET_JOB: Final = """
-- name: GetJob
SELECT * FROM queue.job WHERE id = $1
"""


async def get_job(conn: Connection, *, job_id: JobId) -> JobRow | None:
    """A job with its counters."""
    row = await conn.fetchrow(_GET_JOB, job_id)
    return None if row is None else JobRow(*row)


_JOB_IDS_IN_RANGE: Final = """
-- name: JobIdsInRange
SELECT id FROM queue.job WHERE id BETWEEN $1::uuid AND $2::uuid ORDER BY id LIMIT 2
"""


async def job_ids_in_range(conn: Connection, *, low: UUID, high: UUID) -> list[JobId]:
    """The first two jobs whose ids lie in a range."""
    return [row[0] for row in await conn.fetch(_JOB_IDS_IN_RANGE, low, high)]


_ACTIVE_TASKS: Final = """
-- name: ActiveTasks
SELECT count(*) AS "active!"
FROM queue.lane l JOIN queue.leased d ON d.lane_id = l.id
WHERE l.job_id = $1
"""


async def active_tasks(conn: Connection, *, job_id: JobId) -> int:
    """Number of running tasks of a job. It reads leased rows, never queued ones."""
    value: int = await conn.fetchval(_ACTIVE_TASKS, job_id)
    return value


_CANCEL_JOB: Final = """
-- name: CancelJob
SELECT queue.cancel_job($1, $2::text, $3::text) AS "done!"
"""


async def cancel_job(
    conn: Connection, *, job_id: JobId, by_whom: str | None, reason: str | None
) -> bool:
    """Cancel a job; false if it had ended."""
    value: bool = await conn.fetchval(_CANCEL_JOB, job_id, by_whom, reason)
    return value


_PAUSE_JOB: Final = """
-- name: PauseJob
SELECT queue.pause_job($1, $2::text) AS "done!"
"""


async def pause_job(conn: Connection, *, job_id: JobId, by_whom: str | None) -> bool:
    """Pause a job; false if it is not open."""
    value: bool = await conn.fetchval(_PAUSE_JOB, job_id, by_whom)
    return value


_RESUME_JOB: Final = """
-- name: ResumeJob
SELECT queue.resume_job($1, $2::text) AS "done!"
"""


async def resume_job(conn: Connection, *, job_id: JobId, by_whom: str | None) -> bool:
    """Resume a paused job; false if it is not paused."""
    value: bool = await conn.fetchval(_RESUME_JOB, job_id, by_whom)
    return value


_REOPEN_JOB: Final = """
-- name: ReopenJob
SELECT queue.reopen_job($1) AS "done!"
"""


async def reopen_job(conn: Connection, *, job_id: JobId) -> bool:
    """Start the next round of an ended job; false if it is open."""
    value: bool = await conn.fetchval(_REOPEN_JOB, job_id)
    return value


_END_IF_EMPTY: Final = """
-- name: EndIfEmpty
SELECT queue.end_if_empty($1) AS "done!"
"""


async def end_if_empty(conn: Connection, *, job_id: JobId) -> bool:
    """Complete a job without tasks."""
    value: bool = await conn.fetchval(_END_IF_EMPTY, job_id)
    return value


_ANCESTORS: Final = """
-- name: Ancestors
WITH RECURSIVE up AS (
    SELECT j.id, j.parent_id, 1 AS depth FROM queue.job j WHERE j.id = $1
    UNION
    SELECT j.id, j.parent_id, up.depth + 1 FROM queue.job j JOIN up ON j.id = up.parent_id
    WHERE up.depth < 100
)
SELECT id AS "id!" FROM up ORDER BY depth
"""


async def ancestors(conn: Connection, *, job_id: JobId) -> list[UUID]:
    """The ancestors of a job, nearest first."""
    return [row[0] for row in await conn.fetch(_ANCESTORS, job_id)]


_EXPIRED_JOBS: Final = """
-- name: ExpiredJobs
SELECT id FROM queue.job WHERE expires_at <= now()
ORDER BY expires_at LIMIT $1::integer
"""


async def expired_jobs(conn: Connection, *, most: int) -> list[JobId]:
    """Ended jobs whose retention is over."""
    return [row[0] for row in await conn.fetch(_EXPIRED_JOBS, most)]


_FORGET_JOB: Final = """
-- name: ForgetJob
SELECT queue.forget_job($1, $2::integer) AS "rows!"
"""


async def forget_job(conn: Connection, *, job_id: JobId, most: int) -> int:
    """Delete a job and its rows, in batches."""
    value: int = await conn.fetchval(_FORGET_JOB, job_id, most)
    return value


_JOBS_NEWEST: Final = """
-- name: JobsNewest
SELECT * FROM queue.job
WHERE organisation_id = $1
    AND (created_at, id) < ($2::timestamptz, $3::uuid)
    AND created_at >= $4::timestamptz
    AND ($5::text IS NULL OR kind = $5)
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC, id DESC LIMIT $6::integer
"""


async def jobs_newest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    job_id: JobId,
    since: datetime,
    kind: str | None,
    most: int,
) -> list[JobRow]:
    """An organisation's jobs before a key, newest first."""
    return [
        JobRow(*row)
        for row in await conn.fetch(_JOBS_NEWEST, organisation_id, at, job_id, since, kind, most)
    ]


_JOBS_OLDEST: Final = """
-- name: JobsOldest
SELECT * FROM queue.job
WHERE organisation_id = $1
    AND (created_at, id) > ($2::timestamptz, $3::uuid)
    AND created_at < $4::timestamptz
    AND ($5::text IS NULL OR kind = $5)
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at, id LIMIT $6::integer
"""


async def jobs_oldest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    job_id: JobId,
    until: datetime,
    kind: str | None,
    most: int,
) -> list[JobRow]:
    """As JobsNewest, after a key, oldest first."""
    return [
        JobRow(*row)
        for row in await conn.fetch(_JOBS_OLDEST, organisation_id, at, job_id, until, kind, most)
    ]


_JOBS_NEWEST_BY_STATUS: Final = """
-- name: JobsNewestByStatus
SELECT * FROM queue.job
WHERE organisation_id = $1 AND status = $2
    AND (created_at, id) < ($3::timestamptz, $4::uuid)
    AND created_at >= $5::timestamptz
    AND ($6::text IS NULL OR kind = $6)
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC, id DESC LIMIT $7::integer
"""


async def jobs_newest_by_status(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    status: str,
    at: datetime,
    job_id: JobId,
    since: datetime,
    kind: str | None,
    most: int,
) -> list[JobRow]:
    """An organisation's jobs of one status before a key, newest first."""
    return [
        JobRow(*row)
        for row in await conn.fetch(
            _JOBS_NEWEST_BY_STATUS, organisation_id, status, at, job_id, since, kind, most
        )
    ]


_JOBS_OLDEST_BY_STATUS: Final = """
-- name: JobsOldestByStatus
SELECT * FROM queue.job
WHERE organisation_id = $1 AND status = $2
    AND (created_at, id) > ($3::timestamptz, $4::uuid)
    AND created_at < $5::timestamptz
    AND ($6::text IS NULL OR kind = $6)
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at, id LIMIT $7::integer
"""


async def jobs_oldest_by_status(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    status: str,
    at: datetime,
    job_id: JobId,
    until: datetime,
    kind: str | None,
    most: int,
) -> list[JobRow]:
    """As JobsNewestByStatus, after a key, oldest first."""
    return [
        JobRow(*row)
        for row in await conn.fetch(
            _JOBS_OLDEST_BY_STATUS, organisation_id, status, at, job_id, until, kind, most
        )
    ]


_DELETE_JOB: Final = """
-- name: DeleteJob
UPDATE queue.job SET expires_at = now()
WHERE id = $1 AND status IN ('completed', 'failed', 'cancelled')
"""


async def delete_job(conn: Connection, *, job_id: JobId) -> int:
    """Expire an ended job now; no row if it is open."""
    return int((await conn.execute(_DELETE_JOB, job_id)).rpartition(" ")[2])


_ERRORS_OF_JOB: Final = """
-- name: ErrorsOfJob
SELECT d.task_id, t.kind, t.payload, d.code, d.error, d.failed_at, d.resolution
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = $1 AND d.task_id > $2::bigint
ORDER BY d.task_id LIMIT $3::integer
"""


async def errors_of_job(
    conn: Connection, *, job_id: JobId, after: int, most: int
) -> list[ErrorsOfJobRow]:
    """Failed tasks of a job after a task."""
    return [ErrorsOfJobRow(*row) for row in await conn.fetch(_ERRORS_OF_JOB, job_id, after, most)]


_NEXT_TASK: Final = """
-- name: NextTask
SELECT coalesce(
    (SELECT r.task_id FROM queue.lane l CROSS JOIN LATERAL (
         SELECT r.task_id FROM queue.ready r WHERE r.lane_id = l.id
         ORDER BY r.priority, r.turn LIMIT 1) r
     WHERE l.job_id = $1 LIMIT 1),
    (SELECT w.task_id FROM queue.lane l JOIN queue.waiting w ON w.lane_id = l.id
     WHERE l.job_id = $1 ORDER BY w.run_at LIMIT 1),
    (SELECT d.task_id FROM queue.lane l JOIN queue.leased d ON d.lane_id = l.id
     WHERE l.job_id = $1 LIMIT 1)
) AS "task_id?"
"""


async def next_task(conn: Connection, *, job_id: JobId) -> TaskId | None:
    """An open task of a job: the next one of a lane, a waiting or a running one."""
    value: TaskId | None = await conn.fetchval(_NEXT_TASK, job_id)
    return value


_URLS_OF_JOBS: Final = """
-- name: UrlsOfJobs
SELECT j.id AS "job_id!", (first.payload ->> 'url')::text AS "url?"
FROM unnest($1::uuid[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT t.payload FROM queue.task t WHERE t.job_id = j.id ORDER BY t.id LIMIT 1
) first
"""


async def urls_of_jobs(conn: Connection, *, job_ids: Sequence[JobId]) -> list[UrlsOfJobsRow]:
    """The URL of each job's first task."""
    return [UrlsOfJobsRow(*row) for row in await conn.fetch(_URLS_OF_JOBS, job_ids)]
