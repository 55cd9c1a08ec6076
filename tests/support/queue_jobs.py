"""What the tests of the queue share: kinds, a job in one line, a worker for a while."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs
from trapline.queue.agents import Agent
from trapline.queue.gate_release import GateRelease
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Handler, Kind, Kinds
from trapline.queue.notify import Notifier
from trapline.queue.sql import audit
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import EnqueueResult, NewTask
from trapline.queue.worker.worker import Worker


class Number(msgspec.Struct):
    """A payload."""

    n: int


def kinds_of(handler: Handler | None = None, **options: Any) -> Kinds:
    return Kinds([Kind("number", Number, handler, **options)])


def numbers(count: int, **options: Any) -> list[NewTask]:
    return [NewTask("number", Number(n), **options) for n in range(count)]


async def submit(
    database: Database,
    kinds: Kinds,
    organisation_id: OrganisationId,
    tasks: Sequence[NewTask],
    **options: Any,
) -> tuple[JobId, list[EnqueueResult]]:
    job = NewJob("test", organisation_id, **options)
    async with database.tenant_tx(organisation_id) as conn:
        added = await jobs.submit(conn, kinds, job, tasks, now=datetime.now(UTC))
    return job.id, added


async def status(database: Database, job_id: JobId) -> JobRow:
    async with database.system_tx() as conn:
        return await jobs.get(conn, job_id)


def make_worker(
    database: Database, kinds: Kinds, *, concurrency: int = 100, **options: Any
) -> Worker:
    """Return a worker of its own agent."""
    agent = Agent(database, "worker", concurrency, sorted(kinds))
    return Worker(agent, kinds, Notifier(database), GateRelease(database), **options)


@asynccontextmanager
async def working(database: Database, kinds: Kinds, **options: Any) -> AsyncIterator[Worker]:
    """Let a worker run while the block does."""
    worker = make_worker(database, kinds, **{"concurrency": 10, "grace": 1.0} | options)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await running


async def until(holds: Callable[[], bool], seconds: float = 100.0) -> None:
    """Wait until something is the case."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.01)


async def ended(database: Database, job_id: JobId, seconds: float = 100.0) -> JobRow:
    """Wait for a job's end by polling."""
    async with asyncio.timeout(seconds):
        while True:
            job = await status(database, job_id)
            if job.status in jobs.ENDED:
                return job
            await asyncio.sleep(0.02)


async def assert_sound(database: Database) -> None:
    """Every counter and slot equals the rows it counts, and no task is lost."""
    async with database.system_tx() as conn:
        assert await audit.job_differences(conn, job_id=None) == []
        assert await audit.gate_differences(conn) == []
        assert await audit.quota_differences(conn) == []
        assert await audit.lost_tasks(conn) == []
