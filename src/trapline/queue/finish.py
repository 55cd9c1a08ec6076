"""The finishing transaction: fence, store and settle a batch of attempts, all or nothing.

A batch that fails is bisected until the one attempt that cannot be stored is alone; it is then
finished as failed, without its result.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import structs

from trapline.db.connection import EXHAUSTED, LOST, Connection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable, ExitCode
from trapline.logs import get_logger
from trapline.model import JobId, TaskId
from trapline.queue.gates import GateChange
from trapline.queue.kinds import Kinds, check_json
from trapline.queue.retry_policy import RetryDecision, TaskOutcome, decide
from trapline.queue.sql import finish as queries
from trapline.queue.sql.finish import FenceRow
from trapline.queue.tasks import NewTask, NewTaskRows, Task
from trapline.queue.worker.leases import MOST_STALLS

log = get_logger(__name__)

# The server is away, or has no disk space or memory left: the same transaction is retried later.
_UNAVAILABLE: Final = (*LOST, *EXHAUSTED, DatabaseUnavailable)
# Conflicts with another transaction: the same transaction can be retried.
RETRYABLE: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_SHORTEST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 2.0
_CONFLICT_PAUSE: Final = 0.05


class NewEvent(msgspec.Struct, frozen=True):
    """An event of a job; it gets its number when it is written."""

    type: str
    data: Any = msgspec.field(default_factory=dict)


class TaskResult(msgspec.Struct, frozen=True):
    """What an attempt leaves: its result, new tasks and events, and the pace of its gate.

    A handler returns one, or the bare `value`. With an `error` the attempt fails as if the handler
    had raised it, but its result is stored.
    """

    value: Any = None
    children: Sequence[NewTask] = ()
    events: Sequence[NewEvent] = ()
    gate: GateChange | None = None
    error: Exception | None = None


_EMPTY: Final = TaskResult()


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at a task: how it ended and what it leaves."""

    task: Task
    outcome: TaskOutcome = TaskOutcome.COMPLETED
    code: ExitCode | None = None
    error: str | None = None
    run_at: datetime | None = None
    result: TaskResult = _EMPTY

    @property
    def plain(self) -> bool:
        """Whether it succeeded and holds no slot: then it is finished the short way."""
        return self.outcome is TaskOutcome.COMPLETED and not self.task.limited

    @property
    def rich(self) -> bool:
        """Whether it leaves more than its outcome and its value."""
        result = self.result
        return bool(result.children or result.events or result.gate)

    def with_value(self, value: Any, **changes: Any) -> "Attempt":
        """Return the attempt with what its value is stored as, and other changes of its result."""
        return structs.replace(self, result=structs.replace(self.result, value=value, **changes))

    def row(
        self,
    ) -> tuple[
        int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
    ]:
        """Return it as queue.verdict has it."""
        return (
            self.task.lease_id,
            self.task.id,
            self.outcome,
            self.code,
            encode_value(self.result),
            self.error,
            self.run_at,
        )


Store = Callable[[Connection, Sequence[Attempt]], Awaitable[Sequence[Attempt]]]
"""Stores the results of attempts whose leases held, inside the finishing transaction.

It returns the attempts as they are to be finished, each with a value that is JSON.
"""


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """The attempts whose leases held, as they were stored, and the jobs with news."""

    attempts: dict[TaskId, Attempt] = field(default_factory=dict)
    news: list[JobId] = field(default_factory=list)
    # As the last try stored them, whether or not it was committed.
    tried: dict[TaskId, Attempt] = field(default_factory=dict)


def encode(result: Any) -> str:
    return check_json(msgspec.json.encode(result), "The result")


def encode_value(result: TaskResult) -> str | None:
    return None if result.value is None else encode(result.value)


def as_json(value: Any) -> msgspec.Raw | None:
    """Return a value as it will be stored: one that cannot be stored is its handler's failure."""
    return None if value is None else msgspec.Raw(encode(value).encode())


def failed(task: Task, decision: RetryDecision, result: TaskResult = _EMPTY) -> Attempt:
    """Return a failed attempt; PostgreSQL takes no NUL in its reason."""
    reason = decision.error.replace("\x00", "")
    return Attempt(task, decision.outcome, decision.code, reason, decision.run_at, result)


@dataclass(slots=True)
class Finisher:
    """Finishes batches of attempts of any jobs and organisations."""

    database: Database
    kinds: Kinds
    store: Store | None = None
    most_stalls: int = MOST_STALLS
    rng: random.Random = field(default_factory=random.Random)

    async def finish(self, attempts: Sequence[Attempt]) -> FinishedBatch:
        """Finish a batch, however often the server goes away or has no space left."""
        finished, lost, pause = FinishedBatch(), False, _SHORTEST_PAUSE
        while True:
            try:
                await self._halve(attempts, finished)
                if lost:
                    await self._look_again(attempts, finished)
            except _UNAVAILABLE as error:
                # Whether it was committed is unknown; the fence makes a second try harmless.
                log.warning("finishing is retried", error=str(error))
                if isinstance(error, EXHAUSTED):
                    self.database.shortage.report(error)
                lost = True
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self.database.shortage.clear()
                return finished

    async def _look_again(self, attempts: Sequence[Attempt], finished: FinishedBatch) -> None:
        """Find out which attempts were finished by the try whose answer was lost."""
        unknown = {
            a.task.id: finished.tried.get(a.task.id, a)
            for a in attempts
            if a.task.id not in finished.attempts
        }
        async with self.database.system_tx() as conn:
            for row in await queries.ended_tasks(conn, task_ids=list(unknown)):
                attempt = unknown[row.task_id]
                if row.status == attempt.outcome:
                    finished.attempts[row.task_id] = attempt

    async def _halve(self, attempts: Sequence[Attempt], finished: FinishedBatch) -> None:
        """Finish a batch; if that fails, each half of it."""
        try:
            await self._together(attempts, finished)
        except _UNAVAILABLE:
            raise
        except RETRYABLE as error:
            log.info("finishing is retried after a conflict", error=str(error))
            await asyncio.sleep(self.rng.uniform(0, _CONFLICT_PAUSE))
            await self._halve(attempts, finished)
        except Exception as error:  # noqa: BLE001 (the boundary: whatever a hook raises)
            if len(attempts) == 1:
                await self._alone(attempts[0], error, finished)
                return
            middle = len(attempts) // 2
            await self._halve(attempts[:middle], finished)
            await self._halve(attempts[middle:], finished)

    async def _together(self, attempts: Sequence[Attempt], finished: FinishedBatch) -> None:
        now = datetime.now(UTC)
        by_id = {attempt.task.id: attempt for attempt in attempts}
        async with self.database.system_tx(steady=True) as conn:
            fenced = await queries.fence(conn, outcomes=[_fence_row(a) for a in attempts])
            if not fenced:
                return
            held = {row.task_id: by_id[row.task_id] for row in fenced}
            to_store = [a for a in held.values() if self.kinds[a.task.kind].stored]
            if to_store and self.store is not None:
                held.update((a.task.id, a) for a in await self.store(conn, to_store))
            finished.tried.update(held)
            news = await self._settle(conn, fenced, held, now)
        finished.attempts.update(held)
        finished.news.extend(news)

    async def _settle(
        self,
        conn: Connection,
        fenced: Sequence[FenceRow],
        by_id: dict[TaskId, Attempt],
        now: datetime,
    ) -> list[JobId]:
        rows = NewTaskRows.empty()
        events: list[tuple[JobId, TaskId, str, str]] = []
        gates: dict[int, GateChange] = {}
        for row in fenced:
            result = by_id[row.task_id].result
            for child in result.children:
                rows.add(self.kinds, row.job_id, row.organisation_id, child, now)
            events += [(row.job_id, row.task_id, e.type, encode(e.data)) for e in result.events]
            if result.gate is not None:
                # The pages of a batch are mostly of one host: its gate is updated once.
                gates[row.gate_id] = result.gate.and_also(gates.get(row.gate_id))
        news = await queries.settle(
            conn,
            attempts=[_ending(row, by_id[row.task_id]) for row in fenced],
            tasks=rows.tasks,
            gates=rows.gate_rows(),
            events=events,
            changes=[(gate_id, g.gap, g.pressure, g.not_before) for gate_id, g in gates.items()],
            most_stalls=self.most_stalls,
        )
        return [JobId(job_id) for job_id in news]

    async def _alone(self, attempt: Attempt, error: Exception, finished: FinishedBatch) -> None:
        """Finish the one attempt that cannot be stored, by its outcome alone."""
        task = attempt.task
        log.error("a result cannot be stored", task=task.id, kind=task.kind, error=repr(error))
        failure = failed(
            task,
            decide(
                error,
                attempt=task.attempt,
                max_attempts=task.max_attempts,
                policy=self.kinds[task.kind].retry,
                now=datetime.now(UTC),
                rng=self.rng,
            ),
        )
        async with self.database.system_tx() as conn:
            news = await queries.finish(
                conn, outcomes=[failure.row()], lost=False, most_stalls=self.most_stalls
            )
        finished.attempts[task.id] = failure
        finished.news.extend(JobId(job_id) for job_id in news)


def _fence_row(attempt: Attempt) -> tuple[int, TaskId, TaskOutcome, None, None, None, None]:
    """Return what the fence needs of an attempt; the rest may change while it is stored."""
    return attempt.task.lease_id, attempt.task.id, attempt.outcome, None, None, None, None


def _ending(row: FenceRow, attempt: Attempt) -> tuple[Any, ...]:
    return (
        row.task_id,
        attempt.outcome,
        attempt.code,
        encode_value(attempt.result),
        attempt.error,
        attempt.run_at,
        row.lane_id,
        row.job_id,
        row.organisation_id,
        row.gate_id,
        row.priority,
        row.attempts,
        row.stalls,
        row.slots,
        row.agent_id,
        row.claimed_at,
    )
