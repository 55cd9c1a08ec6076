"""Typed functions of queries.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId


class OperationRow(Struct, frozen=True, gc=False):
    id: int
    recorded_at: datetime
    organisation_id: OrganisationId
    type: str
    name: str
    milliseconds: float
    error: str | None
    request_id: UUID | None
    job_id: JobId | None
    task_id: TaskId | None
    document_url: str | None
    extra: Any


class RequestRow(Struct, frozen=True, gc=False):
    id: int
    recorded_at: datetime
    organisation_id: OrganisationId | None
    method: str
    path: str
    route: str
    status: int
    milliseconds: float
    request_id: UUID
    client: str | None
    user_agent: str | None
    extra: Any


class TimesOfJobRow(Struct, frozen=True, gc=False):
    type: str
    operations: int
    failures: int
    milliseconds: float


_OPERATIONS_BEFORE: Final = """
-- name: OperationsBefore
SELECT * FROM measure.operation
WHERE organisation_id = $1
    AND (recorded_at, id) < ($2::timestamptz, $3::bigint)
    AND recorded_at >= $4::timestamptz
    AND ($5::text IS NULL OR type = $5)
    AND (NOT $6::boolean OR error IS NOT NULL)
ORDER BY recorded_at DESC, id DESC LIMIT $7::integer
"""


async def operations_before(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    id: int,
    since: datetime,
    kind: str | None,
    failed: bool,
    most: int,
) -> list[OperationRow]:
    """Operations of an organisation before a position, latest first."""
    return [
        OperationRow(*row)
        for row in await conn.fetch(
            _OPERATIONS_BEFORE, organisation_id, at, id, since, kind, failed, most
        )
    ]


_OPERATIONS_OF_JOB: Final = """
-- name: OperationsOfJob
SELECT * FROM measure.operation
WHERE job_id = $1
    AND (recorded_at, id) < ($2::timestamptz, $3::bigint)
    AND recorded_at >= $4::timestamptz
    AND ($5::text IS NULL OR type = $5)
    AND (NOT $6::boolean OR error IS NOT NULL)
ORDER BY recorded_at DESC, id DESC LIMIT $7::integer
"""


async def operations_of_job(
    conn: Connection,
    *,
    job_id: JobId,
    at: datetime,
    id: int,
    since: datetime,
    kind: str | None,
    failed: bool,
    most: int,
) -> list[OperationRow]:
    """Operations of a job before a position, latest first."""
    return [
        OperationRow(*row)
        for row in await conn.fetch(_OPERATIONS_OF_JOB, job_id, at, id, since, kind, failed, most)
    ]


_REQUESTS_BEFORE: Final = """
-- name: RequestsBefore
SELECT * FROM measure.request
WHERE organisation_id = $1
    AND (recorded_at, id) < ($2::timestamptz, $3::bigint)
    AND recorded_at >= $4::timestamptz
    AND ($5::smallint IS NULL OR status = $5)
ORDER BY recorded_at DESC, id DESC LIMIT $6::integer
"""


async def requests_before(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    at: datetime,
    id: int,
    since: datetime,
    status: int | None,
    most: int,
) -> list[RequestRow]:
    """Requests of an organisation before a position, latest first."""
    return [
        RequestRow(*row)
        for row in await conn.fetch(_REQUESTS_BEFORE, organisation_id, at, id, since, status, most)
    ]


_TIMES_OF_JOB: Final = """
-- name: TimesOfJob
SELECT type, operations, failures, milliseconds FROM measure.job_time
WHERE job_id = $1 ORDER BY type
"""


async def times_of_job(conn: Connection, *, job_id: JobId) -> list[TimesOfJobRow]:
    """What a job's operations took together, by what they were."""
    return [TimesOfJobRow(*row) for row in await conn.fetch(_TIMES_OF_JOB, job_id)]
