"""Row retention: expired unique keys, old agents and idle gates are deleted."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import maintenance as queries
from trapline.settings import Settings

_KEYS_AT_ONCE: Final = 10_000


async def drop(database: Database) -> int:
    """Delete expired keys, old agents and idle gates."""
    keys = await _drop_keys(database)
    async with database.system_tx() as conn:
        settings = database.settings
        agents = await queries.drop_old_agents(
            conn, keep=timedelta(days=settings.retention.keep_days)
        )
        gates = await queries.drop_idle_gates(
            conn, keep=timedelta(days=settings.retention.keep_gates_days)
        )
    return keys + agents + gates


async def _drop_keys(database: Database) -> int:
    gone, part = 0, _KEYS_AT_ONCE
    while part >= _KEYS_AT_ONCE:
        async with database.system_tx() as conn:
            part = await queries.drop_expired_keys(conn, most=_KEYS_AT_ONCE)
        gone += part
    return gone


def duties(_: Settings) -> list[Duty]:
    return [Duty("retention", drop, timedelta(minutes=10))]
