"""Counts of items by source and application: added as they change, folded into few rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.knowledge.sql import tally as queries
from trapline.model import JobId, OrganisationId

AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Change:
    """What changed for one source or application (`scope`) by one job."""

    organisation_id: OrganisationId
    scope: UUID
    job_id: JobId
    made_at: datetime
    """When the job was made."""
    total: int = 0
    completed: int = 0
    failed: int = 0


async def add(conn: Connection, changes: Iterable[Change]) -> None:
    """Note changes, in the transaction that makes them true."""
    sums: dict[tuple[OrganisationId, UUID, JobId, datetime], list[int]] = defaultdict(
        lambda: [0, 0, 0]
    )
    for one in changes:
        counts = sums[one.organisation_id, one.scope, one.job_id, one.made_at]
        counts[0] += one.total
        counts[1] += one.completed
        counts[2] += one.failed
    if not sums:
        return
    await queries.add_tally(
        conn,
        organisation_ids=[key[0] for key in sums],
        scopes=[key[1] for key in sums],
        job_ids=[key[2] for key in sums],
        made_ats=[key[3] for key in sums],
        totals=[counts[0] for counts in sums.values()],
        completeds=[counts[1] for counts in sums.values()],
        faileds=[counts[2] for counts in sums.values()],
    )


async def fold(database: Database) -> int:
    """Make few rows of many; return how many there were."""
    folded, some = 0, AT_ONCE
    while some == AT_ONCE:
        async with database.system_tx() as conn:
            some = await _fold(conn)
        folded += some
    return folded


async def _fold(conn: Connection) -> int:
    if not await queries.may_fold(conn):
        return 0
    rows = await queries.take_unfolded(conn, most=AT_ONCE)
    sums: dict[tuple[OrganisationId, UUID, JobId | None, datetime], list[int]] = defaultdict(
        lambda: [0, 0, 0, 0]
    )
    for row in rows:
        counts = sums[row.organisation_id, row.scope, row.job_id, row.minute]
        for at, value in enumerate((row.total, row.completed, row.failed, row.cancelled)):
            counts[at] += value
    if sums:
        await queries.put_folded(
            conn,
            organisation_ids=[key[0] for key in sums],
            scopes=[key[1] for key in sums],
            job_ids=[key[2] for key in sums],
            minutes=[key[3] for key in sums],
            totals=[counts[0] for counts in sums.values()],
            completeds=[counts[1] for counts in sums.values()],
            faileds=[counts[2] for counts in sums.values()],
            cancelleds=[counts[3] for counts in sums.values()],
        )
    return len(rows)


async def forget(
    conn: Connection, scopes: Sequence[UUID], *, but_job_id: JobId | None = None
) -> None:
    """Drop what is counted of sources or applications; what a job did for them can stay."""
    await queries.hold_off_folding(conn)
    await queries.forget_tally(conn, scopes=scopes, but_job_id=but_job_id)


async def close_job(conn: Connection, job_id: JobId) -> None:
    """Count what a job that has ended left undone as cancelled."""
    await queries.hold_off_folding(conn)
    await queries.close_job(conn, job_id=job_id)


def since(now: datetime) -> datetime:
    """Return where the last 24 hours begin, to the minute."""
    return (now - timedelta(hours=24)).replace(second=0, microsecond=0)
