"""Months come and go for the logs of visits, as for those of the queue."""

from datetime import UTC, datetime, timedelta

from trapline.app import VISIT_LOGS
from trapline.db import pool
from trapline.db.pool import Database
from trapline.queue.maintenance import partitions

PARTITIONS = """
SELECT c.relname, c.relforcerowsecurity FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'archive' AND c.relname ~ '^visit_[0-9]{6}$' ORDER BY 1
"""


async def test_months_are_made_ahead_and_isolated(database: Database) -> None:
    assert await partitions.keep_up(database, VISIT_LOGS) == 2 * len(VISIT_LOGS)
    assert await partitions.keep_up(database, VISIT_LOGS) == 0
    async with pool.owner(database.dsn, database.settings) as conn:
        rows = await conn.fetch(PARTITIONS)
    expected = partitions.months_after(datetime.now(UTC), 2)
    assert [row["relname"] for row in rows] == [f"visit_{month:%Y%m}" for month in expected]
    assert all(row["relforcerowsecurity"] for row in rows)


async def test_what_is_past_its_time_goes(database: Database) -> None:
    old = datetime.now(UTC) - timedelta(days=database.settings.keep_days + 40)
    async with pool.owner(database.dsn, database.settings) as conn:
        month = old.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        end = (month + timedelta(days=32)).replace(day=1)
        await conn.execute(
            f"CREATE TABLE archive.visit_{month:%Y%m} PARTITION OF archive.visit"
            f" FOR VALUES FROM ('{month}') TO ('{end}')"
        )
        await partitions.keep_up(database, VISIT_LOGS)
        assert f"visit_{month:%Y%m}" not in [row["relname"] for row in await conn.fetch(PARTITIONS)]
