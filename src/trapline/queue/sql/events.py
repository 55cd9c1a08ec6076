"""Typed functions of events.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId


class EventRow(Struct, frozen=True, gc=False):
    job_id: JobId
    number: int
    organisation_id: OrganisationId
    id: int
    xid: int
    type: str
    task_id: TaskId | None
    data: Any
    created_at: datetime


class LockConsumerRow(Struct, frozen=True, gc=False):
    xid: str
    event_id: int


class EventsSinceRow(Struct, frozen=True, gc=False):
    xid: str
    id: int
    job_id: JobId
    number: int
    organisation_id: OrganisationId
    type: str
    task_id: TaskId | None
    data: Any
    created_at: datetime


_JOB_EVENTS: Final = """
-- name: JobEvents
SELECT * FROM queue.event
WHERE job_id = $1 AND number > $2::bigint
ORDER BY number LIMIT $3::integer
"""


async def job_events(conn: Connection, *, job_id: JobId, after: int, most: int) -> list[EventRow]:
    """A job's events after a number, in order."""
    return [EventRow(*row) for row in await conn.fetch(_JOB_EVENTS, job_id, after, most)]


_OPEN_CONSUMER: Final = """
-- name: OpenConsumer
INSERT INTO queue.consumer (name) VALUES ($1) ON CONFLICT DO NOTHING
"""


async def open_consumer(conn: Connection, *, name: str) -> None:
    """Add a consumer at the start of the event log."""
    await conn.execute(_OPEN_CONSUMER, name)


_LOCK_CONSUMER: Final = """
-- name: LockConsumer
SELECT xid::text AS "xid!", event_id FROM queue.consumer
WHERE name = $1 FOR UPDATE SKIP LOCKED
"""


async def lock_consumer(conn: Connection, *, name: str) -> LockConsumerRow | None:
    """The position of a consumer; no row while another process holds it."""
    row = await conn.fetchrow(_LOCK_CONSUMER, name)
    return None if row is None else LockConsumerRow(*row)


_EVENTS_SINCE: Final = """
-- name: EventsSince
SELECT e.xid::text AS "xid!", e.id, e.job_id, e.number, e.organisation_id, e.type, e.task_id, e.data, e.created_at
FROM queue.event e
WHERE (e.xid, e.id) > ($1::text::xid8, $2::bigint)
    AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
    AND ($3::text[] IS NULL OR e.type = ANY ($3))
ORDER BY e.xid, e.id LIMIT $4::integer
"""


async def events_since(
    conn: Connection, *, xid: str, event_id: int, types: Sequence[str | None] | None, most: int
) -> list[EventsSinceRow]:
    """Events of all jobs after a position, without those of transactions that may still commit."""
    return [
        EventsSinceRow(*row) for row in await conn.fetch(_EVENTS_SINCE, xid, event_id, types, most)
    ]


_MOVE_CONSUMER: Final = """
-- name: MoveConsumer
UPDATE queue.consumer
SET xid = $1::text::xid8, event_id = $2, updated_at = now()
WHERE name = $3
"""


async def move_consumer(conn: Connection, *, xid: str, event_id: int, name: str) -> None:
    """Store the position of a consumer."""
    await conn.execute(_MOVE_CONSUMER, xid, event_id, name)
