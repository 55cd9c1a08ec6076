"""The worker: handlers do what handlers do, and each task ends once, in a defined state."""

import asyncio
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests.support.queue_jobs import (
    Number,
    assert_sound,
    ended,
    kinds_of,
    numbers,
    status,
    submit,
    until,
    working,
)
from trapline.db import pool
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode, VisitFailed
from trapline.model import OrganisationId
from trapline.queue import dead_letters, jobs, tasks
from trapline.queue.dead_letters import DeadLetterFilter
from trapline.queue.finish import Attempt, NewEvent, TaskResult
from trapline.queue.gates import Gate
from trapline.queue.notify import Listener
from trapline.queue.retry_policy import RetryLater, RetryPolicy, Skip
from trapline.queue.sql import events
from trapline.queue.tasks import NewTask, Task, TaskState, Unique
from trapline.queue.worker.claimed_tasks import ClaimedTasks
from trapline.queue.worker.completion_buffer import CompletionBuffer
from trapline.queue.worker.lanes import Lanes
from trapline.queue.worker.statistics import Statistics
from trapline.queue.worker.worker_refresh import WorkerRefresh

AT_ONCE = RetryPolicy(max_attempts=3, first=timedelta(milliseconds=1))


async def test_a_job_runs_to_its_end(database: Database, organisation_id: OrganisationId) -> None:
    seen: list[int] = []

    async def handle(task: Task) -> Number:
        seen.append(task.payload.n)
        return Number(task.payload.n * 2)

    kinds = kinds_of(handle)
    job_id, added = await submit(database, kinds, organisation_id, numbers(500))
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert (job.status, job.total, job.completed, job.remaining) == ("completed", 500, 500, 0)
    assert sorted(seen) == list(range(500))
    async with database.tenant_tx(organisation_id) as conn:
        first = await tasks.get(conn, added[0].task_id)
        told = await events.job_events(conn, job_id=job_id, after=0, most=10)
    assert (first.status, first.result, first.attempts) == ("completed", {"n": 0}, 1)
    assert [(event.number, event.type) for event in told] == [
        (1, "job.started"),
        (2, "job.completed"),
    ]
    await assert_sound(database)


async def test_what_is_being_stored_keeps_no_runner_from_work(
    database: Database, organisation_id: OrganisationId
) -> None:
    seen: list[int] = []
    stored = asyncio.Event()

    async def handle(task: Task) -> int:
        seen.append(task.payload.n)
        return int(task.payload.n)

    async def store(conn: Connection, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        del conn
        await stored.wait()
        return attempts

    kinds = kinds_of(handle, stored=True)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(50))
    async with working(database, kinds, store=store, concurrency=5):
        await until(lambda: len(seen) >= 15)
        # No more than twice as many again, however long one waits: what is in hand is in memory.
        await asyncio.sleep(0.5)
        assert len(seen) == 15
        stored.set()
        job = await ended(database, job_id)
    assert job.completed == 50


async def _raise(task: Task) -> None:
    raise ValueError(f"no {task.payload.n}")


async def _exit(task: Task) -> None:
    del task
    sys.exit(3)


async def _cancel_itself(task: Task) -> None:
    del task
    raise asyncio.CancelledError


async def _hang(task: Task) -> None:
    del task
    await asyncio.sleep(3600)


async def _unwritable(task: Task) -> object:
    del task
    return {"text": "\x00"}


async def _huge(task: Task) -> str:
    del task
    return "x" * 2_000_000


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (_raise, "ValueError: no 0"),
        (_exit, "SystemExit: 3"),
        (_cancel_itself, "The handler cancelled itself."),
        (_hang, "It took longer than 0:00:00.300000."),
        (_unwritable, "NUL character"),
        (_huge, "the limit is"),
    ],
)
async def test_a_bad_handler_fails_its_task_alone(
    database: Database, organisation_id: OrganisationId, handler: object, reason: str
) -> None:
    kinds = kinds_of(handler, retry=AT_ONCE, timeout=timedelta(seconds=0.3))  # type: ignore[arg-type]
    job_id, added = await submit(database, kinds, organisation_id, numbers(1))
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert (job.status, job.failed) == ("failed", 1)
    assert job.error is not None
    assert reason in job.error
    async with database.tenant_tx(organisation_id) as conn:
        task = await tasks.get(conn, added[0].task_id)
        (letter,) = await dead_letters.list_open(conn, organisation_id, DeadLetterFilter())
    assert task.error is not None
    assert reason in task.error
    assert task.attempts == 3
    assert task.finished_at is not None
    assert letter.error == task.error
    await assert_sound(database)


async def test_a_handler_that_will_not_stop_is_given_up(
    database: Database, organisation_id: OrganisationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trapline.queue.worker.task_runner.CANCEL_TIMEOUT", 0.3)
    release = asyncio.Event()

    async def stubborn(task: Task) -> None:
        if task.payload.n == 0:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    kinds = kinds_of(stubborn, retry=RetryPolicy(1), timeout=timedelta(seconds=0.2))
    job_id, _ = await submit(database, kinds, organisation_id, numbers(5))
    async with working(database, kinds, concurrency=1):
        job = await ended(database, job_id)
        release.set()
    assert (job.completed, job.failed) == (4, 1)
    await assert_sound(database)


async def test_a_blocked_loop_loses_its_leases_and_nothing_runs_twice_to_the_end(
    database: Database, organisation_id: OrganisationId
) -> None:
    """The loop sleeps past its lease; another worker takes over; the late finish changes nothing."""
    from trapline.queue.maintenance import dead_workers  # noqa: PLC0415

    first = True

    async def block(task: Task) -> str:
        nonlocal first
        if first:
            first = False
            time.sleep(3)  # noqa: ASYNC251 (that is the fault)
            return "late"
        return "in time"

    kinds = kinds_of(block)
    job_id, added = await submit(database, kinds, organisation_id, numbers(1))
    async with working(database, kinds, lease_time=timedelta(seconds=2)):
        async with asyncio.timeout(100):
            while (await status(database, job_id)).status != "completed":
                await dead_workers.sweep(database)
                await asyncio.sleep(0.05)
    async with database.tenant_tx(organisation_id) as conn:
        task = await tasks.get(conn, added[0].task_id)
    assert (task.result, task.stalls) == ("in time", 1)
    await assert_sound(database)


async def test_errors_decide_by_their_class(
    database: Database, organisation_id: OrganisationId
) -> None:
    tries: dict[int, int] = {}

    async def handle(task: Task) -> None:
        n = task.payload.n
        tries[n] = tries.get(n, 0) + 1
        match n:
            case 0:
                raise Skip("not needed", ExitCode.OUT_OF_SCOPE)
            case 1:
                raise VisitFailed(ExitCode.NOT_FOUND)
            case 2 if tries[n] == 1:
                raise VisitFailed(ExitCode.CONNECTION_RESET)
            case 3 if tries[n] == 1:
                raise VisitFailed(ExitCode.RATE_LIMITED, retry_after=0.05)
            case 4 if tries[n] == 1:
                raise RetryLater("busy", retry_after=0.05)
            case 5:
                raise VisitFailed(ExitCode.ROBOTS_DISALLOWED)

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(6))
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert tries == {0: 1, 1: 1, 2: 2, 3: 2, 4: 2, 5: 1}
    assert (job.status, job.completed, job.failed, job.skipped) == ("completed", 3, 1, 2)
    await assert_sound(database)


async def test_children_stay_within_the_limit_and_skipped_ones_hand_theirs_on(
    database: Database, organisation_id: OrganisationId
) -> None:
    """A crawl of a full tree with limit 20, where every third page is skipped."""

    async def handle(task: Task) -> TaskResult:
        n = task.payload.n
        if n % 3 == 2:
            raise Skip
        children = [
            NewTask("number", Number(2 * n + k), unique=Unique(str(2 * n + k))) for k in (1, 2)
        ]
        return TaskResult(children=children, events=[NewEvent("page", {"n": n})])

    kinds = kinds_of(handle)
    job_id, _ = await submit(
        database,
        kinds,
        organisation_id,
        [NewTask("number", Number(0), unique=Unique("0"))],
        limit=20,
    )
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert job.status == "completed"
    assert job.completed == 20
    assert job.reserved == 20
    assert job.skipped > 0
    async with database.tenant_tx(organisation_id) as conn:
        told = await events.job_events(conn, job_id=job_id, after=0, most=100)
    assert [event.number for event in told] == list(range(1, len(told) + 1))
    assert sum(event.type == "page" for event in told) == 20
    assert told[-1].type == "job.completed"
    await assert_sound(database)


async def test_within_a_lane_better_priorities_run_first_and_then_the_older(
    database: Database, organisation_id: OrganisationId
) -> None:
    order: list[int] = []

    async def handle(task: Task) -> None:
        order.append(task.payload.n)

    kinds = kinds_of(handle)
    new = [NewTask("number", Number(n), priority=-(n % 3)) for n in range(30)]
    job_id, _ = await submit(database, kinds, organisation_id, new)
    async with working(database, kinds, concurrency=1):
        await ended(database, job_id)
    assert order == sorted(range(30), key=lambda n: (-(n % 3), n))


async def test_slow_handlers_are_given_no_more_than_can_run(
    database: Database, organisation_id: OrganisationId
) -> None:
    release = asyncio.Event()

    async def handle(task: Task) -> None:
        del task
        await release.wait()

    kinds = kinds_of(handle)
    gates = [Gate(f"gate {n}") for n in range(100)]
    new = [NewTask("number", Number(n), gates[n % 100]) for n in range(1000)]
    job_id, _ = await submit(database, kinds, organisation_id, new)
    async with working(database, kinds, concurrency=300) as worker:
        await until(lambda: worker.unfinished >= 300)
        await asyncio.sleep(0.5)
        async with database.system_tx() as conn:
            assert await conn.fetchval("SELECT count(*) FROM queue.leased") == 300
        release.set()
        await ended(database, job_id)
    await assert_sound(database)


async def test_results_come_back_whichever_way_the_task_was_finished(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def handle(task: Task) -> object:
        if task.payload.n == 3:
            raise Skip("not needed")
        return {"n": task.payload.n} if task.payload.n % 2 else None

    kinds = kinds_of(handle)
    job_id, added = await submit(database, kinds, organisation_id, numbers(6))
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert (job.status, job.completed, job.skipped, job.error) == ("completed", 5, 1, None)
    async with database.tenant_tx(organisation_id) as conn:
        found = [await tasks.get(conn, answer.task_id) for answer in added]
    assert [task.result for task in found] == [None, {"n": 1}, None, None, None, {"n": 5}]
    assert [task.attempts for task in found] == [1] * 6
    assert all(task.agent_id is not None and task.started_at is not None for task in found)
    await assert_sound(database)


async def test_one_poisonous_result_fails_alone(
    database: Database, organisation_id: OrganisationId
) -> None:
    stored: list[int] = []

    async def handle(task: Task) -> int:
        return int(task.payload.n)

    async def store(conn: Connection, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        for attempt in attempts:
            await conn.execute("SELECT 1 / $1::integer", attempt.result.value - 13)
        stored.extend(attempt.result.value for attempt in attempts)
        return attempts

    kinds = kinds_of(handle, stored=True, retry=RetryPolicy(1))
    job_id, _ = await submit(database, kinds, organisation_id, numbers(40))
    async with working(database, kinds, store=store, concurrency=40):
        job = await ended(database, job_id)
    assert (job.completed, job.failed) == (39, 1)
    assert sorted(set(stored)) == [n for n in range(40) if n != 13]
    await assert_sound(database)


async def test_a_gate_bounds_and_spaces_its_tasks(
    database: Database, organisation_id: OrganisationId
) -> None:
    running = most = 0
    starts: list[float] = []

    async def handle(task: Task) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if task.payload.n < 0:
            starts.append(time.monotonic())
        await asyncio.sleep(0.03)
        running -= 1

    kinds = kinds_of(handle)
    bounded = Gate("bounded", bound=2)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(12, gate=bounded))
    async with working(database, kinds), working(database, kinds):
        await ended(database, job_id)
        assert most == 2
        spaced = [
            NewTask("number", Number(-1), Gate("spaced", timedelta(seconds=0.5))) for _ in range(4)
        ]
        job_id, _ = await submit(database, kinds, organisation_id, spaced)
        await ended(database, job_id)
    gaps = [after - before for before, after in pairwise(starts)]
    # The gate counts from claim to claim; a start may lag behind its claim, so bound the sum.
    assert sum(gaps) >= 1.0
    await assert_sound(database)


async def test_slots_of_a_job_and_an_organisation_bound_it(
    database: Database, organisation_id: OrganisationId
) -> None:
    from trapline.db import tenancy  # noqa: PLC0415

    running = most = 0

    async def handle(task: Task) -> None:
        nonlocal running, most
        del task
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(10), max_active=3)
    async with working(database, kinds):
        await ended(database, job_id)
        assert most == 3
        async with database.system_tx() as conn:
            await tenancy.limit_organisation(
                conn, organisation_id, max_concurrency=2, max_pages_per_day=None
            )
        most = 0
        job_id, _ = await submit(database, kinds, organisation_id, numbers(10))
        await ended(database, job_id)
        assert most == 2
    await assert_sound(database)


async def test_cancel_stops_queued_tasks_at_once_and_running_ones_soon(
    database: Database, organisation_id: OrganisationId
) -> None:
    started = asyncio.Event()

    async def handle(task: Task) -> None:
        del task
        started.set()
        await asyncio.sleep(3600)

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(50))
    async with working(database, kinds, concurrency=5) as worker:
        await started.wait()
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.cancel(conn, job_id, by="me", reason="enough")
        worker.notifier.notify(jobs=[job_id])
        async with asyncio.timeout(100):
            await until(lambda: not worker.unfinished)
        job = await status(database, job_id)
    assert (job.status, job.cancelled, job.remaining) == ("cancelled", 50, 0)
    assert (job.cancelled_by, job.cancel_reason) == ("me", "enough")
    await assert_sound(database)


async def test_pause_and_resume(database: Database, organisation_id: OrganisationId) -> None:
    done = 0

    async def handle(task: Task) -> None:
        nonlocal done
        del task
        await asyncio.sleep(0.01)
        done += 1

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(200))
    async with working(database, kinds, concurrency=2) as worker:
        await until(lambda: done >= 5)
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.pause(conn, job_id)
        async with asyncio.timeout(100):
            await until(lambda: not worker.unfinished)
        held = done
        await asyncio.sleep(0.3)
        assert done == held < 200
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.resume(conn, job_id)
        job = await ended(database, job_id)
    assert job.completed == 200
    await assert_sound(database)


async def test_a_paused_job_gets_no_open_lane_from_its_last_tasks(
    database: Database, organisation_id: OrganisationId
) -> None:
    ran: list[int] = []
    may_end = asyncio.Event()

    async def handle(task: Task) -> TaskResult | None:
        ran.append(task.payload.n)
        if task.payload.n:
            return None
        await may_end.wait()
        return TaskResult(children=[NewTask("number", Number(1), Gate("elsewhere"))])

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, [NewTask("number", Number(0))])
    async with working(database, kinds) as worker:
        await until(lambda: bool(ran))
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.pause(conn, job_id)
        may_end.set()
        async with asyncio.timeout(100):
            await until(lambda: not worker.unfinished)
        await asyncio.sleep(0.3)
        assert ran == [0]
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.resume(conn, job_id)
        await ended(database, job_id)
    assert ran == [0, 1]
    await assert_sound(database)


async def test_a_stopped_worker_hands_back_what_it_has(
    database: Database, organisation_id: OrganisationId
) -> None:
    started = asyncio.Event()

    async def handle(task: Task) -> None:
        del task
        started.set()
        await asyncio.sleep(3600)

    kinds = kinds_of(handle)
    job_id, added = await submit(database, kinds, organisation_id, numbers(20))
    async with working(database, kinds, concurrency=4, grace=0.1):
        await started.wait()
    job = await status(database, job_id)
    assert (job.status, job.remaining) == ("running", 20)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM queue.ready") == 20
        assert await conn.fetchval("SELECT count(*) FROM queue.leased") == 0
        assert await conn.fetchval("SELECT max(attempts) FROM queue.ready") == 0
        assert (
            await conn.fetchval("SELECT count(*) FROM queue.agent WHERE finished_at IS NULL") == 0
        )
    assert len(added) == 20
    await assert_sound(database)


async def test_a_lost_connection_while_finishing_finishes_once(
    database: Database, organisation_id: OrganisationId, dsn: str
) -> None:
    """Backends are killed all the time; every effect is there once."""
    counted: list[int] = []

    async def handle(task: Task) -> int:
        await asyncio.sleep(0)
        return int(task.payload.n)

    async def store(conn: Connection, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        await conn.execute("SELECT pg_sleep(0.002)")
        counted.extend(attempt.result.value for attempt in attempts)
        return attempts

    kinds = kinds_of(handle, stored=True)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(2000))
    async with (
        pool.owner(dsn, database.settings.database) as killer,
        working(database, kinds, store=store, concurrency=50),
    ):
        async with asyncio.timeout(60):
            while (await status(database, job_id)).status != "completed":
                await killer.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE usename = current_user AND pid <> pg_backend_pid()"
                    " AND datname = current_database() AND state = 'active' LIMIT 1"
                )
                await asyncio.sleep(0.2)
    job = await status(database, job_id)
    assert (job.completed, job.failed) == (2000, 0)
    assert set(counted) == set(range(2000))
    await assert_sound(database)


async def test_the_end_of_a_job_is_notified(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def handle(task: Task) -> int:
        return int(task.payload.n)

    kinds, heard, listener = kinds_of(handle), set[str](), Listener(database)
    listens = asyncio.Event()
    listener.on_ready(listens.set)
    listener.on_jobs(heard.update)
    listening = asyncio.create_task(listener.run())
    await listens.wait()
    async with working(database, kinds):
        job_id, added = await submit(database, kinds, organisation_id, numbers(1))
        job = await ended(database, job_id)
        await until(lambda: str(job_id) in heard)
    listening.cancel()
    assert job.status == "completed"
    async with database.tenant_tx(organisation_id) as conn:
        assert (await tasks.get(conn, added[0].task_id)).result == 0


async def test_news_of_jobs_that_are_not_in_hand_wakes_nobody(
    database: Database, organisation_id: OrganisationId
) -> None:
    seen = asyncio.Queue[Task]()
    job_id, _ = await submit(database, kinds_of(seen.put), organisation_id, numbers(1))
    async with working(database, kinds_of(seen.put)):
        task = await asyncio.wait_for(seen.get(), 30)
    claimed = ClaimedTasks()
    claimed.put([task])
    worker_refresh = WorkerRefresh(
        database,
        Lanes(),
        claimed,
        CompletionBuffer(),
        Statistics(database),
        timedelta(minutes=1),
    )
    worker_refresh.on_job_events(frozenset({str(jobs.new_id())}))
    assert not worker_refresh.refresh.is_set()
    worker_refresh.on_job_events(frozenset({str(jobs.new_id()), str(job_id)}))
    assert worker_refresh.refresh.is_set()


async def test_a_kind_that_is_not_known_here_is_left_to_others(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def handle(task: Task) -> None:
        del task

    known = kinds_of(handle)
    job_id, _ = await submit(database, known, organisation_id, numbers(3))
    async with working(database, kinds_of(None)):
        async with asyncio.timeout(100):
            while await _count(database, "waiting") < 3:  # noqa: ASYNC110 (the database is asked)
                await asyncio.sleep(0.02)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.waiting SET run_at = $1", datetime.now(UTC))
    async with working(database, known):
        assert (await ended(database, job_id)).completed == 3
    await assert_sound(database)


async def _count(database: Database, table: str) -> int:
    async with database.system_tx() as conn:
        return int(await conn.fetchval(f"SELECT count(*) FROM queue.{table}"))


async def test_a_task_that_is_found_again_runs_by_its_best_priority(
    database: Database, organisation_id: OrganisationId
) -> None:
    order: list[int] = []

    async def handle(task: Task) -> None:
        order.append(task.payload.n)

    kinds = kinds_of(handle)
    new = [NewTask("number", Number(n), priority=900, unique=Unique(str(n))) for n in range(9)]
    job_id, _ = await submit(database, kinds, organisation_id, new)
    found = [(7, 100), (3, 0), (3, 190), (5, 950)]
    again = [NewTask("number", Number(n), priority=p, unique=Unique(str(n))) for n, p in found]
    async with database.tenant_tx(organisation_id) as conn:
        added = await tasks.enqueue(
            conn, kinds, job_id, organisation_id, again, now=datetime.now(UTC)
        )
    assert {answer.state for answer in added} == {TaskState.ALREADY_THERE}
    async with working(database, kinds, concurrency=1):
        await ended(database, job_id)
    assert order == [3, 7, 0, 1, 2, 4, 5, 6, 8]
    await assert_sound(database)
