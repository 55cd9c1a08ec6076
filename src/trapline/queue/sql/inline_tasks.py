"""Typed functions of inline_tasks.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, TaskId


class BeginInlineTaskRow(Struct, frozen=True, gc=False):
    gate_id: int | None
    slots: int
    begin_at: datetime | None
    blocked_by: str | None
    task_id: TaskId | None
    lane_id: int | None
    lease_id: int | None


_BEGIN_INLINE_TASK: Final = """
-- name: BeginInlineTask
SELECT gate_id, slots AS "slots!", begin_at, blocked_by, task_id, lane_id, lease_id
FROM queue.begin_inline_task(
    ($1::queue.new_direct[])[1],
    ($2::queue.new_task[])[1],
    ($3::queue.new_gate[])[1],
    $4::timestamptz,
    $5::bigint,
    $6::interval,
    $7::boolean,
    NULL
)
"""


async def begin_inline_task(
    conn: Connection,
    *,
    jobs: Sequence[
        tuple[
            UUID | None,
            UUID | None,
            UUID | None,
            str | None,
            int | None,
            str | None,
            str | None,
            UUID | None,
            bool | None,
            timedelta | None,
            timedelta | None,
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
    latest: datetime,
    agent_id: AgentId,
    lease_time: timedelta,
    again: bool,
) -> BeginInlineTaskRow | None:
    """Take slots and create a job with one leased task, or return what blocks it."""
    row = await conn.fetchrow(
        _BEGIN_INLINE_TASK, jobs, tasks, gates, latest, agent_id, lease_time, again
    )
    return None if row is None else BeginInlineTaskRow(*row)


_NEXT_GATE_TIME: Final = """
-- name: NextGateTime
WITH turn AS MATERIALIZED (
    SELECT g.id, greatest(clock_timestamp(), g.ready_at) AS at, greatest(g.floor, g.gap) AS pause
    FROM queue.gate g WHERE g.id = $1 FOR NO KEY UPDATE
),
taken AS (
    UPDATE queue.gate g SET ready_at = turn.at + turn.pause FROM turn WHERE g.id = turn.id
)
SELECT at AS "at!" FROM turn
"""


async def next_gate_time(conn: Connection, *, gate_id: int) -> datetime | None:
    """Reserve the next free time of a gate for a task that holds a slot of it."""
    value: datetime | None = await conn.fetchval(_NEXT_GATE_TIME, gate_id)
    return value
