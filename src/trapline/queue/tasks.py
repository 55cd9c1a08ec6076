"""Tasks: new ones to enqueue, and claimed ones as handlers get them."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID

import asyncpg
import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict, InvalidInput, NotFound
from trapline.model import JobId, OrganisationId, TaskId, TraceId
from trapline.queue import gates
from trapline.queue.gates import Gate
from trapline.queue.kinds import Kinds
from trapline.queue.sql import tasks as queries
from trapline.queue.sql.tasks import GetTaskRow, ListTasksRow

BATCH = 10_000
_SMALLEST, _LARGEST = -(2**15), 2**15 - 1

# SQLSTATEs that queue_2_enqueue.sql raises.
NO_SUCH_JOB = "TQ404"
JOB_HAS_ENDED = "TQ409"


class TaskSource(IntEnum):
    """Where a task came from. Stored: never reuse a number."""

    SUBMITTED = 0
    FOUND = 1
    SITEMAP = 2


class TaskState(Enum):
    """The state of a task that was to be added."""

    QUEUED = 0
    OVERFLOW = 1
    ALREADY_THERE = 2


class Unique(msgspec.Struct, frozen=True, gc=False):
    """A unique key: one task in its job or its organisation, for ever or for a window of time."""

    key: str
    per: Literal["job", "organisation"] = "job"
    window: timedelta | None = None

    def hashed(self) -> UUID:
        return UUID(bytes=hashlib.sha256(self.key.encode()).digest()[:16])


class NewTask(msgspec.Struct, frozen=True):
    """A task to be added. Priority: lower runs first."""

    kind: str
    payload: Any
    gate: Gate | None = None
    priority: int = 0
    max_attempts: int | None = None
    timeout: timedelta | None = None
    run_at: datetime | None = None
    deadline: datetime | None = None
    unique: Unique | None = None
    counted: bool = True
    source: TaskSource = TaskSource.SUBMITTED
    parent_id: TaskId | None = None
    trace_id: TraceId | None = None


@dataclass(frozen=True, slots=True)
class EnqueueResult:
    """The id and state of a task that was to be added; of one already there, the older task's id."""

    task_id: TaskId
    state: TaskState


class Task(msgspec.Struct):
    """A claimed task, as a handler gets it."""

    id: TaskId
    job_id: JobId
    organisation_id: OrganisationId
    kind: str
    payload: Any
    attempt: int
    max_attempts: int
    stalls: int
    priority: int
    lease_id: int
    lane_id: int
    gate_id: int
    deadline: datetime | None
    timeout: timedelta
    trace_id: TraceId | None
    zero_data_retention: bool
    # Whether it was claimed under a limit, so that finishing it may release a slot.
    limited: bool


TaskRow = tuple[
    UUID | None,
    str | None,
    str | None,
    str | None,
    int | None,
    int | None,
    int | None,
    timedelta | None,
    datetime | None,
    datetime | None,
    bool | None,
    int | None,
    UUID | None,
    UUID | None,
    UUID | None,
    datetime | None,
]
"""A new task as queue.new_task has it."""


@dataclass(slots=True)
class NewTaskRows:
    """New tasks and their gates, as rows of queue.new_task and queue.new_gate."""

    tasks: list[TaskRow]
    gates: dict[str, Gate]

    @classmethod
    def empty(cls) -> "NewTaskRows":
        return cls([], {})

    def add(
        self,
        kinds: Kinds,
        job_id: JobId,
        organisation_id: OrganisationId,
        task: NewTask,
        now: datetime,
    ) -> None:
        """Check one task and add its row."""
        kind = kinds[task.kind]
        gate = task.gate or Gate(kind.gate)
        if self.gates.get(gate.name) is not gate:
            gates.check(gate)
            self.gates.setdefault(gate.name, gate)
        attempts = kind.retry.max_attempts if task.max_attempts is None else task.max_attempts
        _check(task, attempts)
        unique = task.unique
        self.tasks.append(
            (
                job_id,
                gate.name,
                task.kind,
                kind.encode(task.payload),
                task.parent_id,
                task.priority,
                attempts,
                task.timeout,
                task.run_at,
                task.deadline,
                task.counted,
                task.source,
                task.trace_id,
                None if unique is None else job_id if unique.per == "job" else organisation_id,
                None if unique is None else unique.hashed(),
                now + unique.window if unique is not None and unique.window is not None else None,
            )
        )

    def gate_rows(
        self,
    ) -> list[tuple[str | None, timedelta | None, int | None, timedelta | None, int | None]]:
        return [gate.row() for gate in self.gates.values()]


def _check(task: NewTask, attempts: int) -> None:
    if not _SMALLEST <= task.priority <= _LARGEST:
        raise InvalidInput(f"A priority is from {_SMALLEST} to {_LARGEST}; lower runs first.")
    if not 1 <= attempts <= _LARGEST:
        raise InvalidInput("A task has at least one attempt.")
    if task.timeout is not None and task.timeout <= timedelta():
        raise InvalidInput("A timeout must be longer than nothing.")
    for moment in (task.run_at, task.deadline):
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput("Times need a time zone.")


async def enqueue(  # noqa: PLR0913 (one job, its owner, its tasks)
    conn: Connection,
    kinds: Kinds,
    job_id: JobId,
    organisation_id: OrganisationId,
    new: Iterable[NewTask],
    *,
    now: datetime,
) -> list[EnqueueResult]:
    """Add tasks to a job, all or none, in the caller's transaction."""
    rows = NewTaskRows.empty()
    for task in new:
        rows.add(kinds, job_id, organisation_id, task, now)
    added: list[EnqueueResult] = []
    for start in range(0, len(rows.tasks), BATCH):
        part = rows.tasks[start : start + BATCH]
        names = {row[1] for row in part}
        used = [gate.row() for name, gate in rows.gates.items() if name in names]
        added += await _add(conn, job_id, part, used)
    return added


async def _add(
    conn: Connection,
    job_id: JobId,
    rows: Sequence[TaskRow],
    used: Sequence[tuple[str | None, timedelta | None, int | None, timedelta | None, int | None]],
) -> list[EnqueueResult]:
    try:
        answers = await queries.enqueue(conn, job_id=job_id, tasks=rows, gates=used)
    except asyncpg.PostgresError as error:
        if error.sqlstate == NO_SUCH_JOB:
            raise NotFound(str(error)) from None
        if error.sqlstate == JOB_HAS_ENDED:
            raise Conflict(str(error)) from None
        raise
    return [EnqueueResult(answer.task_id, TaskState(answer.state)) for answer in answers]


async def get(conn: Connection, task_id: TaskId) -> GetTaskRow:
    """Return a task and its state."""
    row = await queries.get_task(conn, task_id=task_id)
    if row is None:
        raise NotFound(f"There is no task {task_id}.")
    return row


async def list_of_job(
    conn: Connection, job_id: JobId, *, after: int = 0, most: int = 100
) -> list[ListTasksRow]:
    """Return a job's tasks in the order they were added, after a task's id."""
    return await queries.list_tasks(conn, job_id=job_id, after=after, most=most)


async def take_key(conn: Connection, task: Task, unique: Unique) -> bool:
    """Claim one more key of its job for a running task; False if another task has it."""
    taken = await queries.take_key(
        conn, scope=task.job_id, key=unique.hashed(), job_id=task.job_id, task_id=task.id
    )
    return taken == 1
