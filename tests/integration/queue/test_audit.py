"""The audit finds what a fault can leave behind: results twice, gaps in the log, tasks that are stuck."""

import asyncio

from tests.support.queue_jobs import ended, kinds_of, numbers, submit, working
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.queue import audit
from trapline.queue.finish import NewEvent, TaskResult
from trapline.queue.tasks import Task


async def _problems(database: Database) -> set[str]:
    async with database.system_tx() as conn:
        return {difference.what for difference in await audit.audit(conn)}


async def test_a_result_that_is_there_twice_is_found(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def handle(_: Task) -> TaskResult:
        return TaskResult(1, events=[NewEvent("page", {})])

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(3))
    async with working(database, kinds):
        await ended(database, job_id)
    assert await _problems(database) == set()
    async with database.system_tx() as conn:
        await conn.execute(
            "INSERT INTO queue.event (job_id, number, organisation_id, type, task_id)"
            " SELECT job_id, 99, organisation_id, type, task_id FROM queue.event"
            " WHERE type = 'page' LIMIT 1"
        )
    assert await _problems(database) == {"events", "last event", "page events"}


async def test_tasks_that_nobody_will_finish_are_found(
    database: Database, organisation_id: OrganisationId
) -> None:
    started, free = asyncio.Event(), asyncio.Event()

    async def handle(_: Task) -> None:
        started.set()
        await free.wait()

    kinds = kinds_of(handle)
    await submit(database, kinds, organisation_id, numbers(1))
    async with working(database, kinds, grace=0.1):
        await started.wait()
        assert await _problems(database) == set()
        async with database.system_tx() as conn:
            await conn.execute("UPDATE queue.lease SET claimed_at = now() - interval '1 hour'")
            await conn.execute("UPDATE queue.agent SET finished_at = now() - interval '10 minutes'")
        assert await _problems(database) == {"its agent has ended and its lease is still renewed"}
        async with database.system_tx() as conn:
            await conn.execute("UPDATE queue.lease SET expires_at = now() - interval '10 minutes'")
        assert await _problems(database) == {"its lease expired and was not swept"}
        free.set()
