"""At a million jobs and five million tasks the dashboard's questions are answered along an index."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from trapline.db.connection import Connection, prepare
from trapline.db.keyset import EARLIEST, LATEST
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import job_list, tasks
from trapline.queue.maintenance import statistics_rollup
from trapline.queue.sql import jobs as queries
from trapline.queue.sql import statistics

# Plans depend on proportions, not on the last zero: the benchmark has the full number.
JOBS, TASKS = 100_000, 500_000
FILL_JOBS = """
INSERT INTO queue.job (id, organisation_id, kind, status, created_at, finished_at)
SELECT gen_random_uuid(), $1, CASE WHEN n % 3 = 0 THEN 'crawl' ELSE 'scrape' END,
       (ARRAY['completed', 'completed', 'completed', 'failed', 'running', 'pending'])[1 + n % 6],
       now() - n * interval '80 milliseconds', now()
FROM generate_series(1, $2::integer) n
"""
FILL_TASKS = """
INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts)
SELECT $1, j.id, 1, 1, 'page', '{}', 3
FROM queue.job j CROSS JOIN generate_series(1, $2::integer)
"""
FILL_DEAD = """
WITH ended AS (
    INSERT INTO queue.done (task_id, status, attempts, stalls, error)
    SELECT id, (id % 5 = 0)::integer, 1, 0, 'It failed.' FROM queue.task RETURNING task_id, status
)
INSERT INTO queue.dead_letter (task_id, organisation_id, job_id, kind, error)
SELECT t.id, t.organisation_id, t.job_id, t.kind, 'It failed.'
FROM ended e JOIN queue.task t ON t.id = e.task_id WHERE e.status = 1
"""


@pytest.fixture
async def full(database: Database, organisation_id: OrganisationId, dsn: str) -> Connection:
    """A connection that logs every plan."""
    conn = await asyncpg.connect(dsn)
    await prepare(conn)
    await conn.execute(FILL_JOBS, organisation_id, JOBS)
    await conn.execute(FILL_TASKS, organisation_id, TASKS // JOBS)
    await conn.execute(FILL_DEAD)
    await statistics_rollup.merge_tally(database)
    await conn.execute("VACUUM ANALYZE")
    await conn.execute(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET client_min_messages = log"
    )
    return conn


async def test_jobs_by_status_and_time_tasks_errors_and_counts(
    full: asyncpg.Connection,  # type: ignore[type-arg]
    organisation_id: OrganisationId,
) -> None:
    plans: list[str] = []
    full.add_log_listener(lambda _, message: plans.append(str(message.message)))
    now = datetime.now(UTC)
    hour_ago = now - timedelta(hours=1)
    first = await full.fetchrow("SELECT id, created_at FROM queue.job LIMIT 1")
    assert first is not None
    plans.clear()
    lists: list[tuple[job_list.Sort, dict[str, Any]]] = [
        ("newest", {}),
        ("newest", {"status": "failed"}),
        ("newest", {"status": "failed", "since": hour_ago}),
        ("newest", {"since": hour_ago}),
        ("oldest", {}),
        ("oldest", {"status": "running", "until": hour_ago}),
    ]
    for sort, filters in lists:
        jobs = job_list.jobs_of(organisation_id, **filters)
        for after in (None, (first["created_at"], UUID(str(first["id"])))):
            assert len(await jobs.read(full, sort, after=after, most=50)) <= 50
    assert len(plans) == 12
    _read_along(plans, "job_organisation")

    plans.clear()
    counted = await statistics.count_jobs(
        full, organisation_id=organisation_id, since=EARLIEST, until=LATEST
    )
    assert sum(row.jobs for row in counted) == JOBS
    hours = await statistics.jobs_by_hour(
        full, organisation_id=organisation_id, since=now - timedelta(days=1), until=LATEST
    )
    assert sum(hour.created for hour in hours) == JOBS
    # A handful of rows, however many jobs there are.
    assert await full.fetchval("SELECT count(*) FROM queue.job_tally") < 100

    plans.clear()
    job_id = JobId(first["id"])
    assert len(await tasks.list_of_job(full, job_id, most=50)) == TASKS // JOBS
    await queries.errors_of_job(full, job_id=job_id, after=0, most=50)
    await queries.get_job(full, job_id=job_id)
    _read_along(plans, "job_")


def _read_along(plans: list[str], index: str) -> None:
    """Every plan uses the index, reads nothing else, and sorts nothing."""
    for plan in plans:
        assert re.search(rf"Index.*Scan.* using \S*{index}\S*", plan), plan
        assert "Seq Scan" not in plan, plan
        assert "Sort" not in plan, plan
