"""Schedule firing: due schedules are fired every second; records of old runs are deleted."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.schedule import schedules
from trapline.queue.schedule.schedules import CreateJob
from trapline.queue.sql import schedules as queries

_RUNS_AT_ONCE: Final = 10_000


def duties(create: CreateJob) -> list[Duty]:
    """Return the duties of schedules; `create` makes jobs of their templates."""

    async def fire(database: Database) -> int:
        catch_up = timedelta(seconds=database.settings.queue.catch_up_seconds)
        return await schedules.fire_due(database, create, catch_up=catch_up)

    return [
        Duty("schedules", fire, timedelta(seconds=1)),
        Duty("schedule runs", forget, timedelta(hours=1)),
    ]


async def forget(database: Database) -> int:
    """Delete records of runs that are older than logs are kept."""
    keep, gone, part = timedelta(days=database.settings.retention.keep_days), 0, _RUNS_AT_ONCE
    while part >= _RUNS_AT_ONCE:
        async with database.system_tx() as conn:
            part = await queries.drop_old_runs(conn, keep=keep, most=_RUNS_AT_ONCE)
        gone += part
    return gone
