"""Rows that nobody needs any more: unique keys, agents, gates."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql import maintenance as queries

KEEP: Final = timedelta(days=90)
KEEP_GATES: Final = timedelta(days=30)


async def drop(database: Database) -> int:
    """Delete what is past its time."""
    async with database.system_tx() as conn:
        keys = await queries.drop_expired_keys(conn)
        agents = await queries.drop_old_agents(conn, keep=KEEP)
        gates = await queries.drop_idle_gates(conn, keep=KEEP_GATES)
    return keys + agents + gates


def duties() -> list[Duty]:
    return [Duty("retention", drop, timedelta(minutes=10))]
