"""The audit: recomputes every counter and slot from the rows that it counts."""

from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.model import JobId
from trapline.queue.sql import audit as queries
from trapline.queue.sql import statistics


@dataclass(frozen=True, slots=True)
class Difference:
    """A counter that differs from its rows, a task in no state or in two, or one that is stuck."""

    where: str
    what: str
    counter: int | None
    rows: int | None


async def audit(conn: Connection, job_id: JobId | None = None) -> list[Difference]:
    """Return every difference; a sound queue has none. While workers run, the caller's transaction
    must be REPEATABLE READ, or the queries read different snapshots.
    """
    differences = [
        Difference(f"job {row.id}", row.counter, row.counter_says, row.rows_say)
        for row in await queries.job_differences(conn, job_id=job_id)
    ]
    differences += [
        Difference(f"task {row.task_id}", f"{row.type} events", 1, row.events)
        for row in await queries.repeated_events(conn, job_id=job_id)
    ]
    if job_id is not None:
        return differences
    differences += [
        Difference(f"gate {row.name}", "in flight", row.in_flight, row.rows_say)
        for row in await queries.gate_differences(conn)
    ]
    differences += [
        Difference(f"organisation {row.organisation_id}", "slots", row.active, row.rows_say)
        for row in await queries.quota_differences(conn)
    ]
    differences += [
        Difference(
            f"organisation {row.organisation_id}", f"jobs {row.status}", row.tally, row.rows_say
        )
        for row in await statistics.tally_differences(conn)
    ]
    differences += [
        Difference(f"task {row.id}", row.problem, None, None)
        for row in await queries.lost_tasks(conn)
    ]
    differences += [
        Difference(f"task {row.task_id}", row.problem, None, None)
        for row in await queries.stuck_tasks(conn)
    ]
    return differences
