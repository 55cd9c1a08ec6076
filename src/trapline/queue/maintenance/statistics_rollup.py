"""Statistics rollup: the workers' deltas become one row for each kind and minute; gauges are set."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue import metrics
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import maintenance as queries
from trapline.queue.sql import statistics
from trapline.settings import Settings

_ADDITIONS_AT_ONCE: Final = 10_000


async def merge_statistics(database: Database) -> int:
    async with database.system_tx() as conn:
        return await queries.merge_statistics(conn)


async def merge_tally(database: Database) -> int:
    """Merge the additions to each count of jobs into one row, a part at a time."""
    merged, part = 0, _ADDITIONS_AT_ONCE
    while part >= _ADDITIONS_AT_ONCE:
        async with database.system_tx() as conn:
            part = await statistics.merge_tally(conn, most=_ADDITIONS_AT_ONCE)
        merged += part
    return merged


async def measure(database: Database) -> int:
    async with database.system_tx() as conn:
        return await metrics.measure(conn)


def duties(_: Settings) -> list[Duty]:
    return [
        Duty("counts of jobs", merge_tally, timedelta(seconds=5)),
        Duty("statistics", merge_statistics, timedelta(minutes=1)),
        Duty("gauges", measure, timedelta(seconds=15)),
    ]
