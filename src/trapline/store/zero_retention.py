"""Zero retention: content readable for an hour, then dropped with its partition.

Dropping a partition removes the bytes from disk at once; a DELETE would leave them there until a
vacuum, and in a page that is never used again for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg
import msgspec

from trapline.db.connection import Connection, OwnConnection
from trapline.model import JobId, OrganisationId, TaskId
from trapline.store.blobs import PackedBlob, unpack
from trapline.store.pages import PageContent
from trapline.store.sql import zero_retention as queries
from trapline.store.sql.zero_retention import FleetingRow

RETENTION: Final = timedelta(hours=1)
PARTITION_SPAN: Final = timedelta(minutes=15)
# Maintained every minute; the default partition takes rows without one of their own.
_AHEAD: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ZeroRetentionResult:
    """The content of one task."""

    organisation_id: OrganisationId
    job_id: JobId
    task_id: TaskId
    url: str
    status: int | None
    content_type: str | None
    content: PageContent
    body: PackedBlob


async def put(conn: Connection, rows: Sequence[ZeroRetentionResult]) -> None:
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
    """Return a job's content of the last hour, in the order of its tasks."""
    return await queries.fleeting_of_job(
        conn, job_id=job_id, after=after, keep=RETENTION, most=most
    )


async def of_tasks(
    conn: Connection, job_id: JobId, task_ids: Sequence[TaskId]
) -> dict[TaskId, FleetingRow]:
    """Return the content of tasks of the last hour."""
    rows = await queries.fleeting_of_tasks(conn, job_id=job_id, tasks=task_ids, keep=RETENTION)
    return {row.task_id: row for row in rows}


def body_of(row: FleetingRow) -> bytes:
    """Return the body, decompressed."""
    return unpack(row.body) if row.compressed else row.body


async def maintain_partitions(conn: OwnConnection, now: datetime) -> int:
    """Create the next partitions and drop those past their retention."""
    # Writers queue behind our wait for a lock: give up soon, and try again in a minute.
    await conn.execute("SET lock_timeout = '2s'")
    existing = set(await queries.fleeting_partitions(conn))
    done = 0
    first = _partition_start(now)
    for n in range(_AHEAD // PARTITION_SPAN):
        begin = first + n * PARTITION_SPAN
        if _partition_name(begin) not in existing:
            done += await _create_partition(conn, begin)
    limit = _partition_name(_partition_start(now - RETENTION))
    for name in sorted(existing):
        if name < limit:
            await conn.execute(f"DROP TABLE store.{name}")
            done += 1
    deleted = await queries.delete_fleeting(conn, before=now - RETENTION)
    if deleted:
        # Until then the deleted rows are still on disk.
        await conn.execute("VACUUM store.fleeting_default")
    return done + deleted


async def _create_partition(conn: OwnConnection, begin: datetime) -> int:
    name = _partition_name(begin)
    try:
        async with conn.transaction():
            await conn.execute(
                f"CREATE TABLE store.{name} PARTITION OF store.fleeting"
                f" FOR VALUES FROM ('{begin.isoformat()}') TO ('{(begin + PARTITION_SPAN).isoformat()}')"
            )
            await conn.execute("SELECT tenancy.isolate($1::text::regclass)", f"store.{name}")
            await conn.execute(
                f"REVOKE INSERT, UPDATE, DELETE ON store.{name} FROM trapline_tenant"
            )
    except asyncpg.CheckViolationError:
        # The default partition has rows of this time already, and keeps the rest.
        return 0
    return 1


def _partition_start(moment: datetime) -> datetime:
    moment = moment.astimezone(UTC)
    since_midnight = (
        timedelta(hours=moment.hour, minutes=moment.minute) // PARTITION_SPAN * PARTITION_SPAN
    )
    return moment.replace(hour=0, minute=0, second=0, microsecond=0) + since_midnight


def _partition_name(begin: datetime) -> str:
    return f"fleeting_{begin:%Y%m%d%H%M}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode().replace("\\u0000", "")
