"""Monthly partitions: created ahead; rolled up, exported and dropped after the retention time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import asyncpg

from trapline.db.connection import Connection, OwnConnection
from trapline.db.pool import Database
from trapline.logs import get_logger
from trapline.queue.maintenance import jsonl_export
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import rollups
from trapline.settings import Settings

logger = get_logger(__name__)

# Looked after every hour, and what is written before a month is made goes into the default partition.
MONTHS_AHEAD: Final = 1

# Names are made by format(): these are statements that no query file can hold.
_MAKE: Final = (
    "SELECT format('CREATE TABLE IF NOT EXISTS %I.%I PARTITION OF %I.%I"
    " FOR VALUES FROM (%L) TO (%L)',"
    " $1::text, $2::text, $1::text, $3::text, $4::timestamptz, $5::timestamptz)"
)
_OLD: Final = """
SELECT c.relname::text FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = $1 AND p.relname = $2 AND c.relname < $3 AND c.relname ~ '_[0-9]{6}$'
"""


class RollUp(Protocol):
    """A query that adds the days of a span to a table of days."""

    async def __call__(self, conn: Connection, *, since: datetime, until: datetime) -> int: ...


@dataclass(frozen=True, slots=True)
class Log:
    """A table that is partitioned by month; `owned` rows belong to organisations."""

    schema: str
    table: str
    column: str
    owned: bool = True
    # Counts some days of it, before they go.
    roll_up: RollUp | None = None


QUEUE_LOGS: Final = (
    Log("queue", "job_log", "created_at", roll_up=rollups.roll_up_job_log),
    Log("queue", "past_job", "finished_at"),
    Log("queue", "statistic", "minute", owned=False, roll_up=rollups.roll_up_statistics),
)


async def maintain(database: Database, tables: Sequence[Log] = QUEUE_LOGS) -> int:
    """Create the partitions of the next months and drop expired ones."""
    now = datetime.now(UTC)
    before = now - timedelta(days=database.settings.retention.keep_days)
    done = 0
    async with database.owner() as conn:
        # Writers queue behind our wait for a lock: give up soon, and come again in an hour.
        await conn.execute("SET lock_timeout = '2s'")
        for table in tables:
            for month in months_after(now, MONTHS_AHEAD):
                done += await make_month(conn, table, month)
            done += await _drop(conn, table, before, database.settings.retention.export_logs)
    return done


def duty(name: str, tables: Sequence[Log]) -> Duty:
    """Return the duty that maintains the partitions of one package's logs."""

    async def work(database: Database) -> int:
        return await maintain(database, tables)

    return Duty(name, work, timedelta(hours=1))


def months_after(now: datetime, count: int) -> list[datetime]:
    """Return the first moments of the next months. This month's rows are in the default partition
    until the first month that was made ahead begins.
    """
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [first]
    for _ in range(count):
        months.append(_next_month(months[-1]))
    return months[1:]


async def make_month(conn: OwnConnection, log: Log, month: datetime) -> int:
    """Make the partition of the month that begins then; return how many were made."""
    name = f"{log.table}_{month:%Y%m}"
    if await conn.fetchval("SELECT to_regclass($1)", f"{log.schema}.{name}") is not None:
        return 0
    try:
        async with conn.transaction():
            end = _next_month(month)
            await conn.execute(await conn.fetchval(_MAKE, log.schema, name, log.table, month, end))
            grant = "isolate" if log.owned else "share"
            await conn.execute(
                f"SELECT tenancy.{grant}($1::text::regclass)", f"{log.schema}.{name}"
            )
    except asyncpg.LockNotAvailableError:
        logger.info("a month is made later", partition=name)
        return 0
    return 1


async def _drop(conn: OwnConnection, log: Log, before: datetime, exports: Path | None) -> int:
    """Drop expired rows: a month at a time, or a day at a time in the default partition."""
    done = 0
    for row in await conn.fetch(_OLD, log.schema, log.table, f"{log.table}_{before:%Y%m}"):
        month = datetime.strptime(row[0][-6:] + "+0000", "%Y%m%z")
        statement = await conn.fetchval(
            "SELECT format('DROP TABLE %I.%I', $1::text, $2::text)", log.schema, row[0]
        )
        done += await _retire(
            conn, log, Span(row[0], month, _next_month(month)), statement, exports
        )
    default = f"{log.table}_default"
    while (day := await _oldest_day(conn, log, default, before)) is not None:
        span = Span(default, day, day + timedelta(days=1))
        if not await _retire(conn, log, span, await _delete(conn, log, span), exports):
            break
        done += 1
    return done


@dataclass(frozen=True, slots=True)
class Span:
    """Some time of a log, and the partition that holds it."""

    partition: str
    since: datetime
    until: datetime


async def _retire(
    conn: OwnConnection, log: Log, span: Span, removal: str, exports: Path | None
) -> int:
    """Export; then count and remove, both or neither. Nobody writes to a time so long ago."""
    if exports is not None:
        async with conn.transaction():
            await _export(conn, log, span, exports)
    try:
        async with conn.transaction():
            if log.roll_up is not None:
                await log.roll_up(conn, since=span.since, until=span.until)
            await conn.execute(removal)
    except asyncpg.LockNotAvailableError:
        logger.info("a log is dropped later", partition=span.partition)
        return 0
    return 1


async def _export(conn: OwnConnection, log: Log, span: Span, directory: Path) -> None:
    statement = await conn.fetchval(
        "SELECT format('SELECT row_to_json(t)::text FROM %I.%I t WHERE %I >= $1 AND %I < $2"
        " ORDER BY %I', $1::text, $2::text, $3::text, $3::text, $3::text)",
        log.schema,
        span.partition,
        log.column,
    )
    whole_month = span.until - span.since > timedelta(days=1)
    label = f"{span.since:%Y%m}" if whole_month else f"{span.since:%Y%m%d}"
    path = directory / f"{log.schema}.{log.table}_{label}.jsonl"
    await jsonl_export.write(conn, path, statement, span.since, span.until)


async def _oldest_day(
    conn: OwnConnection, log: Log, partition: str, before: datetime
) -> datetime | None:
    statement = await conn.fetchval(
        "SELECT format('SELECT min(%I) FROM %I.%I WHERE %I < $1', $3::text, $1::text, $2::text,"
        " $3::text)",
        log.schema,
        partition,
        log.column,
    )
    oldest: datetime | None = await conn.fetchval(statement, _midnight(before))
    return None if oldest is None else _midnight(oldest)


async def _delete(conn: OwnConnection, log: Log, span: Span) -> str:
    statement: str = await conn.fetchval(
        "SELECT format('DELETE FROM %I.%I WHERE %I >= %L AND %I < %L', $1::text, $2::text,"
        " $3::text, $4::timestamptz, $3::text, $5::timestamptz)",
        log.schema,
        span.partition,
        log.column,
        span.since,
        span.until,
    )
    return statement


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _next_month(month: datetime) -> datetime:
    return (month + timedelta(days=32)).replace(day=1)


def duties(_: Settings) -> list[Duty]:
    return [duty("partitions", QUEUE_LOGS)]
