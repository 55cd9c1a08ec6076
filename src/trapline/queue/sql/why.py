"""Typed functions of why.sql, made by `make sql`: edit that file instead."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, JobId, TaskId


class TaskWaitRow(Struct, frozen=True, gc=False):
    id: TaskId
    kind: str
    job_id: JobId
    job_status: str
    task_limit: int | None
    max_active: int | None
    active: int
    max_concurrency: int | None
    organisation_active: int
    counted: bool
    max_pages_per_day: int | None
    pages_today: int
    run_at: datetime | None
    retry_of_attempt: int | None
    lease_id: int | None
    expires_at: datetime | None
    agent_id: AgentId | None
    done_status: int | None
    error: str | None
    overflow: int | None
    lane_open: bool | None
    gate: str | None
    ready_at: datetime | None
    in_flight: int | None
    bound: int | None
    gap: timedelta | None


class SlowestGateRow(Struct, frozen=True, gc=False):
    name: str
    gap: timedelta
    in_flight: int
    ready_at: datetime


_TASK_WAIT: Final = """
-- name: TaskWait
SELECT t.id, t.kind, t.job_id AS "job_id!", j.status AS "job_status!", j.task_limit, j.max_active, j.active,
       o.max_concurrency, coalesce(q.active, 0) AS "organisation_active!",
       t.counted, o.max_pages_per_day,
       coalesce(CASE WHEN q.day = queue.day_of(now()) THEN q.pages END, 0) AS "pages_today!",
       w.run_at, w.attempts AS retry_of_attempt, l.lease_id, s.expires_at, s.agent_id,
       d.status AS done_status, d.error, v.task_id AS overflow,
       n.open AS lane_open, g.name AS gate, g.ready_at, g.in_flight,
       CASE WHEN g.floor > interval '0' THEN 1 ELSE coalesce(n.bound, g.bound) END AS bound,
       greatest(g.floor, coalesce(n.gap, g.gap)) AS gap
FROM queue.task t
JOIN queue.job j ON j.id = t.job_id
JOIN tenancy.organisation o ON o.id = t.organisation_id
LEFT JOIN queue.quota q ON q.organisation_id = t.organisation_id
LEFT JOIN queue.lane n ON n.id = t.lane_id
LEFT JOIN queue.gate g ON g.id = t.gate_id
LEFT JOIN queue.waiting w ON w.task_id = t.id
LEFT JOIN queue.leased l ON l.task_id = t.id
LEFT JOIN queue.lease s ON s.id = l.lease_id
LEFT JOIN queue.done d ON d.task_id = t.id
LEFT JOIN queue.overflow v ON v.job_id = t.job_id AND v.task_id = t.id
WHERE t.id = $1
"""


async def task_wait(conn: Connection, *, task_id: TaskId) -> TaskWaitRow | None:
    """Everything that decides when a task runs."""
    row = await conn.fetchrow(_TASK_WAIT, task_id)
    return None if row is None else TaskWaitRow(*row)


_SLOWEST_GATE: Final = """
-- name: SlowestGate
SELECT g.name, greatest(g.floor, coalesce(l.gap, g.gap)) AS "gap!", g.in_flight, g.ready_at
FROM queue.lane l JOIN queue.gate g ON g.id = l.gate_id
WHERE l.job_id = $1 AND l.open AND l.awake
ORDER BY g.ready_at DESC, g.id LIMIT 1
"""


async def slowest_gate(conn: Connection, *, job_id: JobId) -> SlowestGateRow | None:
    """The gate of a job's tasks that opens last."""
    row = await conn.fetchrow(_SLOWEST_GATE, job_id)
    return None if row is None else SlowestGateRow(*row)
