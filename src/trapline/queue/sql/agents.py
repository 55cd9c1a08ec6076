"""Typed functions of agents.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId


class ListAgentsRow(Struct, frozen=True, gc=False):
    id: AgentId
    name: str
    host: str
    pid: int
    capacity: int
    kinds: list[str]
    started_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None
    died: bool
    active: int


class DutyRow(Struct, frozen=True, gc=False):
    name: str
    ran_at: datetime
    took: timedelta
    did: int
    error: str | None


_NEXT_AGENT_ID: Final = """
-- name: NextAgentId
SELECT nextval('queue.agent_id_seq') AS "id!"
"""


async def next_agent_id(conn: Connection) -> int:
    """The id of a new agent. The agent locks it before its row is visible."""
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
    """Add an agent that holds its lock."""
    await conn.execute(
        _REGISTER_AGENT, agent_id, uuid, name, user_agent, host, pid, capacity, kinds
    )


_HEARTBEAT: Final = """
-- name: Heartbeat
UPDATE queue.agent SET heartbeat_at = now()
WHERE id = $1 AND finished_at IS NULL
"""


async def heartbeat(conn: Connection, *, agent_id: AgentId) -> int:
    """Renew the heartbeat of an agent; no row if it was declared dead."""
    return int((await conn.execute(_HEARTBEAT, agent_id)).rpartition(" ")[2])


_FINISH_AGENT: Final = """
-- name: FinishAgent
UPDATE queue.agent SET finished_at = now() WHERE id = $1 AND finished_at IS NULL
"""


async def finish_agent(conn: Connection, *, agent_id: AgentId) -> None:
    """Mark an agent as finished."""
    await conn.execute(_FINISH_AGENT, agent_id)


_MARK_DEAD: Final = """
-- name: MarkDead
UPDATE queue.agent SET finished_at = now(), died = true
WHERE id = ANY ($1::bigint[]) AND finished_at IS NULL
"""


async def mark_dead(conn: Connection, *, agents: Sequence[int]) -> None:
    """Mark agents as dead."""
    await conn.execute(_MARK_DEAD, agents)


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
    """Agents without an end whose lock nobody holds."""
    return [row[0] for row in await conn.fetch(_UNLOCKED_AGENTS, lock_class)]


_ANY_AGENT: Final = """
-- name: AnyAgent
SELECT EXISTS (
    SELECT FROM queue.agent WHERE finished_at IS NULL AND $1::text = ANY (kinds)
) AS "alive!"
"""


async def any_agent(conn: Connection, *, kind: str) -> bool:
    """Whether a live agent runs this kind."""
    value: bool = await conn.fetchval(_ANY_AGENT, kind)
    return value


_LIST_AGENTS: Final = """
-- name: ListAgents
SELECT a.id, a.name, a.host, a.pid, a.capacity, a.kinds, a.started_at, a.heartbeat_at,
       a.finished_at, a.died,
       (SELECT count(*) FROM queue.lease l JOIN queue.leased d ON d.lease_id = l.id
        WHERE l.agent_id = a.id) AS "active!"
FROM queue.agent a
ORDER BY a.finished_at DESC NULLS FIRST, a.id DESC LIMIT $1::integer
"""


async def list_agents(conn: Connection, *, most: int) -> list[ListAgentsRow]:
    """Agents that live, then those that ended last, with how many tasks each has leased."""
    return [ListAgentsRow(*row) for row in await conn.fetch(_LIST_AGENTS, most)]


_LIST_DUTIES: Final = """
-- name: ListDuties
SELECT name, ran_at, took, did, error FROM queue.duty ORDER BY error IS NULL, name
"""


async def list_duties(conn: Connection) -> list[DutyRow]:
    """When each duty of maintenance last ran, and how it went."""
    return [DutyRow(*row) for row in await conn.fetch(_LIST_DUTIES)]
