"""Typed functions of gates.sql, made by `make sql`: edit that file instead."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class GateRow(Struct, frozen=True, gc=False):
    id: int
    name: str
    gap: timedelta
    floor: timedelta
    bound: int | None
    ready_at: datetime
    in_flight: int
    pressure: int
    kept_until: datetime
    updated_at: datetime


_SET_GATE: Final = """
-- name: SetGate
INSERT INTO queue.gate (name, gap, floor, bound)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET gap = excluded.gap, floor = excluded.floor, bound = excluded.bound, updated_at = now()
RETURNING *
"""


async def set_gate(
    conn: Connection, *, name: str, gap: timedelta, floor: timedelta, bound: int | None
) -> GateRow | None:
    """Create or change a gate."""
    row = await conn.fetchrow(_SET_GATE, name, gap, floor, bound)
    return None if row is None else GateRow(*row)
