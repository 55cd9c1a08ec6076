"""Typed functions of recorder.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId

_ADD_OPERATIONS: Final = """
-- name: AddOperations
INSERT INTO measure.operation (
    recorded_at, organisation_id, type, name, milliseconds, error, request_id, job_id, task_id,
    document_url, extra
)
SELECT * FROM unnest(
    $1::timestamptz[],
    $2::uuid[],
    $3::text[],
    $4::text[],
    $5::double precision[],
    $6::text[],
    $7::uuid[],
    $8::uuid[],
    $9::bigint[],
    $10::text[],
    $11::jsonb[]
)
"""


async def add_operations(
    conn: Connection,
    *,
    times: Sequence[datetime],
    organisation_ids: Sequence[OrganisationId],
    types: Sequence[str],
    names: Sequence[str],
    milliseconds: Sequence[float],
    errors: Sequence[str | None] | None,
    request_ids: Sequence[UUID | None] | None,
    job_ids: Sequence[JobId | None] | None,
    task_ids: Sequence[TaskId | None] | None,
    document_urls: Sequence[str | None] | None,
    extras: Sequence[Any | None] | None,
) -> None:
    """Write what was done, many at a time."""
    await conn.execute(
        _ADD_OPERATIONS,
        times,
        organisation_ids,
        types,
        names,
        milliseconds,
        errors,
        request_ids,
        job_ids,
        task_ids,
        document_urls,
        extras,
    )


_ADD_REQUESTS: Final = """
-- name: AddRequests
INSERT INTO measure.request (
    recorded_at, organisation_id, method, path, route, status, milliseconds, request_id, client,
    user_agent
)
SELECT * FROM unnest(
    $1::timestamptz[],
    $2::uuid[],
    $3::text[],
    $4::text[],
    $5::text[],
    $6::smallint[],
    $7::double precision[],
    $8::uuid[],
    $9::text[],
    $10::text[]
)
"""


async def add_requests(
    conn: Connection,
    *,
    times: Sequence[datetime],
    organisation_ids: Sequence[OrganisationId | None] | None,
    methods: Sequence[str],
    paths: Sequence[str],
    routes: Sequence[str],
    statuses: Sequence[int],
    milliseconds: Sequence[float],
    request_ids: Sequence[UUID],
    clients: Sequence[str | None] | None,
    user_agents: Sequence[str | None] | None,
) -> None:
    """Write what was answered, many at a time."""
    await conn.execute(
        _ADD_REQUESTS,
        times,
        organisation_ids,
        methods,
        paths,
        routes,
        statuses,
        milliseconds,
        request_ids,
        clients,
        user_agents,
    )


_ADD_JOB_TIMES: Final = """
-- name: AddJobTimes
INSERT INTO measure.job_time AS t
    (job_id, type, organisation_id, operations, failures, milliseconds)
SELECT * FROM unnest(
    $1::uuid[],
    $2::text[],
    $3::uuid[],
    $4::bigint[],
    $5::bigint[],
    $6::double precision[]
) AS new (job_id, type, organisation_id, operations, failures, milliseconds)
ORDER BY new.job_id, new.type
ON CONFLICT (job_id, type) DO UPDATE
SET operations = t.operations + excluded.operations, failures = t.failures + excluded.failures,
    milliseconds = t.milliseconds + excluded.milliseconds
"""


async def add_job_times(
    conn: Connection,
    *,
    job_ids: Sequence[JobId],
    types: Sequence[str],
    organisation_ids: Sequence[OrganisationId],
    operations: Sequence[int],
    failures: Sequence[int],
    milliseconds: Sequence[float],
) -> None:
    """Add to what jobs took, in key order, so that none deadlock."""
    await conn.execute(
        _ADD_JOB_TIMES, job_ids, types, organisation_ids, operations, failures, milliseconds
    )


_DROP_JOB_TIMES: Final = """
-- name: DropJobTimes
DELETE FROM measure.job_time WHERE (job_id, type) IN (
    SELECT job_id, type FROM measure.job_time
    WHERE created_at < now() - $1::interval
    ORDER BY created_at LIMIT $2::bigint
)
"""


async def drop_job_times(conn: Connection, *, keep: timedelta, most: int) -> int:
    """Forget what jobs took that are long gone, a part at a time."""
    return int((await conn.execute(_DROP_JOB_TIMES, keep, most)).rpartition(" ")[2])
