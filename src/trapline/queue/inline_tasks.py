"""Inline tasks: run in the process of their caller, which waits for them.

Each is a job with one task, leased as it is written. It takes slots of its gate and its organisation as
any other task does, but is never queued, and ends with its caller.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import asyncpg
import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Conflict, DeadlineExceeded, ExitCode
from trapline.model import AgentId, TaskId
from trapline.queue import jobs
from trapline.queue.agents import Agent
from trapline.queue.daily_quota import quota_exceeded
from trapline.queue.finish import Attempt, Finisher, TaskResult, failed
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.micro_batch import MicroBatch
from trapline.queue.notify import Notifier
from trapline.queue.retry_policy import RetryPolicy, TaskOutcome, decide
from trapline.queue.sql import inline_tasks as queries
from trapline.queue.tasks import NewTask, NewTaskRows, Task
from trapline.queue.write_behind import WriteBehind

# The pause between two tries to take slots: shorter than a released slot is kept for the caller.
_SHORTEST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.1
# Beyond a task's own time, before the sweep may declare its caller dead.
_GRACE: Final = timedelta(seconds=30)
_ONCE: Final = RetryPolicy(max_attempts=1)
_RNG: Final = random.Random()  # noqa: S311 (for jitter, of which one attempt has none)
_REASONS: Final = {
    "organisation": "the organisation's limit of tasks at once",
    "gate": "the host, which is busy with other tasks",
    "gap": "the host, which has to be left alone until then",
}


@dataclass(frozen=True, slots=True)
class InlineTask:
    """A task for its caller to run, and what it waited for."""

    task: Task
    waited: float = 0.0
    waited_for: str | None = None


@dataclass(frozen=True, slots=True)
class BeginRequest:
    """The arguments of `queue.begin_inline_task`."""

    jobs: Sequence[tuple[Any, ...]]
    tasks: Sequence[tuple[Any, ...]]
    gates: Sequence[tuple[Any, ...]]
    latest: datetime
    agent_id: AgentId
    lease_time: timedelta
    again: bool


class BeginReply(Protocol):
    """Its answer: the leased task, or the reason that blocks it."""

    @property
    def gate_id(self) -> int | None: ...
    @property
    def begin_at(self) -> datetime | None: ...
    @property
    def blocked_by(self) -> str | None: ...
    @property
    def task_id(self) -> TaskId | None: ...
    @property
    def lane_id(self) -> int | None: ...
    @property
    def lease_id(self) -> int | None: ...


BeginStatement = Callable[[Connection, BeginRequest], Awaitable[BeginReply]]
"""One statement that calls `queue.begin_inline_task` and may return more; it may run more than once."""


async def _begin_alone(conn: Connection, request: BeginRequest) -> BeginReply:
    reply = await queries.begin_inline_task(
        conn,
        jobs=request.jobs,
        tasks=request.tasks,
        gates=request.gates,
        latest=request.latest,
        agent_id=request.agent_id,
        lease_time=request.lease_time,
        again=request.again,
    )
    assert reply is not None  # noqa: S101 (a function with OUT columns has one row)
    return reply


@dataclass(slots=True)
class InlineTasks:
    """The inline tasks of this process. Attempts that end at the same time share a transaction."""

    database: Database
    kinds: Kinds
    agent: Agent
    finisher: Finisher
    notifier: Notifier
    write_behind: WriteBehind = field(init=False)
    _ending: MicroBatch[Attempt, Attempt | None] = field(init=False)

    def __post_init__(self) -> None:
        self._ending = MicroBatch(self._finish)
        self.write_behind = WriteBehind(self._ending.add)

    async def begin(
        self, job: NewJob, new: NewTask, *, latest: datetime, ask: BeginStatement = _begin_alone
    ) -> InlineTask:
        """Wait for free slots and take them; DeadlineExceeded if there are none until `latest`,
        QuotaExceeded if the daily quota is used up. What `ask` raises is raised.
        """
        jobs.check(job)
        await self.agent.wait_registered()
        asked, pause, waited_for = time.monotonic(), _SHORTEST_PAUSE, None
        while True:
            place = await self._ask(job, new, latest, ask)
            if place.blocked_by is None and place.begin_at is not None:
                break
            if place.blocked_by == "pages":
                raise quota_exceeded(datetime.now(UTC))
            if place.blocked_by != "gap" and await self._flush_write_behind(latest):
                continue
            waited_for = place.blocked_by
            if waited_for == "gap" or datetime.now(UTC) + timedelta(seconds=pause) > latest:
                reason = _REASONS.get(waited_for or "", "a free slot")
                raise DeadlineExceeded(
                    f"The time was up waiting for {reason}.", waited_for=waited_for
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        task = self._task(job, new, place, latest)
        early = (place.begin_at - datetime.now(UTC)).total_seconds()
        if early > 0:
            waited_for = waited_for or "gap"
            await self._sleep(task, early)
        return InlineTask(task, time.monotonic() - asked if waited_for else 0.0, waited_for)

    async def finish(self, attempt: Attempt) -> Attempt | None:
        """End an attempt in the finishing transaction, together with others that end now.

        Returns it as it was stored. None: its lease was lost before that, so somebody else has
        ended it, or nobody needs to.
        """
        # A caller that is cancelled must not cancel the others' transaction.
        return await asyncio.shield(self._ending.add(attempt))

    async def _flush_write_behind(self, latest: datetime) -> bool:
        """Flush the write-behind, which releases the slots of answered tasks."""
        return datetime.now(UTC) < latest and await self.write_behind.wait_stored()

    async def _finish(self, attempts: Sequence[Attempt]) -> list[Attempt | None]:
        finished = await self.finisher.finish(attempts)
        self.notifier.notify(jobs=finished.news)
        return [finished.attempts.get(attempt.task.id) for attempt in attempts]

    async def _ask(
        self, job: NewJob, new: NewTask, latest: datetime, ask: BeginStatement
    ) -> BeginReply:
        """Take a place, if there is one: whoever is cancelled meanwhile gives it back."""
        asking = asyncio.ensure_future(self._begin(job, new, latest, ask))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError as error:
            await asyncio.wait({asking})
            if asking.exception() is None and asking.result().blocked_by is None:
                task = self._task(job, new, asking.result(), latest)
                await self.finish(failed_attempt(task, error))
            raise

    async def _begin(
        self, job: NewJob, new: NewTask, latest: datetime, ask: BeginStatement
    ) -> BeginReply:
        now, tries = datetime.now(UTC), itertools.count()
        rows = NewTaskRows.empty()
        rows.add(self.kinds, job.id, job.organisation_id, new, now)
        asked = BeginRequest(
            jobs=[_row(job)],
            tasks=rows.tasks,
            gates=rows.gate_rows(),
            latest=latest,
            agent_id=self.agent.id,
            lease_time=latest - now + _GRACE,
            again=False,
        )
        try:
            return await self.database.run_statement(
                lambda conn: ask(conn, replace(asked, again=next(tries) > 0))
            )
        except asyncpg.UniqueViolationError:
            raise Conflict(f"There already is a job {job.id}.") from None

    def _task(self, job: NewJob, new: NewTask, place: BeginReply, latest: datetime) -> Task:
        return Task(
            id=TaskId(place.task_id or 0),
            job_id=job.id,
            organisation_id=job.organisation_id,
            kind=new.kind,
            payload=new.payload,
            attempt=1,
            max_attempts=1,
            stalls=0,
            priority=new.priority,
            lease_id=place.lease_id or 0,
            lane_id=place.lane_id or 0,
            gate_id=place.gate_id or 0,
            deadline=latest,
            timeout=new.timeout or self.kinds[new.kind].timeout,
            trace_id=new.trace_id,
            zero_data_retention=job.zero_data_retention,
            limited=True,
        )

    async def _sleep(self, task: Task, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError as error:
            await self.finish(failed_attempt(task, error))
            raise


def _row(job: NewJob) -> tuple[Any, ...]:
    return (
        job.id,
        job.organisation_id,
        job.member_id,
        job.kind,
        job.priority,
        msgspec.json.encode(job.options).decode(),
        msgspec.json.encode(job.metadata).decode(),
        job.trace_id,
        job.zero_data_retention,
        job.ttl,
        job.failed_ttl,
    )


async def wait_for_gate(database: Database, task: Task) -> None:
    """Wait for the gate's next free moment: a task that holds its slot sends another request."""
    async with database.system_tx() as conn:
        at = await queries.next_gate_time(conn, gate_id=task.gate_id)
    if at is not None:
        await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))


def failed_attempt(task: Task, error: BaseException, result: TaskResult | None = None) -> Attempt:
    """Return the failed attempt of a task whose handler raised; inline tasks are not retried."""
    result = result or TaskResult()
    if isinstance(error, asyncio.CancelledError):
        reason = "The caller went away."
        return Attempt(task, TaskOutcome.CANCELLED, ExitCode.CANCELLED, reason, result=result)
    decision = decide(
        error, attempt=1, max_attempts=1, policy=_ONCE, now=datetime.now(UTC), rng=_RNG
    )
    return failed(task, decision, result)
