"""Typed functions of agents.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.model import AgentId

_NEXT_AGENT_ID: Final = """
-- name: NextAgentId
SELECT nextval('queue.agent_id_seq') AS "id!"
"""


async def next_agent_id(conn: Connection) -> int:
    """The id that a new agent locks before it shows itself."""
    value: int = await conn.fetchval(_NEXT_AGENT_ID)
    return value


_REGISTER_AGENT: Final = """
-- name: RegisterAgent
INSERT INTO queue.agent (id, uuid, name, user_agent, host, pid, capacity, kinds)
OVERRIDING SYSTEM VALUE
VALUES (
    $1, $2, $3, $4, $5,
    $6, $7, $8
)
"""


async def register_agent(
    conn: Connection,
    *,
    agent_id: AgentId,
    uuid: UUID,
    name: str,
    user_agent: str | None,
    host: str,
    pid: int,
    capacity: int,
    kinds: Sequence[str],
) -> None:
    """Show an agent that already holds its lock."""
    await conn.execute(
        _REGISTER_AGENT, agent_id, uuid, name, user_agent, host, pid, capacity, kinds
    )


_HEARTBEAT: Final = """
-- name: Heartbeat
UPDATE queue.agent SET heartbeat_at = now()
WHERE id = $1 AND finished_at IS NULL
"""


async def heartbeat(conn: Connection, *, agent_id: AgentId) -> int:
    """Say that an agent lives; no row when it was declared dead."""
    return int((await conn.execute(_HEARTBEAT, agent_id)).rpartition(" ")[2])


_FINISH_AGENT: Final = """
-- name: FinishAgent
UPDATE queue.agent SET finished_at = now() WHERE id = $1 AND finished_at IS NULL
"""


async def finish_agent(conn: Connection, *, agent_id: AgentId) -> None:
    """An agent has ended by itself."""
    await conn.execute(_FINISH_AGENT, agent_id)


_BURY_AGENTS: Final = """
-- name: BuryAgents
UPDATE queue.agent SET finished_at = now(), died = true
WHERE id = ANY ($1::bigint[]) AND finished_at IS NULL
"""


async def bury_agents(conn: Connection, *, agents: Sequence[int]) -> None:
    """Agents were found dead."""
    await conn.execute(_BURY_AGENTS, agents)


_UNLOCKED_AGENTS: Final = """
-- name: UnlockedAgents
SELECT a.id FROM queue.agent a
WHERE a.finished_at IS NULL AND NOT EXISTS (
    SELECT FROM pg_locks k
    WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 2
        AND k.classid = $1::integer::oid AND k.objid = a.id::oid
        AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
)
"""


async def unlocked_agents(conn: Connection, *, lock_class: int) -> list[AgentId]:
    """Agents that should be alive but hold no lock."""
    return [row[0] for row in await conn.fetch(_UNLOCKED_AGENTS, lock_class)]


_ANY_AGENT: Final = """
-- name: AnyAgent
SELECT EXISTS (
    SELECT FROM queue.agent WHERE finished_at IS NULL AND $1::text = ANY (kinds)
) AS "alive!"
"""


async def any_agent(conn: Connection, *, kind: str) -> bool:
    """Whether a worker lives that runs this kind."""
    value: bool = await conn.fetchval(_ANY_AGENT, kind)
    return value
