"""Monthly partitions: made ahead, dropped when the month is older than is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db import pool
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.queue.maintenance.duty import Duty
from trapline.settings import Settings

MONTHS_AHEAD: Final = 2

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


@dataclass(frozen=True, slots=True)
class Log:
    """A table that is partitioned by month; `owned` rows belong to organisations."""

    schema: str
    table: str
    column: str
    owned: bool = True


QUEUE_LOGS: Final = (
    Log("queue", "job_log", "created_at"),
    Log("queue", "statistic", "minute", owned=False),
)


async def keep_up(database: Database, tables: Sequence[Log] = QUEUE_LOGS) -> int:
    """Make the partitions of the months to come and drop those past their time."""
    now = datetime.now(UTC)
    before = now - timedelta(days=database.settings.keep_days)
    done = 0
    async with pool.owner(database.dsn, database.settings) as conn:
        for table in tables:
            for month in months_after(now, MONTHS_AHEAD):
                done += await _make(conn, table, month)
            done += await _drop(conn, table, before)
    return done


def duty(name: str, tables: Sequence[Log]) -> Duty:
    """Make the duty that keeps up the logs of one package."""

    async def work(database: Database) -> int:
        return await keep_up(database, tables)

    return Duty(name, work, timedelta(hours=1))


def months_after(now: datetime, count: int) -> list[datetime]:
    """Return the first moments of the next months. This month's rows are in the default partition
    until the first month that was made ahead begins.
    """
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [first]
    for _ in range(count):
        months.append((months[-1] + timedelta(days=32)).replace(day=1))
    return months[1:]


async def _make(conn: OwnConnection, log: Log, month: datetime) -> int:
    name = f"{log.table}_{month:%Y%m}"
    if await conn.fetchval("SELECT to_regclass($1)", f"{log.schema}.{name}") is not None:
        return 0
    async with conn.transaction():
        end = (month + timedelta(days=32)).replace(day=1)
        await conn.execute(await conn.fetchval(_MAKE, log.schema, name, log.table, month, end))
        grant = "isolate" if log.owned else "share"
        await conn.execute(f"SELECT tenancy.{grant}($1::text::regclass)", f"{log.schema}.{name}")
    return 1


async def _drop(conn: OwnConnection, log: Log, before: datetime) -> int:
    rows = await conn.fetch(_OLD, log.schema, log.table, f"{log.table}_{before:%Y%m}")
    for row in rows:
        statement = "SELECT format('DROP TABLE %I.%I', $1::text, $2::text)"
        await conn.execute(await conn.fetchval(statement, log.schema, row[0]))
    statement = await conn.fetchval(
        "SELECT format('DELETE FROM %I.%I WHERE %I < $1', $1::text, $2::text, $3::text)",
        log.schema,
        f"{log.table}_default",
        log.column,
    )
    await conn.execute(statement, before)
    return len(rows)


def duties(_: Settings) -> list[Duty]:
    return [duty("partitions", QUEUE_LOGS)]
