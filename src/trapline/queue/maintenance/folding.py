"""Statistics: the workers' deltas become one row a kind and minute; gauges are set from counters."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue import metrics
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql import maintenance as queries
from trapline.queue.sql import tally
from trapline.settings import Settings

_ADDITIONS_AT_ONCE: Final = 10_000


async def fold(database: Database) -> int:
    async with database.system_tx() as conn:
        return await queries.fold_statistics(conn)


async def fold_tally(database: Database) -> int:
    """Make one row of what was added to each count of jobs, a part at a time."""
    folded, part = 0, _ADDITIONS_AT_ONCE
    while part >= _ADDITIONS_AT_ONCE:
        async with database.system_tx() as conn:
            part = await tally.fold_tally(conn, most=_ADDITIONS_AT_ONCE)
        folded += part
    return folded


async def measure(database: Database) -> int:
    async with database.system_tx() as conn:
        return await metrics.measure(conn)


def duties(_: Settings) -> list[Duty]:
    return [
        Duty("counts of jobs", fold_tally, timedelta(seconds=5)),
        Duty("statistics", fold, timedelta(minutes=1)),
        Duty("gauges", measure, timedelta(seconds=15)),
    ]
