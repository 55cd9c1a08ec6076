"""Any interleaving of what can happen to tasks keeps the promises, on a real PostgreSQL."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.queue_jobs import Number, kinds_of
from trapline.db import tenancy
from trapline.db.pool import Database, ExternalServer
from trapline.errors import Conflict, ExitCode
from trapline.model import AgentId, JobId, OrganisationId
from trapline.queue import audit, jobs, tasks
from trapline.queue.finish import Attempt, Finisher, NewEvent, TaskResult
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.maintenance import dead_workers, deadlines, lane_cleanup
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import claim as claiming
from trapline.queue.tasks import NewTask, Task, TaskState, Unique
from trapline.queue.worker.claim import Claimer
from trapline.queue.worker.lanes import Lanes
from trapline.settings import Settings

TABLES = (
    "job lane gate task ready waiting overflow lease leased done dead_letter unique_key quota event"
    " job_tally"
)
TERMINAL = ("job.completed", "job.failed", "job.cancelled")


async def handle(task: Task) -> None:
    del task


KINDS = kinds_of(handle)


class Machine(RuleBasedStateMachine):
    """Agents claim, finish and die; people submit, cancel and pause; time passes."""

    dsn: str
    settings: Settings

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.held: list[Task] = []
        self.stale: list[Task] = []
        self.jobs: list[JobId] = []
        self.finished: set[int] = set()

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    @initialize()
    def begin(self) -> None:
        self.do(self._begin())

    async def _begin(self) -> None:
        owner = await asyncpg.connect(self.dsn)
        await owner.execute("TRUNCATE " + ", ".join(f"queue.{table}" for table in TABLES.split()))
        await owner.close()
        self.context = Database.connect(ExternalServer(self.dsn), self.settings)
        self.database = await self.context.__aenter__()
        async with self.database.system_tx() as conn:
            self.organisation_id: OrganisationId = await tenancy.ensure_default(conn)
            await tenancy.limit_organisation(
                conn, self.organisation_id, max_concurrency=None, max_pages_per_day=None
            )
        # Time is the machine's own: on a slow computer nothing runs out by itself, or an example
        # would not come out twice the same.
        self.claimer = Claimer(self.database, KINDS, Lanes(), lease_time=timedelta(hours=1))
        self.finisher = Finisher(self.database, KINDS)

    def teardown(self) -> None:
        try:
            self.do(self._end())
        finally:
            self.do(self.context.__aexit__(None, None, None))
            self.runner.close()

    async def _end(self) -> None:
        """Whatever happened: once everything is let run, every job ends, and once."""
        for job_id in self.jobs:
            async with self.database.system_tx() as conn:
                if (await jobs.get(conn, job_id)).status == "paused":
                    await jobs.resume(conn, job_id)
                await conn.execute("UPDATE queue.waiting SET run_at = now()")
                await conn.execute("UPDATE queue.gate SET ready_at = now(), gap = '0'")
        await self._limit(None)
        for _ in range(500):
            await dead_workers.sweep(self.database)
            async with self.database.system_tx() as conn:
                await claiming.promote(conn, most=1000)
                left = await conn.fetchval("SELECT sum(remaining) FROM queue.job")
            if not left:
                break
            # Room for every lane: this claimer forgets which ones it found empty.
            await self._claim(1000)
            await self._finish(self.held[:], TaskOutcome.COMPLETED, 0)
        for job_id in self.jobs:
            async with self.database.system_tx() as conn:
                job = await jobs.get(conn, job_id)
                assert job.status in jobs.ENDED, job
                ends = await conn.fetchval(
                    "SELECT count(*) FROM queue.event WHERE job_id = $1 AND type = ANY ($2)",
                    job_id,
                    list(TERMINAL),
                )
                assert ends == job.round
        await self._check()

    @rule(
        count=st.integers(0, 8),
        limit=st.none() | st.integers(0, 6),
        max_active=st.none() | st.integers(1, 3),
        bound=st.none() | st.integers(1, 3),
        gap=st.sampled_from([0, 0, 3600]),
        run_later=st.booleans(),
        same=st.booleans(),
    )
    def submit(
        self,
        count: int,
        limit: int | None,
        max_active: int | None,
        bound: int | None,
        gap: int,
        run_later: bool,
        same: bool,
    ) -> None:
        gate = Gate(f"g{bound}-{gap}", timedelta(seconds=gap), bound)
        now = datetime.now(UTC)
        later = now + timedelta(hours=1) if run_later else None
        new = [
            NewTask(
                "number",
                Number(n),
                gate,
                run_at=later if n % 2 else None,
                unique=Unique(str(n % 3)) if same else None,
                priority=n % 3,
            )
            for n in range(count)
        ]
        job = NewJob("test", self.organisation_id, limit=limit, max_active=max_active)
        self.jobs.append(job.id)
        self.do(self._submit(job, new, now))

    async def _submit(self, job: NewJob, new: list[NewTask], now: datetime) -> None:
        async with self.database.tenant_tx(self.organisation_id) as conn:
            added = await jobs.submit(conn, KINDS, job, new, now=now)
        queued = sum(answer.state is TaskState.QUEUED for answer in added)
        if job.limit is not None:
            assert queued <= job.limit

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), count=st.integers(1, 4))
    def enqueue(self, data: st.DataObject, count: int) -> None:
        self.do(self._enqueue(data.draw(st.sampled_from(self.jobs)), count))

    async def _enqueue(self, job_id: JobId, count: int) -> None:
        new = [NewTask("number", Number(n)) for n in range(count)]
        async with self.database.system_tx() as conn:
            job = await jobs.get(conn, job_id)
        try:
            async with self.database.tenant_tx(self.organisation_id) as conn:
                await tasks.enqueue(
                    conn, KINDS, job_id, self.organisation_id, new, now=datetime.now(UTC)
                )
            assert job.status not in jobs.ENDED
        except Conflict:
            assert job.status in jobs.ENDED

    @rule(room=st.integers(1, 10))
    def claim(self, room: int) -> None:
        self.do(self._claim(room))

    async def _claim(self, room: int) -> None:
        async with self.database.system_tx() as conn:
            rows = await claiming.served_lanes(conn, most_per_organisation=1000)
        now = asyncio.get_running_loop().time()
        self.claimer.lanes = Lanes()
        self.claimer.lanes.refresh(rows, now)
        claim = await self.claimer.finish_and_claim(
            AgentId(1), [], self.claimer.lanes.pick(room, now)
        )
        ids = {task.id for task in claim.tasks}
        assert not ids & self.finished
        assert not ids & {task.id for task in self.held}
        self.held += claim.tasks

    @precondition(lambda self: self.held or self.stale)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(
            [v for v in TaskOutcome if v not in {TaskOutcome.STALLED, TaskOutcome.CANCELLED}]
        ),
        children=st.integers(0, 3),
        later=st.booleans(),
        in_turn=st.booleans(),
    )
    def finish(
        self, data: st.DataObject, outcome: TaskOutcome, children: int, later: bool, in_turn: bool
    ) -> None:
        chosen = data.draw(
            st.lists(st.sampled_from(self.held + self.stale), unique_by=lambda t: t.id, max_size=5)
        )
        self.do(self._finish(chosen, outcome, children, later=later, in_turn=in_turn))

    async def _finish(
        self,
        chosen: list[Task],
        outcome: TaskOutcome,
        children: int,
        *,
        later: bool = False,
        in_turn: bool = False,
    ) -> None:
        attempts = [
            Attempt(
                task,
                outcome,
                ExitCode.UNEXPECTED if outcome is TaskOutcome.FAILED else None,
                "it broke" if outcome is TaskOutcome.FAILED else None,
                datetime.now(UTC) + timedelta(hours=1) if later else None,
                TaskResult(
                    children=[NewTask("number", Number(n)) for n in range(children)]
                    if outcome is TaskOutcome.COMPLETED
                    else [],
                    events=[NewEvent("task.ended")] if children else [],
                ),
            )
            for task in chosen
        ]
        if in_turn and not any(attempt.rich for attempt in attempts):
            # Also the short way, which plain successes take.
            await self.claimer.finish_and_claim(AgentId(1), attempts, [])
        elif attempts:
            await self.finisher.finish(attempts)
        for task in chosen:
            if task in self.held:
                self.held.remove(task)
                if outcome <= TaskOutcome.SKIPPED:
                    assert task.id not in self.finished
                    self.finished.add(task.id)
                # Its lease is spent: another finish under it must change nothing.
                self.stale.append(task)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def lease_runs_out(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(self.held)).lease_id
        self.do(self._run_out(lease_id))

    async def _run_out(self, lease_id: int) -> None:
        async with self.database.system_tx() as conn:
            await conn.execute("UPDATE queue.lease SET expires_at = now() WHERE id = $1", lease_id)
        lost = [task for task in self.held if task.lease_id == lease_id]
        self.held = [task for task in self.held if task.lease_id != lease_id]
        self.stale += lost

    @rule()
    def sweep(self) -> None:
        self.do(dead_workers.sweep(self.database))

    @rule()
    def maintain(self) -> None:
        self.do(lane_cleanup.clear(self.database))
        self.do(deadlines.expire(self.database))

    @rule()
    def time_passes(self) -> None:
        self.do(self._time_passes())

    async def _time_passes(self) -> None:
        async with self.database.system_tx() as conn:
            await conn.execute("UPDATE queue.waiting SET run_at = now()")
            await conn.execute("UPDATE queue.gate SET ready_at = now()")
            await conn.execute("UPDATE queue.lane SET created_at = now() - interval '1 minute'")
            await claiming.promote(conn, most=1000)
        await lane_cleanup.sleep(self.database)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), what=st.sampled_from(["cancel", "pause", "resume"]))
    def command(self, data: st.DataObject, what: str) -> None:
        self.do(self._command(data.draw(st.sampled_from(self.jobs)), what))

    async def _command(self, job_id: JobId, what: str) -> None:
        try:
            async with self.database.tenant_tx(self.organisation_id) as conn:
                await getattr(jobs, what)(conn, job_id, by="someone")
        except Conflict:
            return

    @rule(most=st.none() | st.integers(1, 5))
    def limit_organisation(self, most: int | None) -> None:
        self.do(self._limit(most))

    async def _limit(self, most: int | None) -> None:
        async with self.database.system_tx() as conn:
            await tenancy.limit_organisation(
                conn, self.organisation_id, max_concurrency=most, max_pages_per_day=None
            )

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "database"):
            self.do(self._check())

    async def _check(self) -> None:
        async with self.database.system_tx() as conn:
            assert await audit.audit(conn) == []
            assert not await conn.fetch(
                "SELECT * FROM queue.job WHERE reserved > task_limit OR active > max_active"
            )
            assert not await conn.fetch("SELECT * FROM queue.gate WHERE in_flight > bound")
            assert not await conn.fetch(
                "SELECT * FROM queue.lane l JOIN queue.job j ON j.id = l.job_id"
                " WHERE l.open AND j.status IN ('paused', 'cancelled')"
            )


@pytest.mark.timeout(600)
def test_every_interleaving_keeps_the_promises(
    machine_database: tuple[str, Settings],
) -> None:
    Machine.dsn, Machine.settings = machine_database
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=30,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


@pytest.fixture
def machine_database(server_dsn: str, template: str, server_settings: Settings) -> Any:
    """A database for a test that runs its own event loop."""
    name = f"machine_{uuid4().hex}"

    async def run(statement: str) -> None:
        conn = await asyncpg.connect(server_dsn)
        await conn.execute(statement)
        await conn.close()

    from tests.support.postgres import on_database  # noqa: PLC0415

    asyncio.run(run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"))
    yield on_database(server_dsn, name), server_settings
    asyncio.run(run(f"DROP DATABASE {name} WITH (FORCE)"))
