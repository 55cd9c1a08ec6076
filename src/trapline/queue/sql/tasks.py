"""Typed functions of tasks.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, JobId, OrganisationId, TaskId, TraceId


class EnqueueRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    state: int


class GetTaskRow(Struct, frozen=True, gc=False):
    id: TaskId
    organisation_id: OrganisationId
    job_id: JobId
    parent_id: int | None
    kind: str
    payload: Any
    priority: int
    max_attempts: int
    deadline: datetime | None
    source: int
    trace_id: TraceId | None
    created_at: datetime
    status: str
    attempts: int | None
    stalls: int | None
    code: int | None
    error: str | None
    result: Any
    agent_id: AgentId | None
    started_at: datetime | None
    finished_at: datetime | None
    run_at: datetime | None
    job_status: str


class ListTasksRow(Struct, frozen=True, gc=False):
    id: TaskId
    kind: str
    payload: Any
    priority: int
    created_at: datetime
    status: str
    attempts: int | None
    code: int | None
    error: str | None
    finished_at: datetime | None


class OverdueRow(Struct, frozen=True, gc=False):
    lease_id: int
    task_id: TaskId


class OverdueWaitingRow(Struct, frozen=True, gc=False):
    lease_id: int
    task_id: TaskId


_ENQUEUE: Final = """
-- name: Enqueue
SELECT task_id AS "task_id!", place AS "state!" FROM queue.enqueue(
    $1::uuid,
    $2::queue.new_task[],
    $3::queue.new_gate[]
)
"""


async def enqueue(
    conn: Connection,
    *,
    job_id: JobId,
    tasks: Sequence[
        tuple[
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
    ],
    gates: Sequence[tuple[str | None, timedelta | None, int | None, timedelta | None, int | None]],
) -> list[EnqueueRow]:
    """Add tasks to a job; return the state of each."""
    return [EnqueueRow(*row) for row in await conn.fetch(_ENQUEUE, job_id, tasks, gates)]


_GET_TASK: Final = """
-- name: GetTask
SELECT t.id, t.organisation_id AS "organisation_id!", t.job_id AS "job_id!", t.parent_id, t.kind, t.payload, t.priority,
       t.max_attempts, t.deadline, t.source, t.trace_id, t.created_at,
       CASE
           WHEN d.task_id IS NOT NULL THEN
               (ARRAY['completed', 'failed', 'skipped', 'cancelled'])[d.status + 1]
           WHEN l.task_id IS NOT NULL THEN 'active'
           WHEN w.task_id IS NOT NULL THEN 'waiting'
           WHEN o.task_id IS NOT NULL THEN 'overflow'
           WHEN j.status IN ('completed', 'failed', 'cancelled') THEN 'cancelled'
           ELSE 'queued'
       END AS "status!",
       coalesce(d.attempts, l.attempts, w.attempts) AS attempts, coalesce(d.stalls, l.stalls, w.stalls) AS stalls,
       d.code, d.error, d.result, d.agent_id, d.started_at, d.finished_at, w.run_at,
       j.status AS "job_status!"
FROM queue.task t
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN queue.done d ON d.task_id = t.id
LEFT JOIN queue.leased l ON l.task_id = t.id
LEFT JOIN queue.waiting w ON w.task_id = t.id
LEFT JOIN queue.overflow o ON o.job_id = t.job_id AND o.task_id = t.id
WHERE t.id = $1
"""


async def get_task(conn: Connection, *, task_id: TaskId) -> GetTaskRow | None:
    """A task and its state."""
    row = await conn.fetchrow(_GET_TASK, task_id)
    return None if row is None else GetTaskRow(*row)


_LIST_TASKS: Final = """
-- name: ListTasks
SELECT t.id, t.kind, t.payload, t.priority, t.created_at,
       CASE
           WHEN d.task_id IS NOT NULL THEN
               (ARRAY['completed', 'failed', 'skipped', 'cancelled'])[d.status + 1]
           WHEN j.status IN ('completed', 'failed', 'cancelled') THEN 'cancelled'
           ELSE 'open'
       END AS "status!",
       d.attempts, d.code, d.error, d.finished_at
FROM queue.task t
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN queue.done d ON d.task_id = t.id
WHERE t.job_id = $1 AND t.id > $2::bigint
ORDER BY t.id
LIMIT $3::integer
"""


async def list_tasks(
    conn: Connection, *, job_id: JobId, after: int, most: int
) -> list[ListTasksRow]:
    """A job's tasks after a task, in the order they were added."""
    return [ListTasksRow(*row) for row in await conn.fetch(_LIST_TASKS, job_id, after, most)]


_OVERDUE: Final = """
-- name: Overdue
WITH lease AS MATERIALIZED (
    INSERT INTO queue.lease (agent_id, expires_at) VALUES (0, now() + interval '1 minute') RETURNING id
),
gone AS MATERIALIZED (
    DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(
        SELECT q.ctid FROM queue.ready q WHERE q.deadline <= now()
        ORDER BY q.deadline LIMIT $1::integer FOR UPDATE SKIP LOCKED))
    RETURNING r.*
)
INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls)
SELECT lease.id, g.task_id, g.lane_id, g.priority, g.attempts, g.stalls FROM gone g CROSS JOIN lease
RETURNING lease_id, task_id
"""


async def overdue(conn: Connection, *, most: int) -> list[OverdueRow]:
    """Lease ready tasks past their deadline under a lease without an agent, so that they can be finished."""
    return [OverdueRow(*row) for row in await conn.fetch(_OVERDUE, most)]


_OVERDUE_WAITING: Final = """
-- name: OverdueWaiting
WITH lease AS MATERIALIZED (
    INSERT INTO queue.lease (agent_id, expires_at) VALUES (0, now() + interval '1 minute') RETURNING id
),
gone AS MATERIALIZED (
    DELETE FROM queue.waiting w WHERE w.ctid = ANY (ARRAY(
        SELECT q.ctid FROM queue.waiting q WHERE q.deadline <= now()
        ORDER BY q.deadline LIMIT $1::integer FOR UPDATE SKIP LOCKED))
    RETURNING w.*
)
INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls)
SELECT lease.id, g.task_id, g.lane_id, g.priority, g.attempts, g.stalls FROM gone g CROSS JOIN lease
RETURNING lease_id, task_id
"""


async def overdue_waiting(conn: Connection, *, most: int) -> list[OverdueWaitingRow]:
    """As Overdue, for waiting tasks."""
    return [OverdueWaitingRow(*row) for row in await conn.fetch(_OVERDUE_WAITING, most)]


_TAKE_KEY: Final = """
-- name: TakeKey
INSERT INTO queue.unique_key AS k (scope, key, job_id, task_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT (scope, key) DO UPDATE SET task_id = excluded.task_id
WHERE k.task_id = excluded.task_id
"""


async def take_key(
    conn: Connection, *, scope: UUID, key: UUID, job_id: JobId, task_id: TaskId
) -> int:
    """Take a unique key of a running task's job; no row if another task has it."""
    return int((await conn.execute(_TAKE_KEY, scope, key, job_id, task_id)).rpartition(" ")[2])


_RESCHEDULE: Final = """
-- name: Reschedule
UPDATE queue.waiting SET run_at = $1 WHERE task_id = $2
"""


async def reschedule(conn: Connection, *, run_at: datetime, task_id: TaskId) -> int:
    """Change the time of a waiting task."""
    return int((await conn.execute(_RESCHEDULE, run_at, task_id)).rpartition(" ")[2])
