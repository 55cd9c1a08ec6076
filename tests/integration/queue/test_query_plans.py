"""At a million rows the hot statements use their indexes: no sequential scan, no sort."""

import re
from datetime import timedelta

import asyncpg
import pytest

from tests.support.queue_jobs import kinds_of, numbers, submit
from trapline.db.connection import prepare
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.queue import job_list
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import claim, finish, jobs, leases

MILLION = 1_000_000
_MINUTE = timedelta(minutes=1)
FILL = """
WITH added AS (
    INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts)
    SELECT l.organisation_id, l.job_id, l.id, l.gate_id, 'number', '{"n": 1}', 3
    FROM queue.lane l CROSS JOIN generate_series(1, $1::integer)
    RETURNING id, lane_id
)
INSERT INTO queue.ready (lane_id, priority, task_id) SELECT lane_id, 0, id FROM added
"""
FILL_DONE = """
INSERT INTO queue.done (task_id, status, attempts, stalls)
SELECT -n, 0, 1, 0 FROM generate_series(1, $1::integer) n
"""
FILL_JOBS = """
INSERT INTO queue.job (id, organisation_id, kind, status)
SELECT gen_random_uuid(), $1, 'old', CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'completed' END
FROM generate_series(1, $2::integer) n
"""
FILL_LEASED = """
WITH numbers AS (SELECT n FROM generate_series(1, $1::integer) n),
l AS (INSERT INTO queue.lease (id, agent_id, expires_at)
      SELECT -n, 1, now() + interval '1 hour' FROM numbers)
INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls)
SELECT -n, -n, -1, 0, 0, 0 FROM numbers
"""


@pytest.fixture
async def full(database: Database, organisation_id: OrganisationId, dsn: str) -> asyncpg.Connection:  # type: ignore[type-arg]
    """A connection that logs every plan, to a database with a million of everything."""
    await submit(database, kinds_of(), organisation_id, numbers(1))
    conn = await asyncpg.connect(dsn)
    await prepare(conn)
    await conn.execute(FILL, MILLION)
    await conn.execute(
        "UPDATE queue.job SET total = $1, remaining = $1, reserved = $1", MILLION + 1
    )
    await conn.execute(FILL_DONE, MILLION)
    await conn.execute(FILL_JOBS, organisation_id, MILLION // 5)
    await conn.execute(FILL_LEASED, MILLION // 5)
    await conn.execute("VACUUM ANALYZE")
    await conn.execute(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
        " SET auto_explain.log_nested_statements = on; SET client_min_messages = log"
    )
    return conn


async def test_claim_finish_sweep_and_status_read_by_index(full: asyncpg.Connection) -> None:  # type: ignore[type-arg]
    plans: list[str] = []
    full.add_log_listener(lambda _, message: plans.append(str(message.message)))
    lane = await full.fetchval("SELECT id FROM queue.lane")
    options = {"most_stalls": 9, "agent_id": 1, "starting": [], "lease_time": _MINUTE}

    async def turn(
        done: list[claim.FinishAndClaimRow], outcomes: list[tuple[object, ...]]
    ) -> list[claim.FinishAndClaimRow]:
        return await claim.finish_and_claim(
            full,
            leases=[row.lease_id or 0 for row in done],
            tasks=[row.task_id or 0 for row in done],
            results=["1" for _ in done],
            outcomes=outcomes,  # type: ignore[arg-type]
            requests=[(lane, 100, -(2**15), 0, 99, False), (lane, 100, -(2**15), 0, 99, True)],
            **options,  # type: ignore[arg-type]
        )

    plans.clear()
    rows = [row for row in await turn([], []) if row.task_id]
    assert len(rows) == 200
    done = [
        (r.lease_id, r.task_id, TaskOutcome.COMPLETED, None, None, None, None) for r in rows[:50]
    ]
    back = [(r.lease_id, r.task_id, TaskOutcome.RETRY, None, None, None, None) for r in rows[100:]]
    await turn([], done)
    await turn(rows[50:100], [])
    await finish.finish(full, outcomes=back, lost=True, most_stalls=9)
    await leases.expired_tasks(full, most=100)
    await leases.renew_leases(full, leases=[1, 2], lease_time=_MINUTE)
    await leases.drop_expired_leases(full, most=100)
    await claim.promote(full, most=100)
    job_id = await full.fetchval("SELECT job_id FROM queue.lane")
    await jobs.get_job(full, job_id=job_id)
    await claim.served_lanes(full, most_per_organisation=1000)
    organisation_id = await full.fetchval("SELECT organisation_id FROM queue.lane")
    for status in (None, "failed"):
        known = await job_list.jobs_of(organisation_id, status=status).read(full, "newest", most=20)
    states = await claim.states_of_jobs(full, jobs=[job.id for job in known])
    assert len(states) == len(known) == 20
    wrong = [plan for plan in plans if _is_bad(plan)]
    assert not wrong, wrong[0]
    text = "\n".join(plans)
    for index in ("ready_pkey", "leased_pkey", "lease_pkey", "lease_expires_idx", "task_pkey"):
        assert index in text
    assert "job_organisation_idx" in text
    assert "job_organisation_status_idx" in text
    short = (
        "SELECT count(*) FROM queue.done WHERE result = '1' AND finished_at > now() - interval '1h'"
    )
    assert await full.fetchval(short) == 50


_BIG = "ready|leased|lease|task|done|job|waiting|event"


def _is_bad(plan: str) -> bool:
    """Whether a plan reads one of the large tables as a whole, or sorts its rows."""
    if "queue." not in plan or "pg_catalog" in plan:
        return False
    if re.search(rf"Seq Scan on ({_BIG})\b", plan):
        return True
    # Small sorts are of the batch itself (unnest, CTEs); one over a table's scan is not.
    return (
        re.search(rf"Sort [^\n]*\n(?:[^\n]*\n){{1,2}}\s+->  [^\n]*Scan[^\n]* on ({_BIG})\b", plan)
        is not None
    )
