"""Monthly partitions: made ahead, dropped when the month is older than is kept."""

from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db import pool
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.queue.maintenance.duty import Duty
from trapline.settings import Settings

MONTHS_AHEAD: Final = 2
# The tables and whether their rows belong to organisations.
TABLES: Final = (("job_log", "created_at", True), ("statistic", "minute", False))

# Names are made by format(): these are statements that no query file can hold.
_MAKE: Final = "SELECT format('CREATE TABLE IF NOT EXISTS queue.%I PARTITION OF queue.%I FOR VALUES FROM (%L) TO (%L)', $1::text, $2::text, $3::timestamptz, $4::timestamptz)"
_OLD: Final = """
SELECT c.relname::text FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = 'queue' AND p.relname = $1 AND c.relname < $2 AND c.relname ~ '_[0-9]{6}$'
"""


async def keep_up(database: Database) -> int:
    """Make the partitions of the months to come and drop those past their time."""
    now = datetime.now(UTC)
    done = 0
    async with pool.owner(database.dsn, database.settings) as conn:
        for table, column, owned in TABLES:
            for month in months_after(now, MONTHS_AHEAD):
                done += await _make(conn, table, month, owned=owned)
            done += await _drop(
                conn, table, column, now - timedelta(days=database.settings.keep_days)
            )
    return done


def months_after(now: datetime, count: int) -> list[datetime]:
    """Return the first moments of the next months. This month's rows are in the default partition
    until the first month that was made ahead begins.
    """
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [first]
    for _ in range(count):
        months.append((months[-1] + timedelta(days=32)).replace(day=1))
    return months[1:]


async def _make(conn: OwnConnection, table: str, month: datetime, *, owned: bool) -> int:
    name = f"{table}_{month:%Y%m}"
    if await conn.fetchval("SELECT to_regclass($1)", f"queue.{name}") is not None:
        return 0
    async with conn.transaction():
        end = (month + timedelta(days=32)).replace(day=1)
        await conn.execute(await conn.fetchval(_MAKE, name, table, month, end))
        grant = "isolate" if owned else "share"
        await conn.execute(f"SELECT tenancy.{grant}($1::text::regclass)", f"queue.{name}")
    return 1


async def _drop(conn: OwnConnection, table: str, column: str, before: datetime) -> int:
    old = [row[0] for row in await conn.fetch(_OLD, table, f"{table}_{before:%Y%m}")]
    for name in old:
        await conn.execute(
            await conn.fetchval("SELECT format('DROP TABLE queue.%I', $1::text)", name)
        )
    statement = await conn.fetchval(
        "SELECT format('DELETE FROM queue.%I WHERE %I < $1', $1::text, $2::text)",
        f"{table}_default",
        column,
    )
    await conn.execute(statement, before)
    return len(old)


def duties(_: Settings) -> list[Duty]:
    return [Duty("partitions", keep_up, timedelta(hours=1))]
