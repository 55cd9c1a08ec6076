"""Typed functions of tally.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId


class TakeUnfoldedRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    scope: UUID
    job_id: JobId | None
    minute: datetime
    total: int
    completed: int
    failed: int
    cancelled: int


_ADD_TALLY: Final = """
-- name: AddTally
INSERT INTO knowledge.tally (organisation_id, scope, job_id, minute, total, completed, failed)
SELECT
    organisation_id, scope, job_id, date_trunc('minute', made_at, 'UTC'), total, completed, failed
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[],
    $4::timestamptz[], $5::bigint[], $6::bigint[],
    $7::bigint[]
) AS new (organisation_id, scope, job_id, made_at, total, completed, failed)
"""


async def add_tally(
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
    """Note what changed for sources and applications."""
    await conn.execute(
        _ADD_TALLY, organisation_ids, scopes, job_ids, made_ats, totals, completeds, faileds
    )


_HOLD_OFF_FOLDING: Final = """
-- name: HoldOffFolding
SELECT pg_advisory_xact_lock_shared(hashtextextended('knowledge.tally', 0))
"""


async def hold_off_folding(conn: Connection) -> None:
    """Before rows are removed: whoever folds would put back what is being removed, or wait for it."""
    await conn.execute(_HOLD_OFF_FOLDING)


_MAY_FOLD: Final = """
-- name: MayFold
SELECT pg_try_advisory_xact_lock(hashtextextended('knowledge.tally', 0)) AS "may!"
"""


async def may_fold(conn: Connection) -> bool:
    """Whether nobody is removing rows; nobody does until the transaction ends."""
    value: bool = await conn.fetchval(_MAY_FOLD)
    return value


_TAKE_UNFOLDED: Final = """
-- name: TakeUnfolded
DELETE FROM knowledge.tally
WHERE id IN (
    SELECT t.id FROM knowledge.tally t WHERE NOT t.folded
    ORDER BY t.id LIMIT $1::integer FOR UPDATE SKIP LOCKED
)
RETURNING organisation_id, scope, job_id, minute, total, completed, failed, cancelled
"""


async def take_unfolded(conn: Connection, *, most: int) -> list[TakeUnfoldedRow]:
    """Take some rows out that are to be made fewer."""
    return [TakeUnfoldedRow(*row) for row in await conn.fetch(_TAKE_UNFOLDED, most)]


_PUT_FOLDED: Final = """
-- name: PutFolded
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


async def put_folded(
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
    """Put back one row of all that were taken out, with the one that was there."""
    await conn.execute(
        _PUT_FOLDED,
        scopes,
        job_ids,
        minutes,
        organisation_ids,
        totals,
        completeds,
        faileds,
        cancelleds,
    )


_FORGET_TALLY: Final = """
-- name: ForgetTally
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


async def forget_tally(
    conn: Connection, *, scopes: Sequence[UUID], but_job_id: JobId | None
) -> None:
    """Drop what is counted of sources or applications that are gone, or of earlier jobs of a source. In the order of their ids, as all who remove rows do: so nobody waits for one who waits for him."""
    await conn.execute(_FORGET_TALLY, scopes, but_job_id)


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
    """What a job left undone is cancelled; after that its counts need not be told from others'."""
    await conn.execute(_CLOSE_JOB, job_id)
