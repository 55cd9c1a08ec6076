"""Expired leases and dead agents: their tasks stall and run again, up to nine times."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.errors import ExitCode
from trapline.logs import get_logger
from trapline.model import AgentId
from trapline.queue import metrics
from trapline.queue.agents import LOCK_CLASS
from trapline.queue.finish import RETRYABLE
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import agents, finish, leases
from trapline.queue.sql.leases import ExpiredTasksRow, TasksOfAgentsRow
from trapline.settings import Settings

log = get_logger(__name__)

LOOK_FOR_DEAD: Final = timedelta(seconds=2)
_LEASES_AT_ONCE: Final = 1000
_TASKS_AT_ONCE: Final = 500
_EXPIRED_AT_ONCE: Final = 50_000


async def sweep(database: Database) -> int:
    """Stall the tasks whose lease has expired."""
    async with database.system_tx() as conn:
        expired = await leases.expired_tasks(conn, most=_LEASES_AT_ONCE)
    swept = await _stall(database, expired)
    async with database.system_tx() as conn:
        await leases.drop_expired_leases(conn, most=_EXPIRED_AT_ONCE)
    return swept


class DeadAgents:
    """Declares agents dead that hold no lock at two checks in a row: one may be reconnecting."""

    def __init__(self) -> None:
        self._missing: set[AgentId] = set()

    async def look(self, database: Database) -> int:
        async with database.system_tx() as conn:
            missing = set(await agents.unlocked_agents(conn, lock_class=LOCK_CLASS))
        dead = sorted(missing & self._missing)
        self._missing = missing - set(dead)
        if not dead:
            return 0
        log.warning("agents died", agents=dead)
        async with database.system_tx() as conn:
            await agents.mark_dead(conn, agents=dead)
            held = await leases.tasks_of_agents(conn, agents=dead)
        return await _stall(database, held)


async def _stall(database: Database, rows: Sequence[ExpiredTasksRow | TasksOfAgentsRow]) -> int:
    most_stalls = database.settings.queue.most_stalls
    for part in _parts(rows):
        outcomes = [
            (row.lease_id, row.task_id, TaskOutcome.STALLED, ExitCode.STALLED, None, None, None)
            for row in part
        ]
        try:
            async with database.system_tx() as conn:
                await finish.finish(conn, outcomes=outcomes, lost=True, most_stalls=most_stalls)
        except RETRYABLE:
            # A worker has just finished one of them; the next sweep takes the others.
            continue
        for row in part:
            metrics.STALLS.labels(row.kind).inc()
    return len(rows)


def _parts(
    rows: Sequence[ExpiredTasksRow | TasksOfAgentsRow],
) -> list[Sequence[ExpiredTasksRow | TasksOfAgentsRow]]:
    return [rows[i : i + _TASKS_AT_ONCE] for i in range(0, len(rows), _TASKS_AT_ONCE)]


def duties(settings: Settings) -> list[Duty]:
    return [
        Duty("stale leases", sweep, timedelta(seconds=settings.queue.stale_sweep_seconds)),
        Duty("dead agents", DeadAgents().look, LOOK_FOR_DEAD),
    ]
