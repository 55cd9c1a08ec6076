"""Faults of PostgreSQL under a worker: lost connections, a full disk, bugs. Nothing is lost or stuck."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import pytest

from tests.support.queue_jobs import (
    assert_sound,
    ended,
    kinds_of,
    make_worker,
    numbers,
    submit,
    until,
    working,
)
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.queue.agents import Agent
from trapline.queue.finish import Attempt
from trapline.queue.maintenance import dead_workers
from trapline.queue.maintenance.dead_workers import DeadAgents
from trapline.queue.supervisor import supervise
from trapline.queue.tasks import Task


async def _kill(database: Database, purpose: str) -> int:
    """End the backends of one purpose; return how many there were."""
    async with database.owner() as conn:
        return len(
            await conn.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = $1",
                f"trapline {purpose}",
            )
        )


async def test_an_agent_that_was_declared_dead_registers_again(database: Database) -> None:
    agent = Agent(database, "worker", 1, ["number"])
    await agent.register()
    first = agent.id
    alive = asyncio.create_task(agent.keep_alive())
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.agent SET finished_at = now(), died = true")
    await _kill(database, "agent")
    await until(lambda: agent.id != first or alive.done())
    assert not alive.done()
    assert await DeadAgents().look(database) == 0
    alive.cancel()
    await asyncio.gather(alive, return_exceptions=True)
    await agent.finish()


async def test_an_agent_takes_its_lock_again_before_it_is_declared_dead(
    database: Database,
) -> None:
    agent = Agent(database, "worker", 1, ["number"])
    await agent.register()
    first, alive = agent.id, asyncio.create_task(agent.keep_alive())
    assert await _kill(database, "agent") == 1
    async with asyncio.timeout(60):
        while not await _locks(database):  # noqa: ASYNC110 (the server has no event for it)
            await asyncio.sleep(0.05)
    assert agent.id == first
    alive.cancel()
    await asyncio.gather(alive, return_exceptions=True)
    await agent.finish()


async def _locks(database: Database) -> int:
    async with database.system_tx() as conn:
        return int(
            await conn.fetchval(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )


@pytest.mark.parametrize("purpose", ["agent", "listener", "worker", "tenant", "claims"])
async def test_a_worker_outlives_the_loss_of_each_connection(
    database: Database, organisation_id: OrganisationId, purpose: str
) -> None:
    async def handle(_: Task) -> int:
        await asyncio.sleep(0.01)
        return 1

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(300))
    async with working(database, kinds) as worker:
        for _ in range(5):
            await asyncio.sleep(0.05)
            await _kill(database, purpose)
        job = await ended(database, job_id)
        assert worker.unfinished == 0 or await ended(database, job_id)
    assert (job.status, job.completed) == ("completed", 300)
    await assert_sound(database)


async def test_a_full_disk_is_waited_out(
    database: Database, organisation_id: OrganisationId
) -> None:
    """While the server refuses to store, nothing is dropped; health knows; then all goes on."""
    full, stored = True, 0

    async def store(_: Connection, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        nonlocal stored
        if full:
            raise asyncpg.DiskFullError("could not extend file: No space left on device")
        stored += len(attempts)
        return [attempt.with_value(None) for attempt in attempts]

    async def handle(_: Task) -> int:
        return 1

    kinds = kinds_of(handle, stored=True)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(40))
    async with working(database, kinds, store=store):
        await until(lambda: database.shortage.message is not None)
        full = False
        job = await ended(database, job_id)
    assert (job.status, job.completed, job.failed) == ("completed", 40, 0)
    assert stored == 40
    assert database.shortage.message is None
    await assert_sound(database)


async def test_leases_of_dropped_work_expire(
    database: Database, organisation_id: OrganisationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose finish raises, whatever the reason, is run again instead of being held for ever."""

    async def handle(_: Task) -> int:
        return 1

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(3))
    worker = make_worker(database, kinds, concurrency=10, lease_time=timedelta(seconds=1))
    broken = True
    claimer, finisher = worker._claim_loop.claimer, worker._claim_loop.finisher
    turn, finish = type(claimer).finish_and_claim, type(finisher).finish

    async def bad_turn(self: object, agent_id: object, attempts: list[Attempt], lanes: object):  # type: ignore[no-untyped-def]  # noqa: ANN202
        if broken and attempts:
            raise asyncpg.InternalServerError("no")
        return await turn(self, agent_id, attempts, lanes)  # type: ignore[arg-type]

    async def bad_finish(self: object, attempts: Sequence[Attempt]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        if broken:
            raise TypeError("a bug")
        return await finish(self, attempts)  # type: ignore[arg-type]

    monkeypatch.setattr(type(claimer), "finish_and_claim", bad_turn)
    monkeypatch.setattr(type(finisher), "finish", bad_finish)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(100):
        while not await dead_workers.sweep(database):  # noqa: ASYNC110 (the server has no event for it)
            await asyncio.sleep(0.1)
    broken = False
    job = await ended(database, job_id)
    worker.stop()
    await running
    assert (job.status, job.completed) == ("completed", 3)
    await assert_sound(database)


async def test_a_part_that_fails_is_restarted() -> None:
    runs = 0
    sound = asyncio.Event()

    async def part() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise KeyError("a bug")
        sound.set()
        await asyncio.Event().wait()

    supervised = asyncio.create_task(supervise("part", part))
    async with asyncio.timeout(60):
        await sound.wait()
    assert not supervised.done()
    supervised.cancel()
    await asyncio.gather(supervised, return_exceptions=True)
