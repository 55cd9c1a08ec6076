"""Typed functions of direct.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, OrganisationId, TaskId


class TakePlaceRow(Struct, frozen=True, gc=False):
    gate_id: int | None
    slots: int
    begin_at: datetime | None
    blocked_by: str | None


class WriteDirectRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    lane_id: int
    lease_id: int


_TAKE_PLACE: Final = """
-- name: TakePlace
SELECT gate_id, slots AS "slots!", begin_at, blocked_by
FROM queue.take_place(
    $1::uuid, ($2::queue.new_gate[])[1], $3::timestamptz
)
"""


async def take_place(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    gates: Sequence[tuple[str | None, timedelta | None, int | None, timedelta | None, int | None]],
    latest: datetime,
) -> TakePlaceRow | None:
    """Take a place at a gate for a task of one's own, or learn what is in the way."""
    row = await conn.fetchrow(_TAKE_PLACE, organisation_id, gates, latest)
    return None if row is None else TakePlaceRow(*row)


_WRITE_DIRECT: Final = """
-- name: WriteDirect
SELECT task_id AS "task_id!", lane_id AS "lane_id!", lease_id AS "lease_id!"
FROM queue.write_direct(
    $1::uuid, ($2::queue.new_task[])[1], $3::bigint,
    $4::smallint, $5::bigint, $6::interval
)
"""


async def write_direct(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
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
    gate_id: int,
    slots: int,
    agent_id: AgentId,
    lease_time: timedelta,
) -> WriteDirectRow | None:
    """Write the leased task of a new job."""
    row = await conn.fetchrow(
        _WRITE_DIRECT, organisation_id, tasks, gate_id, slots, agent_id, lease_time
    )
    return None if row is None else WriteDirectRow(*row)


_NEXT_TURN: Final = """
-- name: NextTurn
WITH turn AS MATERIALIZED (
    SELECT g.id, greatest(clock_timestamp(), g.ready_at) AS at, greatest(g.floor, g.gap) AS pause
    FROM queue.gate g WHERE g.id = $1 FOR NO KEY UPDATE
),
taken AS (
    UPDATE queue.gate g SET ready_at = turn.at + turn.pause FROM turn WHERE g.id = turn.id
)
SELECT at AS "at!" FROM turn
"""


async def next_turn(conn: Connection, *, gate_id: int) -> datetime | None:
    """Take the gate's next free moment for one more request of a task that has its place."""
    value: datetime | None = await conn.fetchval(_NEXT_TURN, gate_id)
    return value
