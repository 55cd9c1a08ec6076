"""Turns of a nearly full worker: little is asked for now and then, and stored together."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from trapline.model import JobId, OrganisationId, TaskId
from trapline.queue.finish import Attempt
from trapline.queue.sql.claim import ServedLanesRow
from trapline.queue.tasks import Task
from trapline.queue.worker.claim_loop import STORED_BESIDE, ClaimLoop
from trapline.queue.worker.claimed_tasks import ClaimedTasks, RunningTask
from trapline.queue.worker.completion_buffer import CompletionBuffer
from trapline.queue.worker.lanes import Lanes

CONCURRENCY = 8
NONE: Any = None


def task(number: int) -> Task:
    return Task(
        id=TaskId(number),
        job_id=JobId(uuid4()),
        organisation_id=OrganisationId(uuid4()),
        kind="page",
        payload=None,
        attempt=1,
        max_attempts=1,
        stalls=0,
        priority=0,
        lease_id=1,
        lane_id=1,
        gate_id=1,
        deadline=None,
        timeout=timedelta(minutes=1),
        trace_id=None,
        zero_data_retention=False,
        limited=False,
    )


def turns_with(running: int) -> ClaimLoop:
    """Return the turns of a worker that runs so many tasks and knows one lane."""
    claimed, lanes = ClaimedTasks(), Lanes()
    runner = asyncio.current_task()
    assert runner is not None
    for number in range(running):
        claimed.running[number] = RunningTask(task(number), runner, time.monotonic())
    lane = ServedLanesRow(
        id=1,
        organisation_id=OrganisationId(uuid4()),
        job_id=JobId(uuid4()),
        gate_id=1,
        priority=0,
        limited=False,
        ready_at=datetime.now(UTC),
        pending=False,
        zero_data_retention=False,
    )
    lanes.refresh([lane], time.monotonic())
    return ClaimLoop(
        NONE,
        NONE,
        NONE,
        lanes,
        claimed,
        CompletionBuffer(),
        NONE,
        asyncio.Event(),
        CONCURRENCY,
    )


async def test_a_nearly_full_worker_asks_for_little_only_now_and_then() -> None:
    turns = turns_with(running=CONCURRENCY - 1)
    turns._turned_at = time.monotonic() + 60
    assert turns._next() == ([], [])
    turns._turned_at = 0.0
    attempts, (request,) = turns._next()
    assert (attempts, request.take) == ([], 1)


async def test_a_worker_with_room_asks_at_once() -> None:
    turns = turns_with(running=CONCURRENCY // 2)
    turns._turned_at = time.monotonic() + 60
    _, (request,) = turns._next()
    assert request.take == CONCURRENCY // 2


async def test_what_waits_to_be_stored_keeps_no_runner_from_work_up_to_a_bound() -> None:
    """One batch is being written and another gathers; more would only fill the memory."""
    turns = turns_with(running=0)
    turns.completions.rich = [
        Attempt(task(number)) for number in range(STORED_BESIDE * CONCURRENCY)
    ]
    assert turns._room() == CONCURRENCY
    turns.completions.rich += [Attempt(task(100 + number)) for number in range(CONCURRENCY)]
    assert turns._room() == 0


async def test_what_has_ended_is_finished_at_once() -> None:
    turns = turns_with(running=CONCURRENCY - 1)
    turns._turned_at = time.monotonic() + 60
    turns.completions.put(Attempt(task(100)))
    attempts, _ = turns._next()
    assert len(attempts) == 1


async def test_a_batch_grows_while_runners_are_busy_until_it_is_large() -> None:
    turns = turns_with(running=CONCURRENCY)
    turns.completions.put(Attempt(task(100)), rich=True)
    gathering = asyncio.create_task(turns._fill_batch())
    await asyncio.sleep(0)
    assert not gathering.done()
    for number in range(CONCURRENCY // 2):
        turns.completions.put(Attempt(task(200 + number)), rich=True)
    await gathering
    assert len(turns.completions.take_to_store()) == CONCURRENCY // 2 + 1


async def test_a_batch_does_not_grow_for_ever() -> None:
    turns = turns_with(running=CONCURRENCY)
    turns.completions.put(Attempt(task(100)), rich=True)
    await turns._fill_batch()
    assert len(turns.completions.take_to_store()) == 1


async def test_where_runners_are_idle_nothing_waits_for_a_larger_batch() -> None:
    turns = turns_with(running=CONCURRENCY // 2 - 1)
    turns.completions.put(Attempt(task(100)), rich=True)
    gathering = asyncio.create_task(turns._fill_batch())
    await asyncio.sleep(0)
    assert gathering.done()
