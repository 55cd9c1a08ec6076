"""Typed functions of leases.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import TaskId


class ExpiredTasksRow(Struct, frozen=True, gc=False):
    lease_id: int
    task_id: TaskId
    kind: str


class TasksOfAgentsRow(Struct, frozen=True, gc=False):
    lease_id: int
    task_id: TaskId
    kind: str


_RENEW_LEASES: Final = """
-- name: RenewLeases
UPDATE queue.lease
SET expires_at = clock_timestamp() + $1::interval
WHERE id = ANY ($2::bigint[]) AND expires_at > clock_timestamp()
RETURNING id
"""


async def renew_leases(
    conn: Connection, *, lease_time: timedelta, leases: Sequence[int]
) -> list[int]:
    """Extend leases; those that are not returned are lost."""
    return [row[0] for row in await conn.fetch(_RENEW_LEASES, lease_time, leases)]


_EXPIRED_TASKS: Final = """
-- name: ExpiredTasks
SELECT d.lease_id, d.task_id, t.kind
FROM (
    SELECT l.id FROM queue.lease l WHERE l.expires_at <= now()
    ORDER BY l.expires_at LIMIT $1::integer
) l
CROSS JOIN LATERAL (
    SELECT d.lease_id, d.task_id FROM queue.leased d WHERE d.lease_id = l.id OFFSET 0
) d
CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = d.task_id OFFSET 0) t
ORDER BY d.lease_id, d.task_id
"""


async def expired_tasks(conn: Connection, *, most: int) -> list[ExpiredTasksRow]:
    """Tasks whose lease has expired, oldest first."""
    return [ExpiredTasksRow(*row) for row in await conn.fetch(_EXPIRED_TASKS, most)]


_TASKS_OF_AGENTS: Final = """
-- name: TasksOfAgents
SELECT d.lease_id, d.task_id, t.kind
FROM queue.lease l
CROSS JOIN LATERAL (
    SELECT d.lease_id, d.task_id FROM queue.leased d WHERE d.lease_id = l.id OFFSET 0
) d
CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = d.task_id OFFSET 0) t
WHERE l.agent_id = ANY ($1::bigint[])
ORDER BY d.lease_id, d.task_id
"""


async def tasks_of_agents(conn: Connection, *, agents: Sequence[int]) -> list[TasksOfAgentsRow]:
    """Leased tasks of dead agents."""
    return [TasksOfAgentsRow(*row) for row in await conn.fetch(_TASKS_OF_AGENTS, agents)]


_DROP_EXPIRED_LEASES: Final = """
-- name: DropExpiredLeases
DELETE FROM queue.lease l
WHERE l.id = ANY (ARRAY(
    SELECT o.id FROM (
        SELECT i.id FROM queue.lease i WHERE i.expires_at <= now() - interval '1 second'
        ORDER BY i.expires_at LIMIT $1::integer
    ) o
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks FROM (
            SELECT FROM queue.leased d WHERE d.lease_id = o.id LIMIT 1) d
    ) d
    WHERE d.tasks = 0))
"""


async def drop_expired_leases(conn: Connection, *, most: int) -> int:
    """Delete expired leases without tasks."""
    return int((await conn.execute(_DROP_EXPIRED_LEASES, most)).rpartition(" ")[2])


_RELEASE_GATES: Final = """
-- name: ReleaseGates
SELECT queue.release_gates($1::bigint[], $2::bigint[],
                           $3::timestamptz[])
"""


async def release_gates(
    conn: Connection,
    *,
    lease_ids: Sequence[int],
    task_ids: Sequence[TaskId],
    not_before: Sequence[datetime | None] | None,
) -> None:
    """Release the gate slots of tasks whose requests are over. Their gates open no earlier than not_before."""
    await conn.execute(_RELEASE_GATES, lease_ids, task_ids, not_before)
