"""Lane clean-up: empty lanes sleep, those of ended jobs are emptied and deleted."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import maintenance as queries
from trapline.settings import Settings

_LANES_AT_ONCE: Final = 2000
_ROWS_AT_ONCE: Final = 20_000


async def sleep(database: Database) -> int:
    """Put empty lanes to sleep, so that workers do not read them."""
    async with database.system_tx() as conn:
        idle = await queries.idle_lanes(conn, most=_LANES_AT_ONCE)
    slept = 0
    for lane_id in idle:
        async with database.system_tx() as conn:
            if await queries.lock_lane(conn, lane_id=lane_id) is not None:
                slept += await queries.sleep_lane(conn, lane_id=lane_id)
    return slept


async def clear(database: Database) -> int:
    """Delete the queued tasks and lanes of cancelled jobs."""
    async with database.system_tx() as conn:
        closed = await queries.closed_lanes(conn, most=_LANES_AT_ONCE)
    for lane_id in closed:
        rows = _ROWS_AT_ONCE
        while rows >= _ROWS_AT_ONCE:
            async with database.system_tx() as conn:
                rows = await queries.clear_lane(conn, lane_id=lane_id, most=_ROWS_AT_ONCE)
        async with database.system_tx() as conn:
            await queries.clear_waiting(conn, lane_id=lane_id)
            await queries.drop_lane(conn, lane_id=lane_id)
    return len(closed)


def duties(_: Settings) -> list[Duty]:
    return [
        Duty("sleeping lanes", sleep, timedelta(seconds=10)),
        Duty("cancelled tasks", clear, timedelta(seconds=10)),
    ]
