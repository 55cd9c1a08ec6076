"""Direct tasks: run by the process that asks for them, which waits for them.

Each is a job with one task, leased where it is written. It takes a place at its gate and in its
organisation's limit as any other task does, but stands in no line, and dies with its caller.
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
from trapline.errors import Conflict, ExitCode, TookTooLong
from trapline.model import AgentId, TaskId
from trapline.queue import jobs
from trapline.queue.afterwards import Afterwards
from trapline.queue.agents import Agent
from trapline.queue.finishing import Attempt, Finisher
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.notices import Bell
from trapline.queue.quotas import used_up
from trapline.queue.retries import RetryPolicy, Verdict, judge
from trapline.queue.sql import direct as queries
from trapline.queue.tasks import NewTask, Rows, Task
from trapline.queue.together import Together

# How often a caller asks again for a place: more often than a place is kept for it.
_SHORTEST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.1
# What a task may take beyond its own time before others may call its caller dead.
_GRACE: Final = timedelta(seconds=30)
_ONCE: Final = RetryPolicy(max_attempts=1)
_RNG: Final = random.Random()  # noqa: S311 (for jitter, of which one attempt has none)
_REASONS: Final = {
    "organisation": "the organisation's limit of tasks at once",
    "gate": "the host, which is busy with other tasks",
    "gap": "the host, which has to be left alone until then",
}


@dataclass(frozen=True, slots=True)
class Held:
    """A task that is its caller's to run, and what it had to wait for until then."""

    task: Task
    waited: float = 0.0
    waited_for: str | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """What `queue.begin_direct` is asked with."""

    jobs: Sequence[tuple[Any, ...]]
    tasks: Sequence[tuple[Any, ...]]
    gates: Sequence[tuple[Any, ...]]
    latest: datetime
    agent_id: AgentId
    lease_time: timedelta
    again: bool


class Place(Protocol):
    """What it answers: a place and what is held there, or what is in the way."""

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


Ask = Callable[[Connection, Beginning], Awaitable[Place]]
"""One statement that calls `queue.begin_direct`, and may find out more; it may run more than once."""


async def _ask_alone(conn: Connection, asked: Beginning) -> Place:
    place = await queries.begin_direct(
        conn,
        jobs=asked.jobs,
        tasks=asked.tasks,
        gates=asked.gates,
        latest=asked.latest,
        agent_id=asked.agent_id,
        lease_time=asked.lease_time,
        again=asked.again,
    )
    assert place is not None  # noqa: S101 (a function with OUT columns has one row)
    return place


@dataclass(slots=True)
class Direct:
    """The direct tasks of this process. What ends at the same time is finished together."""

    database: Database
    kinds: Kinds
    agent: Agent
    finisher: Finisher
    bell: Bell
    afterwards: Afterwards = field(init=False)
    _ending: Together[Attempt] = field(init=False)

    def __post_init__(self) -> None:
        self._ending = Together(self._finish)
        self.afterwards = Afterwards(self._ending.add)

    async def begin(
        self, job: NewJob, new: NewTask, *, latest: datetime, ask: Ask = _ask_alone
    ) -> Held:
        """Wait for a place and take it; TookTooLong if there is none until `latest`, LimitReached
        if the organisation's pages of today are used up. What `ask` raises is raised.
        """
        jobs.check(job)
        await self.agent.registered()
        asked, pause, waited_for = time.monotonic(), _SHORTEST_PAUSE, None
        while True:
            place = await self._ask(job, new, latest, ask)
            if place.blocked_by is None and place.begin_at is not None:
                break
            if place.blocked_by == "pages":
                raise used_up(datetime.now(UTC))
            if place.blocked_by != "gap" and await self._given_back(latest):
                continue
            waited_for = place.blocked_by
            if waited_for == "gap" or datetime.now(UTC) + timedelta(seconds=pause) > latest:
                reason = _REASONS.get(waited_for or "", "a place")
                raise TookTooLong(f"The time was up waiting for {reason}.", waited_for=waited_for)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        task = self._task(job, new, place, latest)
        early = (place.begin_at - datetime.now(UTC)).total_seconds()
        if early > 0:
            waited_for = waited_for or "gap"
            await self._sleep(task, early)
        return Held(task, time.monotonic() - asked if waited_for else 0.0, waited_for)

    async def finish(self, attempt: Attempt) -> bool:
        """End an attempt in the finishing transaction, together with others that end now.

        False: its lease was lost before that, so somebody else has ended it, or nobody needs to.
        """
        # A caller that goes away must not take the others' end with it.
        await asyncio.shield(self._ending.add(attempt))
        return attempt.held

    async def _given_back(self, latest: datetime) -> bool:
        """Have places given back that belong to nobody any more: what is answered needs none."""
        return datetime.now(UTC) < latest and await self.afterwards.settled()

    async def _finish(self, attempts: Sequence[Attempt]) -> None:
        self.bell.ring(jobs=await self.finisher.finish(attempts))

    async def _ask(self, job: NewJob, new: NewTask, latest: datetime, ask: Ask) -> Place:
        """Take a place, if there is one: whoever is cancelled meanwhile gives it back."""
        asking = asyncio.ensure_future(self._begin(job, new, latest, ask))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError as error:
            await asyncio.wait({asking})
            if asking.exception() is None and asking.result().blocked_by is None:
                task = self._task(job, new, asking.result(), latest)
                await self.finish(ended_by(task, error))
            raise

    async def _begin(self, job: NewJob, new: NewTask, latest: datetime, ask: Ask) -> Place:
        now, tries = datetime.now(UTC), itertools.count()
        rows = Rows.empty()
        rows.add(self.kinds, job.id, job.organisation_id, new, now)
        asked = Beginning(
            jobs=[_row(job)],
            tasks=rows.tasks,
            gates=rows.gate_rows(),
            latest=latest,
            agent_id=self.agent.id,
            lease_time=latest - now + _GRACE,
            again=False,
        )
        try:
            return await self.database.statement(
                lambda conn: ask(conn, replace(asked, again=next(tries) > 0))
            )
        except asyncpg.UniqueViolationError:
            raise Conflict(f"There already is a job {job.id}.") from None

    def _task(self, job: NewJob, new: NewTask, place: Place, latest: datetime) -> Task:
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
            await self.finish(ended_by(task, error))
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


async def next_turn(database: Database, task: Task) -> None:
    """Wait at the gate once more: for another request of a task that has its place."""
    async with database.system_tx() as conn:
        at = await queries.next_turn(conn, gate_id=task.gate_id)
    if at is not None:
        await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))


def ended_by(task: Task, error: BaseException) -> Attempt:
    """Return how a task ends whose handler raised: there is no other attempt."""
    if isinstance(error, asyncio.CancelledError):
        return Attempt(task, Verdict.CANCELLED, ExitCode.CANCELLED, "The caller went away.")
    judgement = judge(
        error, attempt=1, max_attempts=1, policy=_ONCE, now=datetime.now(UTC), rng=_RNG
    )
    reason = judgement.error.replace("\x00", "")
    return Attempt(task, judgement.verdict, judgement.code, reason)
