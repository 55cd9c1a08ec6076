"""Agents: one for each worker process, alive as long as it holds its advisory lock."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, cast
from uuid import uuid4

import asyncpg

from trapline.db.connection import LOST, OwnConnection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.model import AgentId
from trapline.queue.sql import agents as queries

log = get_logger(__name__)

LOCK_CLASS: Final = 0x71_61_67  # "qag": our half of the advisory lock's key
HEARTBEAT: Final = 15.0
_RETRY_PAUSE: Final = 0.5


@dataclass(slots=True)
class Agent:
    """The agent of this process."""

    database: Database
    name: str
    capacity: int
    kinds: Sequence[str]
    user_agent: str | None = None
    id: AgentId = field(default=cast("AgentId", 0))
    _conn: "OwnConnection | None" = None
    # Set when the connection that holds the lock is closed.
    _lost: asyncio.Event = field(default_factory=asyncio.Event)
    _registered: asyncio.Event = field(default_factory=asyncio.Event)

    async def register(self) -> None:
        """Register this agent, retrying while the server is unavailable."""
        while True:
            try:
                return await self._register()
            except LOST as error:
                log.warning("the agent cannot register yet", error=str(error))
                await asyncio.sleep(_RETRY_PAUSE)

    async def wait_registered(self) -> None:
        """Wait until this agent has an id under which it can hold leases."""
        await self._registered.wait()

    async def _register(self) -> None:
        """Take the lock before the row is visible, so that the agent never seems dead."""
        conn = await self.database.dedicated("agent")
        try:
            agent_id = AgentId(await queries.next_agent_id(conn))
            await _lock(conn, agent_id)
            await queries.register_agent(
                conn,
                agent_id=agent_id,
                # Another one each time: the row of an agent that was declared dead stays.
                uuid=uuid4(),
                name=self.name,
                user_agent=self.user_agent,
                host=socket.gethostname(),
                pid=os.getpid(),
                capacity=self.capacity,
                kinds=list(self.kinds),
            )
        except BaseException:
            conn.terminate()
            raise
        self.id = agent_id
        self._adopt(conn)
        self._registered.set()
        log.info("agent started", agent=self.id, name=self.name)

    def _adopt(self, conn: OwnConnection) -> None:
        """Keep the connection that holds the lock, and notice its end at once."""
        lost = asyncio.Event()
        conn.add_termination_listener(lambda _: lost.set())
        if conn.is_closed():
            lost.set()
        self._conn, self._lost = conn, lost

    async def keep_alive(self) -> None:
        """Keep the lock over restarts of the server; register as a new agent if this one was declared dead."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    await self._lost.wait()
            try:
                await self._heartbeat()
            except (*LOST, DatabaseUnavailable, asyncpg.PostgresError) as error:
                log.warning("the agent lost its connection", agent=self.id, error=str(error))
                await asyncio.sleep(_RETRY_PAUSE)

    async def _connect_locked(self) -> OwnConnection:
        """Open a connection that holds this agent's lock; without the lock it is closed."""
        conn = await self.database.dedicated("agent")
        try:
            await _lock(conn, self.id)
        except BaseException:
            conn.terminate()
            raise
        return conn

    async def _heartbeat(self) -> None:
        if self._conn is None or self._conn.is_closed():
            self._adopt(await self._connect_locked())
        conn = self._conn
        if conn is not None and not await queries.heartbeat(conn, agent_id=self.id):
            log.warning("this agent was declared dead", agent=self.id)
            await conn.close()
            await self.register()

    async def finish(self) -> None:
        """Mark the agent as finished and release its lock."""
        if self._conn is None:
            return
        with suppress(*LOST, asyncpg.PostgresError):
            await queries.finish_agent(self._conn, agent_id=self.id)
            await self._conn.close()
        log.info("agent finished", agent=self.id)


async def _lock(conn: OwnConnection, agent_id: AgentId) -> None:
    await conn.execute("SELECT pg_advisory_lock($1, $2)", LOCK_CLASS, int(agent_id))
