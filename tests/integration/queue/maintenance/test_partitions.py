"""Months come and go for the logs of visits, as for those of the queue."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.settings import change_settings
from trapline.app.duties import VISIT_LOGS
from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.model import OrganisationId
from trapline.queue.maintenance import partitions

PARTITIONS = """
SELECT c.relname, c.relforcerowsecurity FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'archive' AND c.relname ~ '^visit_[0-9]{6}$' ORDER BY 1
"""


async def test_months_are_made_ahead_and_isolated(database: Database) -> None:
    assert await partitions.maintain(database, VISIT_LOGS) == len(VISIT_LOGS)
    assert await partitions.maintain(database, VISIT_LOGS) == 0
    async with database.owner() as conn:
        rows = await conn.fetch(PARTITIONS)
    expected = partitions.months_after(datetime.now(UTC), 1)
    assert [row["relname"] for row in rows] == [f"visit_{month:%Y%m}" for month in expected]
    assert all(row["relforcerowsecurity"] for row in rows)


async def test_what_is_past_its_time_goes(database: Database) -> None:
    old = datetime.now(UTC) - timedelta(days=database.settings.retention.keep_days + 40)
    async with database.owner() as conn:
        month = old.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        end = (month + timedelta(days=32)).replace(day=1)
        await conn.execute(
            f"CREATE TABLE archive.visit_{month:%Y%m} PARTITION OF archive.visit"
            f" FOR VALUES FROM ('{month}') TO ('{end}')"
        )
        await partitions.maintain(database, VISIT_LOGS)
        assert f"visit_{month:%Y%m}" not in [row["relname"] for row in await conn.fetch(PARTITIONS)]


async def _old_lines(database: Database, organisation_id: OrganisationId) -> datetime:
    """Two days of old log lines, one in the default partition and one in its own month."""
    old = datetime.now(UTC) - timedelta(days=database.settings.retention.keep_days + 70)
    month = old.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = (month + timedelta(days=32)).replace(day=1)
    async with database.owner() as conn:
        await conn.execute(
            f"CREATE TABLE queue.job_log_{month:%Y%m} PARTITION OF queue.job_log"
            f" FOR VALUES FROM ('{month}') TO ('{end}')"
        )
    async with database.system_tx() as conn:
        for at, level in ((month, "INFO"), (month, "ERROR"), (month, "INFO"), (end, "INFO")):
            await conn.execute(
                "INSERT INTO queue.job_log (organisation_id, job_id, step, level, message, created_at)"
                " VALUES ($1, gen_random_uuid(), 'fetch', $2, 'line ü', $3)",
                organisation_id,
                level,
                at,
            )
    return month


def _exporting(database: Database, directory: Path) -> Database:
    settings = change_settings(database.settings, {"export_logs": directory / "logs"})
    return replace(database, settings=settings)


async def test_logs_are_counted_by_day_before_they_go(
    database: Database, organisation_id: OrganisationId
) -> None:
    month = await _old_lines(database, organisation_id)
    await partitions.maintain(database)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM queue.job_log") == 0
        days = await conn.fetch("SELECT day, level, lines FROM queue.job_log_day ORDER BY 1, 2")
    end = (month + timedelta(days=32)).replace(day=1)
    expected = [(month.date(), "ERROR", 1), (month.date(), "INFO", 2), (end.date(), "INFO", 1)]
    assert [tuple(day) for day in days] == expected


async def test_logs_are_exported_before_they_go(
    database: Database, organisation_id: OrganisationId, tmp_path: Path
) -> None:
    month = await _old_lines(database, organisation_id)
    await partitions.maintain(_exporting(database, tmp_path))
    end = (month + timedelta(days=32)).replace(day=1)
    names = [f"queue.job_log_{month:%Y%m}.jsonl", f"queue.job_log_{end:%Y%m%d}.jsonl"]
    assert sorted(file.name for file in (tmp_path / "logs").iterdir()) == names
    lines = (tmp_path / "logs" / names[0]).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["line ü"] * 3


async def test_a_log_that_cannot_be_exported_stays(
    database: Database, organisation_id: OrganisationId, tmp_path: Path
) -> None:
    await _old_lines(database, organisation_id)
    (tmp_path / "logs").write_text("not a directory")
    with pytest.raises(Unavailable):
        await partitions.maintain(_exporting(database, tmp_path))
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM queue.job_log") == 4
        assert await conn.fetchval("SELECT count(*) FROM queue.job_log_day") == 0


async def test_a_writer_does_not_wait_long_for_a_drop(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _old_lines(database, organisation_id)
    async with database.system_tx() as reader:
        # Someone reads the log in a long transaction: the drop gives up and comes again.
        await reader.fetch("SELECT count(*) FROM queue.job_log")
        await partitions.maintain(database)
        assert await reader.fetchval("SELECT count(*) FROM queue.job_log_day") <= 1
    await partitions.maintain(database)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT sum(lines)::bigint FROM queue.job_log_day") == 4
        assert await conn.fetchval("SELECT count(*) FROM queue.job_log") == 0


async def test_visits_and_statistics_are_counted_too(
    database: Database, organisation_id: OrganisationId
) -> None:
    old = datetime.now(UTC) - timedelta(days=database.settings.retention.keep_days + 2)
    async with database.system_tx() as conn:
        for took in (10, 30):
            await conn.execute(
                "INSERT INTO archive.visit (organisation_id, uuid, site_id, url_id, crawl_type,"
                " started_at, took_ms, exit_code)"
                " VALUES ($1, gen_random_uuid(), $1, 1, 1, $2, $3, 0)",
                organisation_id,
                old,
                took,
            )
            await conn.execute(
                "INSERT INTO queue.statistic (kind, minute, completed, seconds)"
                " VALUES ('page', $1, 3, 1.5)",
                old,
            )
    await partitions.maintain(database, VISIT_LOGS)
    await partitions.maintain(database)
    async with database.system_tx() as conn:
        visits = await conn.fetchrow("SELECT day, visits, took_ms FROM archive.visit_day")
        statistics = await conn.fetchrow("SELECT day, completed, seconds FROM queue.statistic_day")
    assert visits is not None
    assert tuple(visits) == (old.date(), 2, 40)
    assert statistics is not None
    assert tuple(statistics) == (old.date(), 6, 3.0)
