"""Typed functions of loglines.sql, made by `make sql`: edit that file instead."""

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
    """Lines of a job's log before a position, latest first."""
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
    """Lines of the logs of all jobs of an organisation before a position, latest first."""
    return [
        JobLogRow(*row)
        for row in await conn.fetch(
            _LOG_LINES, organisation_id, at, id, since, site, trace, levels, step, most
        )
    ]
