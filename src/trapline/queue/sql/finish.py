"""Typed functions of finish.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, JobId, OrganisationId, TaskId


class FenceRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    lane_id: int
    job_id: JobId
    organisation_id: OrganisationId
    gate_id: int
    priority: int
    attempts: int
    stalls: int
    slots: int
    agent_id: AgentId
    claimed_at: datetime


class EndedTasksRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    status: int


_FENCE: Final = """
-- name: Fence
SELECT task_id AS "task_id!", lane_id AS "lane_id!", job_id AS "job_id!",
       organisation_id AS "organisation_id!", gate_id AS "gate_id!", priority AS "priority!",
       attempts AS "attempts!", stalls AS "stalls!", slots AS "slots!", agent_id AS "agent_id!",
       claimed_at AS "claimed_at!"
FROM queue.fence($1::queue.verdict[], false)
"""


async def fence(
    conn: Connection,
    *,
    outcomes: Sequence[
        tuple[
            int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
        ]
    ],
) -> list[FenceRow]:
    """End the leases of attempts; return those that still held."""
    return [FenceRow(*row) for row in await conn.fetch(_FENCE, outcomes)]


_SETTLE: Final = """
-- name: Settle
SELECT queue.settle(
    $1::queue.ending[],
    $2::queue.new_task[],
    $3::queue.new_gate[],
    $4::queue.new_event[],
    $5::queue.gate_change[],
    $6::integer
) AS "news!"
"""


async def settle(
    conn: Connection,
    *,
    attempts: Sequence[
        tuple[
            int | None,
            int | None,
            int | None,
            str | None,
            str | None,
            datetime | None,
            int | None,
            UUID | None,
            UUID | None,
            int | None,
            int | None,
            int | None,
            int | None,
            int | None,
            int | None,
            datetime | None,
        ]
    ],
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
    events: Sequence[tuple[UUID | None, int | None, str | None, str | None]],
    changes: Sequence[tuple[int | None, timedelta | None, int | None, datetime | None]],
    most_stalls: int,
) -> list[UUID]:
    """Apply fenced attempts to counters, slots, gates and tasks; return the jobs with new events."""
    value: list[UUID] = await conn.fetchval(
        _SETTLE, attempts, tasks, gates, events, changes, most_stalls
    )
    return value


_FINISH: Final = """
-- name: Finish
SELECT queue.finish(
    $1::queue.verdict[],
    $2::boolean,
    $3::integer
) AS "news!"
"""


async def finish(
    conn: Connection,
    *,
    outcomes: Sequence[
        tuple[
            int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
        ]
    ],
    lost: bool,
    most_stalls: int,
) -> list[UUID]:
    """Fence and settle attempts that store nothing; return the jobs with new events."""
    value: list[UUID] = await conn.fetchval(_FINISH, outcomes, lost, most_stalls)
    return value


_ENDED_TASKS: Final = """
-- name: EndedTasks
SELECT task_id, status FROM queue.done WHERE task_id = ANY ($1::bigint[])
"""


async def ended_tasks(conn: Connection, *, task_ids: Sequence[TaskId]) -> list[EndedTasksRow]:
    """The outcomes of those of these tasks that have ended."""
    return [EndedTasksRow(*row) for row in await conn.fetch(_ENDED_TASKS, task_ids)]
