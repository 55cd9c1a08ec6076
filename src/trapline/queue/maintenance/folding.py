"""Statistics: the workers' deltas become one row a kind and minute; gauges are set from counters."""

from datetime import timedelta

from trapline.db.pool import Database
from trapline.queue import metrics
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql import maintenance as queries
from trapline.settings import Settings


async def fold(database: Database) -> int:
    async with database.system_tx() as conn:
        return await queries.fold_statistics(conn)


async def measure(database: Database) -> int:
    async with database.system_tx() as conn:
        return await metrics.measure(conn)


def duties(_: Settings) -> list[Duty]:
    return [
        Duty("statistics", fold, timedelta(minutes=1)),
        Duty("gauges", measure, timedelta(seconds=15)),
    ]
