"""Our own queue: fill, drain, feed, and claims at depth."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec

from tests.support.queue_jobs import make_worker
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.notify import Notifier
from trapline.queue.tasks import NewTask, Task
from trapline.settings import Settings

Start = Callable[[str, str, int], Awaitable[asyncio.subprocess.Process]]


class Noop(msgspec.Struct):
    """A payload."""

    n: float


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[tuple[Database, OrganisationId]]:
    async with Database.open(Settings.load({"DATABASE_URL": dsn})) as database:
        async with database.system_tx() as conn:
            organisation_id = await tenancy.ensure_default(conn)
        yield database, organisation_id


async def drain(dsn: str, tasks: int, count: Any) -> float:
    """Run a worker until nothing is left, or for ever; return the seconds it took."""

    async def noop(task: Task) -> None:
        del task
        count.done += 1

    async with opened(dsn) as (database, _):
        worker = make_worker(database, Kinds([Kind("noop", Noop, noop)]))
        began = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while not tasks or await _left(database):  # noqa: ASYNC110 (the database is asked)
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - began
        worker.stop()
        await running
        return seconds


async def _left(database: Database) -> int:
    async with database.system_tx() as conn:
        return int(await conn.fetchval("SELECT coalesce(sum(remaining), 0) FROM queue.job"))


async def fill(dsn: str, tasks: int, *, n_jobs: int = 1, n_gates: int = 1) -> float:
    """Enqueue tasks, evenly over jobs and gates; return the seconds it took."""
    kinds = Kinds([Kind("noop", Noop)])
    gates = [Gate(f"bench:{n}") for n in range(n_gates)] if n_gates > 1 else [None]
    async with opened(dsn) as (database, organisation_id):
        await empty(dsn)
        began = time.perf_counter()
        for number in range(n_jobs):
            part = range(number, tasks, n_jobs)
            new = [NewTask("noop", Noop(1.0), gates[n % len(gates)]) for n in part]
            await _submit(database, kinds, organisation_id, new)
        seconds = time.perf_counter() - began
    conn = await asyncpg.connect(dsn)
    await conn.execute("VACUUM ANALYZE queue.ready, queue.task")
    await conn.close()
    return seconds


async def _submit(
    database: Database, kinds: Kinds, organisation_id: OrganisationId, new: list[NewTask]
) -> JobId:
    job = NewJob("bench", organisation_id)
    async with database.tenant_tx(organisation_id) as conn:
        await jobs.submit(conn, kinds, job, new, now=datetime.now(UTC))
    return job.id


async def empty(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    names = "job lane gate task ready waiting overflow lease leased done unique_key event statistic"
    statement = "TRUNCATE " + ", ".join(f"queue.{name}" for name in names.split())
    while True:
        try:
            await conn.execute(statement)
            break
        except asyncpg.DeadlockDetectedError:
            # A worker of the part before is still saying goodbye.
            await asyncio.sleep(1)
    await conn.close()


async def starts(dsn: str, _: int, __: Any) -> float:
    """Run a worker for ever that prints when each task began, by the clock of the machine."""

    async def note(task: Task) -> None:
        print(f"{task.payload.n:.0f} {time.monotonic():.6f}", flush=True)

    async with opened(dsn) as (database, _organisation):
        await make_worker(database, Kinds([Kind("noop", Noop, note)])).run()
    return 0.0


async def latencies(dsn: str, start: Start, samples: int) -> list[float]:
    """Milliseconds from an enqueue's commit here to its handler's start in another process."""
    async with opened(dsn) as (database, organisation_id):
        await empty(dsn)
        worker = await start("trapline-starts", dsn, 0)
        notifier = Notifier(database)
        kinds = Kinds([Kind("noop", Noop)])
        await asyncio.sleep(3)
        waits = []
        assert worker.stdout is not None
        for number in range(samples):
            await _submit(database, kinds, organisation_id, [NewTask("noop", Noop(float(number)))])
            committed = time.monotonic()
            notifier.notify(ready=True)
            n, began = (await worker.stdout.readline()).split()
            while b"." not in began or int(n) != number:
                n, began = (await worker.stdout.readline()).split()
            waits.append(1000 * (float(began) - committed))
            await asyncio.sleep(0.05)
        await notifier.aclose()
        worker.kill()
        await worker.wait()
    return sorted(waits)


FILL_READY = """
WITH added AS (
    INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts)
    SELECT l.organisation_id, l.job_id, l.id, l.gate_id, 'noop', '{"n": 1}', 3
    FROM queue.lane l CROSS JOIN generate_series(1, $1::integer)
    RETURNING id, lane_id
)
INSERT INTO queue.ready (lane_id, priority, task_id) SELECT lane_id, 0, id FROM added
"""
FILL_DONE = """
INSERT INTO queue.done (task_id, status, attempts, stalls)
SELECT -n, 0, 1, 0 FROM generate_series($1::bigint, $2::bigint) n
"""


async def deepen(dsn: str, queued: int, finished: int) -> None:
    """Bring the one lane to so many queued and so many finished tasks, by the server itself."""
    conn = await asyncpg.connect(dsn)
    have = await conn.fetchval("SELECT count(*) FROM queue.ready")
    await conn.execute(FILL_READY, max(0, queued - have))
    await conn.execute("UPDATE queue.job SET total = $1, remaining = $1", queued)
    if finished:
        await conn.execute(FILL_DONE, 1, finished)
    await conn.execute("VACUUM ANALYZE queue.ready, queue.done, queue.task")
    await conn.execute("CHECKPOINT")
    await conn.close()
