"""The audit: every counter and slot, recomputed from the rows it counts."""

from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.model import JobId
from trapline.queue.sql import audit as queries
from trapline.queue.sql import tally


@dataclass(frozen=True, slots=True)
class Difference:
    """A counter that is off, or a row that is where it cannot be."""

    where: str
    what: str
    counter: int | None
    rows: int | None


async def audit(conn: Connection, job_id: JobId | None = None) -> list[Difference]:
    """Return every difference; none is what should be. The caller's transaction must be
    REPEATABLE READ while workers run, or the queries see different moments.
    """
    found = [
        Difference(f"job {row.id}", row.counter, row.counter_says, row.rows_say)
        for row in await queries.job_differences(conn, job_id=job_id)
    ]
    if job_id is not None:
        return found
    found += [
        Difference(f"gate {row.name}", "in flight", row.in_flight, row.rows_say)
        for row in await queries.gate_differences(conn)
    ]
    found += [
        Difference(f"organisation {row.organisation_id}", "slots", row.active, row.rows_say)
        for row in await queries.quota_differences(conn)
    ]
    found += [
        Difference(
            f"organisation {row.organisation_id}", f"jobs {row.status}", row.tally, row.rows_say
        )
        for row in await tally.tally_differences(conn)
    ]
    found += [
        Difference(f"task {row.id}", row.problem, None, None)
        for row in await queries.lost_tasks(conn)
    ]
    return found
