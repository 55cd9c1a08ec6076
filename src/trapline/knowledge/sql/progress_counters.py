"""Typed functions of progress_counters.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId


class TakeChangesRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    scope: UUID
    job_id: JobId | None
    minute: datetime
    total: int
    completed: int
    failed: int
    cancelled: int


_ADD_COUNTER_CHANGES: Final = """
-- name: AddCounterChanges
INSERT INTO knowledge.tally (organisation_id, scope, job_id, minute, total, completed, failed)
SELECT
    organisation_id, scope, job_id, date_trunc('minute', made_at, 'UTC'), total, completed, failed
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[],
    $4::timestamptz[], $5::bigint[], $6::bigint[],
    $7::bigint[]
) AS new (organisation_id, scope, job_id, made_at, total, completed, failed)
"""


async def add_counter_changes(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    scopes: Sequence[UUID],
    job_ids: Sequence[JobId],
    made_ats: Sequence[datetime],
    totals: Sequence[int],
    completeds: Sequence[int],
    faileds: Sequence[int],
) -> None:
    """Insert changes of the counters of sources and applications."""
    await conn.execute(
        _ADD_COUNTER_CHANGES,
        organisation_ids,
        scopes,
        job_ids,
        made_ats,
        totals,
        completeds,
        faileds,
    )


_LOCK_OUT_ROLLUP: Final = """
-- name: LockOutRollup
SELECT pg_advisory_xact_lock_shared(hashtextextended('knowledge.tally', 0))
"""


async def lock_out_rollup(conn: Connection) -> None:
    """Lock out the rollup while rows are deleted: it would reinsert them, or wait for them."""
    await conn.execute(_LOCK_OUT_ROLLUP)


_TRY_LOCK_ROLLUP: Final = """
-- name: TryLockRollup
SELECT pg_try_advisory_xact_lock(hashtextextended('knowledge.tally', 0)) AS "may!"
"""


async def try_lock_rollup(conn: Connection) -> bool:
    """Try to lock out deletions until the end of the transaction."""
    value: bool = await conn.fetchval(_TRY_LOCK_ROLLUP)
    return value


_TAKE_CHANGES: Final = """
-- name: TakeChanges
DELETE FROM knowledge.tally
WHERE id IN (
    SELECT t.id FROM knowledge.tally t WHERE NOT t.folded
    ORDER BY t.id LIMIT $1::integer FOR UPDATE SKIP LOCKED
)
RETURNING organisation_id, scope, job_id, minute, total, completed, failed, cancelled
"""


async def take_changes(conn: Connection, *, most: int) -> list[TakeChangesRow]:
    """Delete and return a batch of changes that are not rolled up."""
    return [TakeChangesRow(*row) for row in await conn.fetch(_TAKE_CHANGES, most)]


_PUT_SUMS: Final = """
-- name: PutSums
WITH before AS (
    DELETE FROM knowledge.tally t
    USING unnest(
        $1::uuid[], $2::uuid[], $3::timestamptz[]
    ) AS k (scope, job_id, minute)
    WHERE t.folded AND t.scope = k.scope AND t.minute = k.minute
        AND t.job_id IS NOT DISTINCT FROM k.job_id
    RETURNING t.organisation_id, t.scope, t.job_id, t.minute, t.total, t.completed, t.failed, t.cancelled
)
INSERT INTO knowledge.tally (
    organisation_id, scope, job_id, minute, total, completed, failed, cancelled, folded
)
SELECT
    a.organisation_id, a.scope, a.job_id, a.minute, sum(a.total), sum(a.completed), sum(a.failed),
    sum(a.cancelled), true
FROM (
    SELECT organisation_id, scope, job_id, minute, total, completed, failed, cancelled
    FROM unnest(
        $4::uuid[], $1::uuid[], $2::uuid[],
        $3::timestamptz[], $5::bigint[],
        $6::bigint[], $7::bigint[], $8::bigint[]
    ) AS n (organisation_id, scope, job_id, minute, total, completed, failed, cancelled)
    UNION ALL
    SELECT organisation_id, scope, job_id, minute, total, completed, failed, cancelled FROM before
) a
GROUP BY a.organisation_id, a.scope, a.job_id, a.minute
"""


async def put_sums(
    conn: Connection,
    *,
    scopes: Sequence[UUID],
    job_ids: Sequence[JobId | None] | None,
    minutes: Sequence[datetime],
    organisation_ids: Sequence[OrganisationId],
    totals: Sequence[int],
    completeds: Sequence[int],
    faileds: Sequence[int],
    cancelleds: Sequence[int],
) -> None:
    """Insert the sums of a batch of changes, added to earlier sums."""
    await conn.execute(
        _PUT_SUMS,
        scopes,
        job_ids,
        minutes,
        organisation_ids,
        totals,
        completeds,
        faileds,
        cancelleds,
    )


_DELETE_COUNTERS: Final = """
-- name: DeleteCounters
DELETE FROM knowledge.tally
WHERE id IN (
    SELECT t.id FROM knowledge.tally t
    WHERE t.scope = ANY ($1::uuid[])
        AND (
            $2::uuid IS NULL
            OR t.job_id IS DISTINCT FROM $2::uuid
        )
    ORDER BY t.id FOR UPDATE
)
"""


async def delete_counters(
    conn: Connection, *, scopes: Sequence[UUID], but_job_id: JobId | None
) -> None:
    """Delete the counters of deleted sources or applications, or of earlier jobs of a source. In id order, as every deletion: otherwise two of them deadlock."""
    await conn.execute(_DELETE_COUNTERS, scopes, but_job_id)


_CLOSE_JOB: Final = """
-- name: CloseJob
WITH gone AS (
    DELETE FROM knowledge.tally
    WHERE id IN (
        SELECT t.id FROM knowledge.tally t WHERE t.job_id = $1
        ORDER BY t.id FOR UPDATE
    )
    RETURNING organisation_id, scope, minute, total, completed, failed, cancelled
)
INSERT INTO knowledge.tally (
    organisation_id, scope, job_id, minute, total, completed, failed, cancelled
)
SELECT
    organisation_id, scope, NULL, minute, sum(total), sum(completed), sum(failed),
    sum(total) - sum(completed) - sum(failed)
FROM gone
GROUP BY organisation_id, scope, minute
"""


async def close_job(conn: Connection, *, job_id: JobId) -> None:
    """Count a job's unfinished items as cancelled, and detach its counters from the job."""
    await conn.execute(_CLOSE_JOB, job_id)
