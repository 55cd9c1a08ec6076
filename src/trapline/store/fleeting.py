"""Content that leaves no trace: readable for an hour, then dropped with its slice of the table.

Dropping a table takes the bytes off the disk at once; a DELETE would leave them there until some
vacuum and, in a page that is never used again, for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg
import msgspec

from trapline.db.connection import Connection, OwnConnection
from trapline.model import JobId, OrganisationId, TaskId
from trapline.store.blobs import Packed, unpack
from trapline.store.pages import Content
from trapline.store.sql import fleeting as queries
from trapline.store.sql.fleeting import FleetingRow

KEEP: Final = timedelta(hours=1)
SLICE: Final = timedelta(minutes=15)
# Looked after every minute; the default slice takes what comes before its own was made.
_AHEAD: Final = timedelta(hours=1)
# The planner is to keep no samples of these; a new slice does not take that over by itself.
_CONTENT: Final = ("url", "title", "text", "markdown", "metadata", "links", "body")


@dataclass(frozen=True, slots=True)
class Fleeting:
    """What one task brought home."""

    organisation_id: OrganisationId
    job_id: JobId
    task_id: TaskId
    url: str
    status: int | None
    content_type: str | None
    content: Content
    body: Packed


async def put(conn: Connection, rows: Sequence[Fleeting]) -> None:
    if not rows:
        return
    contents = [row.content for row in rows]
    await queries.add_fleeting(
        conn,
        organisation_ids=[row.organisation_id for row in rows],
        job_ids=[row.job_id for row in rows],
        task_ids=[row.task_id for row in rows],
        urls=[row.url for row in rows],
        statuses=[row.status for row in rows],
        content_types=[row.content_type for row in rows],
        titles=[content.title for content in contents],
        languages=[content.language for content in contents],
        page_types=[content.page_type for content in contents],
        texts=[content.text for content in contents],
        markdowns=[content.markdown for content in contents],
        metadatas=[_json(content.metadata or {}) for content in contents],
        linkss=[_json(content.links) for content in contents],
        warnings=[content.warning for content in contents],
        bodies=[row.body.data for row in rows],
        compresseds=[row.body.compressed for row in rows],
    )


async def of_job(conn: Connection, job_id: JobId, *, after: TaskId, most: int) -> list[FleetingRow]:
    """Return what is left of a job's content, in the order of its tasks."""
    return await queries.fleeting_of_job(conn, job_id=job_id, after=after, keep=KEEP, most=most)


async def of_tasks(
    conn: Connection, job_id: JobId, task_ids: Sequence[TaskId]
) -> dict[TaskId, FleetingRow]:
    """Return what is left of some tasks' content."""
    rows = await queries.fleeting_of_tasks(conn, job_id=job_id, tasks=task_ids, keep=KEEP)
    return {row.task_id: row for row in rows}


def body_of(row: FleetingRow) -> bytes:
    """Return the bytes as they came."""
    return unpack(row.body) if row.compressed else row.body


async def keep_up(conn: OwnConnection, now: datetime) -> int:
    """Make the slices to come and drop those whose hour is over."""
    # Who writes queues behind our wait for a lock: give up soon, and come again in a minute.
    await conn.execute("SET lock_timeout = '2s'")
    there = set(await queries.fleeting_slices(conn))
    done = 0
    first = _begin(now)
    for n in range(_AHEAD // SLICE):
        begin = first + n * SLICE
        if _name(begin) not in there:
            done += await _make(conn, begin)
    limit = _name(_begin(now - KEEP))
    for name in sorted(there):
        if name < limit:
            await conn.execute(f"DROP TABLE store.{name}")
            done += 1
    forgotten = await queries.forget_fleeting(conn, before=now - KEEP)
    if forgotten:
        # What was deleted is on disk until then.
        await conn.execute("VACUUM store.fleeting_default")
    return done + forgotten


async def _make(conn: OwnConnection, begin: datetime) -> int:
    name = _name(begin)
    try:
        async with conn.transaction():
            await conn.execute(
                f"CREATE TABLE store.{name} PARTITION OF store.fleeting"
                f" FOR VALUES FROM ('{begin.isoformat()}') TO ('{(begin + SLICE).isoformat()}')"
            )
            await conn.execute("SELECT tenancy.isolate($1::text::regclass)", f"store.{name}")
            await conn.execute(
                f"REVOKE INSERT, UPDATE, DELETE ON store.{name} FROM trapline_tenant"
            )
    except asyncpg.CheckViolationError:
        # The default slice has rows of this time already, and keeps the rest of it.
        return 0
    return 1


def _begin(moment: datetime) -> datetime:
    moment = moment.astimezone(UTC)
    since_midnight = timedelta(hours=moment.hour, minutes=moment.minute) // SLICE * SLICE
    return moment.replace(hour=0, minute=0, second=0, microsecond=0) + since_midnight


def _name(begin: datetime) -> str:
    return f"fleeting_{begin:%Y%m%d%H%M}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
