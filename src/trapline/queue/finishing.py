"""The finishing transaction: fence, store, settle; all of it or nothing.

A batch that fails is cut in halves until the one poisonous attempt stands alone; that one is then
finished without what it wanted to store, as a failure.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import asyncpg
import msgspec

from trapline.db.connection import LOST, Connection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable, ExitCode
from trapline.logs import get_logger
from trapline.model import JobId, TaskId
from trapline.queue.gates import GateChange
from trapline.queue.kinds import Kinds, checked
from trapline.queue.leases import MOST_STALLS
from trapline.queue.retries import Verdict, judge
from trapline.queue.sql import finishing as queries
from trapline.queue.sql.finishing import FenceRow
from trapline.queue.tasks import NewTask, Rows, Task

log = get_logger(__name__)

# Another finisher was in the way, or the server: the same transaction can simply be tried again.
AGAIN: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_PAUSE: Final = 0.2


class NewEvent(msgspec.Struct, frozen=True):
    """Something to tell of a job, numbered when it is written."""

    type: str
    data: Any = msgspec.field(default_factory=dict)


@dataclass(slots=True)
class Finished:
    """What a handler returns when its result is not all there is.

    With an error the attempt failed as if the handler had raised it, but its result is stored.
    """

    result: Any = None
    children: Sequence[NewTask] = ()
    events: Sequence[NewEvent] = ()
    gate: GateChange | None = None
    error: Exception | None = None


class Attempt(msgspec.Struct):
    """One attempt at a task, on its way into the finishing transaction.

    `value` is what the handler returned: the store hook may read it, and set `result` and add
    children and events, before the attempt is settled.
    """

    task: Task
    verdict: Verdict = Verdict.COMPLETED
    code: ExitCode | None = None
    error: str | None = None
    run_at: datetime | None = None
    value: Any = None
    result: Any = None
    children: list[NewTask] = msgspec.field(default_factory=list)
    events: list[NewEvent] = msgspec.field(default_factory=list)
    gate: GateChange | None = None
    held: bool = False
    """Set when it is finished: whether its lease was still its own then."""

    @property
    def plain(self) -> bool:
        """Whether it succeeded and holds no slot: then it is finished the short way."""
        return self.verdict is Verdict.COMPLETED and not self.task.limited

    @property
    def rich(self) -> bool:
        """Whether it needs more than its verdict to be written."""
        return bool(self.children or self.events or self.gate)

    def row(
        self,
    ) -> tuple[
        int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
    ]:
        return (
            self.task.lease_id,
            self.task.id,
            self.verdict,
            self.code,
            None if self.result is None else encode(self.result),
            self.error,
            self.run_at,
        )


Store = Callable[[Connection, Sequence[Attempt]], Awaitable[None]]
"""Stores the results of attempts whose leases held, inside the finishing transaction."""


def encode(result: Any) -> str:
    return checked(msgspec.json.encode(result), "The result")


def written(result: Any) -> msgspec.Raw | None:
    """Return a result as it will be stored: one that cannot be is its handler's failure."""
    return None if result is None else msgspec.Raw(encode(result).encode())


@dataclass(slots=True)
class Finisher:
    """Finishes batches of attempts of any jobs and organisations."""

    database: Database
    kinds: Kinds
    store: Store | None = None
    most_stalls: int = MOST_STALLS
    rng: random.Random = field(default_factory=random.Random)

    async def finish(self, attempts: Sequence[Attempt]) -> list[JobId]:
        """Finish a batch, however often the server goes away; return the jobs with news."""
        lost = False
        while True:
            try:
                news = await self._halve(attempts)
                if lost:
                    await self._look_again(attempts)
            except (*LOST, DatabaseUnavailable) as error:
                # Whether it was committed is not known; the fence makes a second time harmless.
                log.warning("finishing is tried again", error=str(error))
                lost = True
                await asyncio.sleep(_PAUSE)
            else:
                return news

    async def _look_again(self, attempts: Sequence[Attempt]) -> None:
        """Find out which of them were finished by the try whose answer was lost."""
        unknown = {attempt.task.id: attempt for attempt in attempts if not attempt.held}
        async with self.database.system_tx() as conn:
            for row in await queries.ended(conn, task_ids=list(unknown)):
                attempt = unknown[row.task_id]
                attempt.held = row.status == attempt.verdict

    async def _halve(self, attempts: Sequence[Attempt]) -> list[JobId]:
        try:
            return await self._together(attempts)
        except (*LOST, DatabaseUnavailable):
            raise
        except AGAIN:
            return await self._halve(attempts)
        except Exception as error:  # noqa: BLE001 (the boundary: whatever a hook raises)
            if len(attempts) == 1:
                return await self._alone(attempts[0], error)
        middle = len(attempts) // 2
        return [*await self._halve(attempts[:middle]), *await self._halve(attempts[middle:])]

    async def _together(self, attempts: Sequence[Attempt]) -> list[JobId]:
        now = datetime.now(UTC)
        by_id = {attempt.task.id: attempt for attempt in attempts}
        for attempt in attempts:
            attempt.held = False
        async with self.database.system_tx(steady=True) as conn:
            fenced = await queries.fence(conn, verdicts=[attempt.row() for attempt in attempts])
            if not fenced:
                return []
            survivors = [by_id[row.task_id] for row in fenced]
            for attempt in survivors:
                attempt.held = True
            stored = [a for a in survivors if self.kinds[a.task.kind].stored]
            if stored and self.store is not None:
                await self.store(conn, stored)
            return await self._settle(conn, fenced, by_id, now)

    async def _settle(
        self,
        conn: Connection,
        fenced: Sequence[FenceRow],
        by_id: dict[TaskId, Attempt],
        now: datetime,
    ) -> list[JobId]:
        rows = Rows.empty()
        events: list[tuple[JobId, TaskId, str, str]] = []
        gates: dict[int, GateChange] = {}
        for row in fenced:
            attempt = by_id[row.task_id]
            for child in attempt.children:
                rows.add(self.kinds, row.job_id, row.organisation_id, child, now)
            events += [(row.job_id, row.task_id, e.type, encode(e.data)) for e in attempt.events]
            if attempt.gate is not None:
                # The pages of a batch are mostly of one host: its gate is changed once.
                gates[row.gate_id] = attempt.gate.and_also(gates.get(row.gate_id))
        news = await queries.settle(
            conn,
            endings=[_ending(row, by_id[row.task_id]) for row in fenced],
            tasks=rows.tasks,
            gates=rows.gate_rows(),
            events=events,
            changes=[(gate_id, g.gap, g.pressure, g.not_before) for gate_id, g in gates.items()],
            most_stalls=self.most_stalls,
        )
        return [JobId(job_id) for job_id in news]

    async def _alone(self, attempt: Attempt, error: Exception) -> list[JobId]:
        """Finish the one attempt that cannot be stored, by its verdict alone."""
        task = attempt.task
        log.error("a result cannot be stored", task=task.id, kind=task.kind, error=repr(error))
        judgement = judge(
            error,
            attempt=task.attempt,
            max_attempts=task.max_attempts,
            policy=self.kinds[task.kind].retry,
            now=datetime.now(UTC),
            rng=self.rng,
        )
        attempt.verdict, attempt.code = judgement.verdict, judgement.code
        attempt.error = judgement.error.replace("\x00", "")
        attempt.run_at, attempt.result = judgement.run_at, None
        attempt.children, attempt.events, attempt.gate = [], [], None
        attempt.held = True
        async with self.database.system_tx() as conn:
            news = await queries.finish(
                conn, verdicts=[attempt.row()], lost=False, most_stalls=self.most_stalls
            )
        return [JobId(job_id) for job_id in news]


def _ending(row: FenceRow, attempt: Attempt) -> tuple[Any, ...]:
    return (
        row.task_id,
        attempt.verdict,
        attempt.code,
        None if attempt.result is None else encode(attempt.result),
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
