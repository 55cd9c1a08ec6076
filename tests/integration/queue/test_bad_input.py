"""Bad input: a typed error each, and nothing half written."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.queue_jobs import Number, ended, kinds_of, numbers, status, submit, working
from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.errors import (
    OUTCOMES,
    Conflict,
    ExitCode,
    InvalidInput,
    NotFound,
    TooLarge,
    TraplineError,
)
from trapline.model import JobId, OrganisationId
from trapline.queue import dead_letters, events, gates, jobs, tasks, why
from trapline.queue.audit import audit
from trapline.queue.dead_letters import DeadLetterFilter
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.maintenance import deadlines, job_expiry, loop, partitions, reindex
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.retry_policy import RetryPolicy, Skip
from trapline.queue.tasks import NewTask, Task, TaskState, Unique

KINDS = kinds_of()
SOME_ID = jobs.new_id()


@pytest.mark.parametrize(
    ("task", "error"),
    [
        (NewTask("nonsense", Number(1)), InvalidInput),
        (NewTask("number", {"n": "one"}), InvalidInput),
        (NewTask("number", {"m": 1}), InvalidInput),
        (NewTask("number", object()), InvalidInput),
        (NewTask("text", "x" * 2_000_000), TooLarge),
        (NewTask("text", "\x00"), InvalidInput),
        (NewTask("number", Number(1), priority=40_000), InvalidInput),
        (NewTask("number", Number(1), max_attempts=0), InvalidInput),
        (NewTask("number", Number(1), timeout=timedelta(0)), InvalidInput),
        (NewTask("number", Number(1), run_at=datetime(2030, 1, 1)), InvalidInput),  # noqa: DTZ001
        (NewTask("number", Number(1), gate=Gate("")), InvalidInput),
        (NewTask("number", Number(1), gate=Gate("g", timedelta(-1))), InvalidInput),
        (NewTask("number", Number(1), gate=Gate("g", bound=0)), InvalidInput),
    ],
)
async def test_a_bad_task_is_refused_with_its_whole_job(
    database: Database, organisation_id: OrganisationId, task: NewTask, error: type[TraplineError]
) -> None:
    from trapline.queue.kinds import Kind, Kinds  # noqa: PLC0415

    kinds = Kinds([*KINDS.values(), Kind("text", str)])
    with pytest.raises(error):
        await submit(database, kinds, organisation_id, [*numbers(3), task])
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM queue.job") == 0
        assert await conn.fetchval("SELECT count(*) FROM queue.task") == 0


@pytest.mark.parametrize(
    "options",
    [
        {"limit": -1},
        {"max_active": 0},
        {"max_retries": -1},
        {"ttl": timedelta(0)},
        {"id": SOME_ID, "parent_id": SOME_ID},
    ],
)
async def test_a_bad_job_is_refused(
    database: Database, organisation_id: OrganisationId, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        await submit(database, KINDS, organisation_id, numbers(1), **options)


async def test_parents_must_be_there_and_not_in_a_circle(
    database: Database, organisation_id: OrganisationId
) -> None:
    with pytest.raises(NotFound):
        await submit(database, KINDS, organisation_id, [], parent_id=SOME_ID)
    top, _ = await submit(database, KINDS, organisation_id, numbers(1))
    below, _ = await submit(database, KINDS, organisation_id, numbers(1), parent_id=top)
    with pytest.raises(InvalidInput, match="above its own parent"):
        await submit(database, KINDS, organisation_id, [], id=top, parent_id=below)
    with pytest.raises(Conflict):
        await submit(database, KINDS, organisation_id, [], id=top)


async def test_a_job_with_nothing_to_do_is_complete(
    database: Database, organisation_id: OrganisationId
) -> None:
    job_id, _ = await submit(database, KINDS, organisation_id, [])
    assert (await status(database, job_id)).status == "completed"
    job_id, added = await submit(database, KINDS, organisation_id, numbers(3), limit=0)
    assert [answer.state for answer in added] == [TaskState.OVERFLOW] * 3
    assert (await status(database, job_id)).status == "completed"


async def test_an_ended_job_takes_no_tasks_but_a_next_round(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def handle(task: Task) -> None:
        del task

    kinds = kinds_of(handle)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(2))
    async with working(database, kinds):
        await ended(database, job_id)
        now = datetime.now(UTC)
        with pytest.raises(Conflict):
            async with database.tenant_tx(organisation_id) as conn:
                await tasks.enqueue(conn, kinds, job_id, organisation_id, numbers(1), now=now)
        with pytest.raises(NotFound):
            async with database.tenant_tx(organisation_id) as conn:
                await tasks.enqueue(conn, kinds, SOME_ID, organisation_id, numbers(1), now=now)
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.append(conn, kinds, job_id, numbers(3), now=now)
        job = await ended(database, job_id)
    assert (job.round, job.completed) == (2, 5)
    async with database.tenant_tx(organisation_id) as conn:
        told = await events.list_events(conn, job_id)
        with pytest.raises(Conflict):
            await jobs.cancel(conn, job_id)
        with pytest.raises(Conflict):
            await jobs.pause(conn, job_id)
        with pytest.raises(Conflict):
            await jobs.resume(conn, job_id)
        with pytest.raises(Conflict):
            await dead_letters.retry_job(conn, kinds, job_id, by="me", now=now)
    assert [event.type for event in told].count("job.completed") == 2


async def test_unique_keys_answer_already_there(
    database: Database, organisation_id: OrganisationId
) -> None:
    twice = [NewTask("number", Number(1), unique=Unique("a")) for _ in range(2)]
    _, (first, second) = await submit(database, KINDS, organisation_id, twice)
    assert (first.state, second.state) == (TaskState.QUEUED, TaskState.ALREADY_THERE)
    assert second.task_id == first.task_id
    _, (other,) = await submit(database, KINDS, organisation_id, twice[:1])
    assert other.state is TaskState.QUEUED, "another job has its own keys"
    window = Unique("b", per="organisation", window=timedelta(hours=1))
    one = [NewTask("number", Number(1), unique=window)]
    _, (first,) = await submit(database, KINDS, organisation_id, one)
    _, (second,) = await submit(database, KINDS, organisation_id, one)
    assert (second.state, second.task_id) == (TaskState.ALREADY_THERE, first.task_id)
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE queue.unique_key SET expires_at = now() WHERE expires_at IS NOT NULL"
        )
    _, (third,) = await submit(database, KINDS, organisation_id, one)
    assert third.state is TaskState.QUEUED


async def test_deadlines_expiry_and_retry_of_dead_letters(
    database: Database, organisation_id: OrganisationId
) -> None:
    now = datetime.now(UTC)
    late = [NewTask("number", Number(1), deadline=now - timedelta(seconds=1))]
    later = [NewTask("number", Number(2), deadline=now, run_at=now + timedelta(hours=1))]
    job_id, added = await submit(database, KINDS, organisation_id, late + later)
    assert await deadlines.expire(database) == 2
    job = await status(database, job_id)
    assert (job.status, job.failed) == ("failed", 2)
    async with database.tenant_tx(organisation_id) as conn:
        task = await tasks.get(conn, added[0].task_id)
        assert task.code == ExitCode.DEADLINE_PASSED
        assert task.finished_at is not None
        one = DeadLetterFilter(tasks=[added[0].task_id])
        dead = await dead_letters.retry(conn, KINDS, organisation_id, one, by="me", now=now)
        assert [letter.id for letter in dead.letters] == [added[0].task_id]
        with pytest.raises(NotFound):
            await dead_letters.retry(conn, KINDS, organisation_id, one, by="me", now=now)
        again = await dead_letters.retry_job(conn, KINDS, job_id, by="me", now=now)
        with pytest.raises(Conflict, match="nobody has dealt with"):
            await dead_letters.retry_job(conn, KINDS, job_id, by="me", now=now)
        for one_task in (dead, again):
            retried = await jobs.get(conn, one_task.job_id)
            assert (retried.retry_of, retried.remaining) == (job_id, 1), "each failure once"
        assert await dead_letters.list_open(conn, organisation_id, DeadLetterFilter()) == []
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.job SET expires_at = now() WHERE id = $1", job_id)
    assert await job_expiry.expire(database) == 1
    with pytest.raises(NotFound):
        await status(database, job_id)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM queue.done") == 0
        assert await audit(conn) == []


async def test_a_job_whose_last_task_is_skipped_names_an_earlier_failure(
    database: Database, organisation_id: OrganisationId
) -> None:
    now = datetime.now(UTC)
    late = NewTask("number", Number(1), deadline=now - timedelta(seconds=1))
    job_id, _ = await submit(database, KINDS, organisation_id, [late, NewTask("number", Number(2))])
    assert await deadlines.expire(database) == 1
    assert (await status(database, job_id)).error is None, "it goes on"

    async def skip(task: Task) -> None:
        del task
        raise Skip("not needed")

    async with working(database, kinds_of(skip)):
        job = await ended(database, job_id)
    assert (job.status, job.failed, job.skipped) == ("failed", 1, 1)
    assert (
        job.error
        == "No task succeeded; the last one that failed: "
        + OUTCOMES[ExitCode.DEADLINE_PASSED].sentence
    )
    async with database.tenant_tx(organisation_id) as conn:
        (end,) = await conn.fetch("SELECT data FROM queue.event WHERE type = 'job.failed'")
        assert end["data"]["error"] == job.error
        await jobs.append(conn, KINDS, job_id, [NewTask("number", Number(3))], now=now)
        assert (await jobs.get(conn, job_id)).error is None, "the next round has not failed"


async def test_cancelled_jobs_expire_with_all_that_is_theirs(
    database: Database, organisation_id: OrganisationId
) -> None:
    keep = timedelta(minutes=5)
    job_id, _ = await submit(database, KINDS, organisation_id, numbers(20), ttl=keep, limit=15)
    other, _ = await submit(database, KINDS, organisation_id, numbers(3))
    async with database.tenant_tx(organisation_id) as conn:
        await jobs.cancel(conn, job_id, by="me")
    job = await status(database, job_id)
    assert job.finished_at is not None
    assert job.expires_at == job.finished_at + keep
    assert await job_expiry.expire(database) == 0
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.job SET expires_at = now() WHERE id = $1", job_id)
    assert await job_expiry.expire(database) == 1
    with pytest.raises(NotFound):
        await status(database, job_id)
    async with database.system_tx() as conn:
        for table in ("task", "lane", "event"):
            left = await conn.fetchval(
                f"SELECT count(*) FROM queue.{table} WHERE job_id = $1", job_id
            )
            assert left == 0, table
        assert await conn.fetchval("SELECT count(*) FROM queue.ready") == 3
        assert await conn.fetchval("SELECT count(*) FROM queue.overflow") == 0
        assert await audit(conn) == []
    assert (await status(database, other)).remaining == 3


async def test_how_long_jobs_are_kept_is_a_setting(database: Database) -> None:
    settings = change_settings(database.settings, {"scrape_failed_ttl_seconds": 60.0})
    assert jobs.retention_times(settings.retention) == (timedelta(hours=24), None)
    assert jobs.retention_times(settings.retention, single=True) == (
        timedelta(hours=1),
        timedelta(minutes=1),
    )


async def test_why_names_what_a_task_waits_for(
    database: Database, organisation_id: OrganisationId
) -> None:
    now = datetime.now(UTC)

    async def reason(task: NewTask, **options: object) -> str:
        job_id, added = await submit(database, KINDS, organisation_id, [task], **options)
        async with database.system_tx() as conn:
            if options.get("priority"):
                await jobs.pause(conn, job_id)
            return await why.why(conn, added[0].task_id, now=now)

    assert "No agent is alive" in await reason(NewTask("number", Number(1)))
    later = NewTask("number", Number(1), run_at=now + timedelta(hours=1))
    assert "It runs at" in await reason(later)
    assert "its job is completed" in await reason(NewTask("number", Number(1)), limit=0)
    assert "paused" in await reason(NewTask("number", Number(1)), priority=1)
    async with database.system_tx() as conn:
        await conn.execute(
            "INSERT INTO queue.agent (uuid, name, host, pid, capacity, kinds)"
            " VALUES (gen_random_uuid(), 'a', 'h', 1, 1, '{number}')"
        )
        await gates.set_gate(conn, "slow", gap=timedelta(hours=1), bound=1)
        await conn.execute(
            "UPDATE queue.gate SET ready_at = now() + interval '1 hour' WHERE name = 'slow'"
        )
    slow = NewTask("number", Number(1), Gate("slow"))
    assert "keeps its gap until" in await reason(slow)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.gate SET in_flight = 1 WHERE name = 'slow'")
    assert "is full: 1 of 1" in await reason(slow)
    assert "waits for its turn" in await reason(NewTask("number", Number(1)))
    async with database.system_tx() as conn:
        with pytest.raises(NotFound):
            await why.why(conn, tasks.TaskId(10**12), now=now)


async def test_the_audit_finds_what_is_off(
    database: Database, organisation_id: OrganisationId
) -> None:
    job_id, _ = await submit(database, KINDS, organisation_id, numbers(3))
    async with database.system_tx() as conn:
        assert await audit(conn) == []
        await conn.execute("UPDATE queue.job SET remaining = 2 WHERE id = $1", job_id)
        await conn.execute("UPDATE queue.gate SET in_flight = 5")
        found = {(difference.what, difference.counter) for difference in await audit(conn)}
    assert {("remaining", 2), ("in flight", 5)} <= found


async def test_consumers_of_the_log_see_each_event_once(
    database: Database, organisation_id: OrganisationId
) -> None:
    seen: list[tuple[JobId, int]] = []

    async def handle(_: object, new: object) -> None:
        seen.extend((event.job_id, event.number) for event in new)  # type: ignore[attr-defined]

    for _ in range(3):
        await submit(database, KINDS, organisation_id, [])
    # An older transaction that is still open, of anyone on this server, holds the log back.
    async with asyncio.timeout(100):
        while len(seen) < 3:
            await events.consume(database, "test", handle, types=events.TERMINAL_EVENTS, most=2)
    assert await events.consume(database, "test", handle, types=events.TERMINAL_EVENTS) == 0
    assert len(seen) == len(set(seen)) == 3


async def test_every_duty_runs_and_none_stops_another(database: Database) -> None:
    async def broken(_: Database) -> int:
        raise InvalidInput("broken")

    for duty in [*loop.all_duties(database.settings), Duty("broken", broken, timedelta(seconds=1))]:
        await loop.perform(database, duty)
    async with database.system_tx() as conn:
        rows = await conn.fetch("SELECT name, error FROM queue.duty")
    failed = {row["name"] for row in rows if row["error"]}
    assert failed == {"broken"}
    assert len(rows) == len(loop.all_duties(database.settings)) + 1
    assert await partitions.maintain(database) == 0, "they are there already"
    assert await reindex.rebuild(database, least_bytes=0) > 0


async def test_what_is_done_seldom_is_not_in_the_way_when_a_process_begins(
    database: Database,
) -> None:
    done: list[str] = []
    often = asyncio.Event()

    def duty(name: str, every: timedelta) -> Duty:
        async def work(_: Database) -> int:
            done.append(name)
            often.set()
            return 1

        return Duty(name, work, every)

    duties = [duty("seldom", timedelta(hours=1)), duty("often", timedelta(milliseconds=30))]
    maintaining = asyncio.create_task(loop.run(database, duties))
    try:
        await often.wait()
        assert done[0] == "often"
    finally:
        maintaining.cancel()
        await asyncio.gather(maintaining, return_exceptions=True)


async def test_a_retry_keeps_its_maximum(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def handle(task: Task) -> None:
        raise ValueError(task.id)

    kinds = kinds_of(handle, retry=RetryPolicy(1))
    job = NewJob("test", organisation_id, max_retries=1)
    now = datetime.now(UTC)
    async with database.tenant_tx(organisation_id) as conn:
        await jobs.submit(conn, kinds, job, numbers(1), now=now)
    async with working(database, kinds):
        await ended(database, job.id)
        async with database.tenant_tx(organisation_id) as conn:
            again = (await dead_letters.retry_job(conn, kinds, job.id, by="me", now=now)).job_id
        assert (await ended(database, again)).status == "failed"
    async with database.tenant_tx(organisation_id) as conn:
        with pytest.raises(Conflict, match="which is its maximum"):
            await dead_letters.retry_job(conn, kinds, again, by="me", now=now)
