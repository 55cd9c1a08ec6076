"""Progress counters of sources and applications: insert-only changes, rolled up into few rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.knowledge.sql import progress_counters as queries
from trapline.model import JobId, OrganisationId

BATCH_SIZE: Final = 5_000


@dataclass(frozen=True, slots=True)
class CounterChange:
    """The change of one source's or application's counters (`scope`) by one job."""

    organisation_id: OrganisationId
    scope: UUID
    job_id: JobId
    made_at: datetime
    """When the job was made."""
    total: int = 0
    completed: int = 0
    failed: int = 0


async def add(conn: Connection, changes: Iterable[CounterChange]) -> None:
    """Insert changes, in the transaction that makes them true."""
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
    await queries.add_counter_changes(
        conn,
        organisation_ids=[key[0] for key in sums],
        scopes=[key[1] for key in sums],
        job_ids=[key[2] for key in sums],
        made_ats=[key[3] for key in sums],
        totals=[counts[0] for counts in sums.values()],
        completeds=[counts[1] for counts in sums.values()],
        faileds=[counts[2] for counts in sums.values()],
    )


async def roll_up(database: Database) -> int:
    """Roll up changes into sums; return how many there were."""
    folded, some = 0, BATCH_SIZE
    while some == BATCH_SIZE:
        async with database.system_tx() as conn:
            some = await _roll_up_batch(conn)
        folded += some
    return folded


async def _roll_up_batch(conn: Connection) -> int:
    if not await queries.try_lock_rollup(conn):
        return 0
    rows = await queries.take_changes(conn, most=BATCH_SIZE)
    sums: dict[tuple[OrganisationId, UUID, JobId | None, datetime], list[int]] = defaultdict(
        lambda: [0, 0, 0, 0]
    )
    for row in rows:
        counts = sums[row.organisation_id, row.scope, row.job_id, row.minute]
        for at, value in enumerate((row.total, row.completed, row.failed, row.cancelled)):
            counts[at] += value
    if sums:
        await queries.put_sums(
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


async def delete(
    conn: Connection, scopes: Sequence[UUID], *, but_job_id: JobId | None = None
) -> None:
    """Delete the counters of sources or applications, except those of one job."""
    await queries.lock_out_rollup(conn)
    await queries.delete_counters(conn, scopes=scopes, but_job_id=but_job_id)


async def close_job(conn: Connection, job_id: JobId) -> None:
    """Count the unfinished items of an ended job as cancelled."""
    await queries.lock_out_rollup(conn)
    await queries.close_job(conn, job_id=job_id)


def since(now: datetime) -> datetime:
    """Return the start of the last 24 hours, to the minute."""
    return (now - timedelta(hours=24)).replace(second=0, microsecond=0)
