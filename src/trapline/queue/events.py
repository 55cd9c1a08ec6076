"""The event log of jobs: the events of each job are numbered without a gap."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.model import JobId
from trapline.queue.sql import events as queries
from trapline.queue.sql.events import EventRow, EventsSinceRow

TERMINAL_EVENTS: Final = ("job.completed", "job.failed", "job.cancelled")


async def list_events(
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
    """Pass the next events of all jobs to a named consumer, and move its position in the same
    transaction: each event is handled once. Returns how many there were.
    """
    async with database.system_tx() as conn:
        position = await queries.lock_consumer(conn, name=name)
        if position is None:
            # The consumer is new, or another process reads for it now.
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
