"""Rows that nobody needs any more: unique keys, agents, gates."""

from datetime import timedelta

from trapline.db.pool import Database
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql import maintenance as queries
from trapline.settings import Settings


async def drop(database: Database) -> int:
    """Delete what is past its time."""
    async with database.system_tx() as conn:
        keys = await queries.drop_expired_keys(conn)
        settings = database.settings
        agents = await queries.drop_old_agents(conn, keep=timedelta(days=settings.keep_days))
        gates = await queries.drop_idle_gates(conn, keep=timedelta(days=settings.keep_gates_days))
    return keys + agents + gates


def duties(_: Settings) -> list[Duty]:
    return [Duty("retention", drop, timedelta(minutes=10))]
