"""Typed functions of job_log.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, SiteId, TraceId


class JobLogRow(Struct, frozen=True, gc=False):
    id: int
    organisation_id: OrganisationId
    job_id: JobId
    site_id: SiteId | None
    step: str
    level: str
    message: str
    context: Any
    trace_id: TraceId | None
    created_at: datetime


class NotedUrlsRow(Struct, frozen=True, gc=False):
    url: str
    found_on: str | None
    message: str


class MilestonesRow(Struct, frozen=True, gc=False):
    number: int
    type: str
    data: Any
    created_at: datetime


_WRITE_NOTES: Final = """
-- name: WriteNotes
INSERT INTO queue.job_log (organisation_id, job_id, site_id, step, level, message, context, trace_id)
SELECT n.organisation_id, n.job_id, n.site_id, n.step, n.level, n.message, n.context::jsonb, n.trace_id
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::uuid[],
    $4::text[],
    $5::text[],
    $6::text[],
    $7::text[],
    $8::uuid[]
) AS n (organisation_id, job_id, site_id, step, level, message, context, trace_id)
"""


async def write_notes(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    job_ids: Sequence[JobId],
    site_ids: Sequence[SiteId | None] | None,
    steps: Sequence[str],
    levels: Sequence[str],
    messages: Sequence[str],
    contexts: Sequence[str],
    trace_ids: Sequence[TraceId | None] | None,
) -> None:
    """Add lines to the logs of jobs."""
    await conn.execute(
        _WRITE_NOTES,
        organisation_ids,
        job_ids,
        site_ids,
        steps,
        levels,
        messages,
        contexts,
        trace_ids,
    )


_READ_NOTES: Final = """
-- name: ReadNotes
SELECT * FROM queue.job_log
WHERE job_id = $1
  AND id > $2::bigint
  AND level = ANY ($3::text[])
  AND ($4::text IS NULL OR step = $4)
ORDER BY id
LIMIT $5::integer
"""


async def read_notes(
    conn: Connection,
    *,
    job_id: JobId,
    after: int,
    levels: Sequence[str],
    step: str | None,
    most: int,
) -> list[JobLogRow]:
    """Lines of a job's log after a position, oldest first."""
    return [
        JobLogRow(*row) for row in await conn.fetch(_READ_NOTES, job_id, after, levels, step, most)
    ]


_NOTED_URLS: Final = """
-- name: NotedUrls
SELECT (context ->> 'url')::text AS "url!", min(context ->> 'found_on')::text AS "found_on?",
       min(message)::text AS "message!"
FROM queue.job_log
WHERE job_id = $1 AND step = $2 AND context ? 'url'
GROUP BY 1
ORDER BY min(id)
LIMIT $3::integer
"""


async def noted_urls(
    conn: Connection, *, job_id: JobId, step: str, most: int
) -> list[NotedUrlsRow]:
    """Distinct URLs that a step of a job logged, in the order of their first line."""
    return [NotedUrlsRow(*row) for row in await conn.fetch(_NOTED_URLS, job_id, step, most)]


_COUNT_NOTED_URLS: Final = """
-- name: CountNotedUrls
SELECT count(DISTINCT context ->> 'url') AS "urls!"
FROM queue.job_log
WHERE job_id = $1 AND step = $2
"""


async def count_noted_urls(conn: Connection, *, job_id: JobId, step: str) -> int:
    """Number of distinct URLs that a step of a job logged."""
    value: int = await conn.fetchval(_COUNT_NOTED_URLS, job_id, step)
    return value


_MILESTONES: Final = """
-- name: Milestones
SELECT number, type, data, created_at FROM queue.event
WHERE job_id = $1 AND number > $2::bigint AND type LIKE 'job.%'
ORDER BY number
"""


async def milestones(conn: Connection, *, job_id: JobId, after: int) -> list[MilestonesRow]:
    """Events of a job as a whole, after a number."""
    return [MilestonesRow(*row) for row in await conn.fetch(_MILESTONES, job_id, after)]


_LOG_OF_JOB: Final = """
-- name: LogOfJob
SELECT * FROM queue.job_log
WHERE job_id = $1
    AND (created_at, id) < ($2::timestamptz, $3::bigint)
    AND created_at >= $4::timestamptz
    AND ($5::text[] IS NULL OR level = ANY ($5))
    AND ($6::text IS NULL OR step = $6)
ORDER BY created_at DESC, id DESC LIMIT $7::integer
"""


async def log_of_job(
    conn: Connection,
    *,
    job_id: JobId,
    at: datetime,
    id: int,
    since: datetime,
    levels: Sequence[str | None] | None,
    step: str | None,
    most: int,
) -> list[JobLogRow]:
    """Lines of a job's log before a position, newest first."""
    return [
        JobLogRow(*row)
        for row in await conn.fetch(_LOG_OF_JOB, job_id, at, id, since, levels, step, most)
    ]


_LOG_LINES: Final = """
-- name: LogLines
SELECT * FROM queue.job_log
WHERE organisation_id = $1
    AND (created_at, id) < ($2::timestamptz, $3::bigint)
    AND created_at >= $4::timestamptz
    AND ($5::uuid IS NULL OR site_id = $5)
    AND ($6::uuid IS NULL OR trace_id = $6)
    AND ($7::text[] IS NULL OR level = ANY ($7))
    AND ($8::text IS NULL OR step = $8)
ORDER BY created_at DESC, id DESC LIMIT $9::integer
"""


async def log_lines(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    id: int,
    since: datetime,
    site: UUID | None,
    trace: UUID | None,
    levels: Sequence[str | None] | None,
    step: str | None,
    most: int,
) -> list[JobLogRow]:
    """Lines of all job logs of an organisation before a position, newest first."""
    return [
        JobLogRow(*row)
        for row in await conn.fetch(
            _LOG_LINES, organisation_id, at, id, since, site, trace, levels, step, most
        )
    ]
