"""Typed functions of finishing.sql, made by `make sql`: edit that file instead."""

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


class EndedRow(Struct, frozen=True, gc=False):
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
    verdicts: Sequence[
        tuple[
            int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
        ]
    ],
) -> list[FenceRow]:
    """Take the leases of these attempts away; only those that still held come back."""
    return [FenceRow(*row) for row in await conn.fetch(_FENCE, verdicts)]


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
    endings: Sequence[
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
    """Move counters, slots, gates and tasks by what was fenced; the jobs of which there is news."""
    value: list[UUID] = await conn.fetchval(
        _SETTLE, endings, tasks, gates, events, changes, most_stalls
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
    verdicts: Sequence[
        tuple[
            int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
        ]
    ],
    lost: bool,
    most_stalls: int,
) -> list[UUID]:
    """Fence and settle attempts that have nothing to store; the jobs of which there is news."""
    value: list[UUID] = await conn.fetchval(_FINISH, verdicts, lost, most_stalls)
    return value


_ENDED: Final = """
-- name: Ended
SELECT task_id, status FROM queue.done WHERE task_id = ANY ($1::bigint[])
"""


async def ended(conn: Connection, *, task_ids: Sequence[TaskId]) -> list[EndedRow]:
    """How these tasks ended, of those that have."""
    return [EndedRow(*row) for row in await conn.fetch(_ENDED, task_ids)]
