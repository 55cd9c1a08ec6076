"""The event log: what happened to jobs, numbered without a gap in each of them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.model import JobId
from trapline.queue.sql import events as queries
from trapline.queue.sql.events import EventRow, EventsSinceRow

ENDINGS: Final = ("job.completed", "job.failed", "job.cancelled")


async def of_job(
    conn: Connection, job_id: JobId, *, after: int = 0, most: int = 1000
) -> list[EventRow]:
    """Return a job's events after a number."""
    return await queries.job_events(conn, job_id=job_id, after=after, most=most)


async def consume(
    database: Database,
    name: str,
    handle: Callable[[Connection, Sequence[EventsSinceRow]], Awaitable[None]],
    *,
    types: Sequence[str] | None = None,
    most: int = 1000,
) -> int:
    """Hand the next events of all jobs to a named consumer, and note in the same transaction how
    far it has come: each event is handled once. Returns how many there were.
    """
    async with database.system_tx() as conn:
        position = await queries.lock_consumer(conn, name=name)
        if position is None:
            # It is new, or another process reads for it now.
            await queries.open_consumer(conn, name=name)
            position = await queries.lock_consumer(conn, name=name)
        if position is None:
            return 0
        events = await queries.events_since(
            conn, xid=position.xid, event_id=position.event_id, types=types, most=most
        )
        if events:
            await handle(conn, events)
            await queries.move_consumer(conn, name=name, xid=events[-1].xid, event_id=events[-1].id)
        return len(events)
