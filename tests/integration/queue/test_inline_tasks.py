"""Tasks that their own caller runs: beside workers at one gate, and after the caller's death."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.queue_jobs import (
    Number,
    assert_sound,
    ended,
    kinds_of,
    numbers,
    status,
    submit,
    working,
)
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.model import OrganisationId
from trapline.queue.agents import Agent
from trapline.queue.finish import Attempt, FinishedBatch, Finisher
from trapline.queue.gates import Gate
from trapline.queue.inline_tasks import InlineTasks
from trapline.queue.jobs import NewJob
from trapline.queue.maintenance import loop as maintenance
from trapline.queue.notify import Notifier
from trapline.queue.sql import inline_tasks as queries
from trapline.queue.tasks import NewTask

GATE = Gate("host:one.test", bound=1)


@pytest.fixture
async def inline_tasks(database: Database) -> AsyncIterator[InlineTasks]:
    agent = Agent(database, "caller", 1, ["number"])
    notifier = Notifier(database)
    await agent.register()
    kinds = kinds_of()
    yield InlineTasks(database, kinds, agent, Finisher(database, kinds), notifier)
    await notifier.aclose()
    await agent.finish()


def _soon(seconds: float = 20) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_a_caller_is_not_starved_by_a_worker_at_the_same_gate(
    database: Database, organisation_id: OrganisationId, inline_tasks: InlineTasks
) -> None:
    async def handler(_: object) -> None:
        await asyncio.sleep(0.02)

    kinds = kinds_of(handler)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(400, gate=GATE))
    async with working(database, kinds):
        async with asyncio.timeout(100):
            while (await status(database, job_id)).completed < 5:  # noqa: ASYNC110 (no event)
                await asyncio.sleep(0.05)
        held = await inline_tasks.begin(
            NewJob("test", organisation_id), NewTask("number", Number(1), gate=GATE), latest=_soon()
        )
        before = await status(database, job_id)
        await asyncio.sleep(0.3)
        assert (await status(database, job_id)).completed - before.completed <= 1
        await inline_tasks.finish(Attempt(held.task))
    assert (await status(database, held.task.job_id)).status == "completed"
    assert (await status(database, job_id)).remaining > 0
    await assert_sound(database)


async def test_a_task_dies_with_its_caller(
    database: Database, organisation_id: OrganisationId, inline_tasks: InlineTasks
) -> None:
    job = NewJob("test", organisation_id)
    await inline_tasks.begin(job, NewTask("number", Number(1), gate=GATE), latest=_soon())
    # The caller's connection is cut, as when its process is killed.
    assert inline_tasks.agent._conn is not None
    await inline_tasks.agent._conn.close()
    duties = asyncio.create_task(
        maintenance.run(database, maintenance.all_duties(database.settings))
    )
    try:
        dead = await ended(database, job.id)
    finally:
        duties.cancel()
        await asyncio.gather(duties, return_exceptions=True)
    assert (dead.status, dead.failed) == ("failed", 1)
    async with database.system_tx() as conn:
        assert "died" in await conn.fetchval("SELECT error FROM queue.done")
        assert await conn.fetchval("SELECT count(*) FROM queue.ready") == 0
    await assert_sound(database)


async def test_a_place_whose_answer_was_lost_is_not_taken_twice(
    database: Database,
    organisation_id: OrganisationId,
    inline_tasks: InlineTasks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin, tries = queries.begin_inline_task, itertools.count()

    async def cut_off(conn: Connection, **arguments: Any) -> Any:
        place = await begin(conn, **arguments)
        if next(tries) == 0:
            raise ConnectionResetError
        return place

    monkeypatch.setattr(queries, "begin_inline_task", cut_off)
    job = NewJob("test", organisation_id)
    held = await inline_tasks.begin(job, NewTask("number", Number(1), gate=GATE), latest=_soon())
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT in_flight FROM queue.gate") == 1
        assert await conn.fetchval("SELECT task_id FROM queue.leased") == held.task.id
    assert await inline_tasks.finish(Attempt(held.task))
    assert (await status(database, job.id)).status == "completed"
    await assert_sound(database)


async def test_who_is_cancelled_while_a_place_is_taken_gives_it_back(
    database: Database,
    organisation_id: OrganisationId,
    inline_tasks: InlineTasks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin, taken = queries.begin_inline_task, asyncio.Event()

    async def slow(conn: Connection, **arguments: Any) -> Any:
        place = await begin(conn, **arguments)
        taken.set()
        await asyncio.sleep(0.05)
        return place

    monkeypatch.setattr(queries, "begin_inline_task", slow)
    job = NewJob("test", organisation_id)
    new = NewTask("number", Number(1), gate=GATE)
    asking = asyncio.create_task(inline_tasks.begin(job, new, latest=_soon()))
    await taken.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await status(database, job.id)).cancelled == 1
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT in_flight FROM queue.gate") == 0
    await assert_sound(database)


async def test_who_finishes_is_told_whether_the_task_was_still_theirs(
    database: Database, organisation_id: OrganisationId, inline_tasks: InlineTasks
) -> None:
    job = NewJob("test", organisation_id)
    held = await inline_tasks.begin(job, NewTask("number", Number(1), gate=GATE), latest=_soon())
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.lease SET expires_at = now()")
    assert not await inline_tasks.finish(Attempt(held.task))
    assert (await status(database, job.id)).remaining == 1


async def test_a_finish_whose_answer_was_lost_counts_once(
    database: Database,
    organisation_id: OrganisationId,
    inline_tasks: InlineTasks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finish, tries = Finisher._halve, itertools.count()

    async def cut_off(self: Finisher, attempts: Sequence[Attempt], finished: FinishedBatch) -> None:
        if next(tries) == 0:
            await finish(self, attempts, FinishedBatch())
            raise ConnectionResetError
        await finish(self, attempts, finished)

    monkeypatch.setattr(Finisher, "_halve", cut_off)
    job = NewJob("test", organisation_id)
    held = await inline_tasks.begin(job, NewTask("number", Number(1), gate=GATE), latest=_soon())
    assert await inline_tasks.finish(Attempt(held.task))
    assert (await status(database, job.id)).completed == 1
    await assert_sound(database)


async def test_an_id_is_given_to_one_job(
    database: Database, organisation_id: OrganisationId, inline_tasks: InlineTasks
) -> None:
    job = NewJob("test", organisation_id)
    new = NewTask("number", Number(1), gate=Gate("host:two.test", bound=5))
    held = await inline_tasks.begin(job, new, latest=_soon())
    with pytest.raises(Conflict):
        await inline_tasks.begin(job, new, latest=_soon())
    assert await inline_tasks.finish(Attempt(held.task))
    await assert_sound(database)
