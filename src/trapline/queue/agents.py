"""Agents: each worker process, alive as long as it holds its advisory lock."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, cast
from uuid import UUID, uuid4

from trapline.db.connection import LOST, OwnConnection
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.model import AgentId
from trapline.queue.sql import agents as queries

log = get_logger(__name__)

LOCK_CLASS: Final = 0x71_61_67  # "qag": our half of the advisory lock's key
HEARTBEAT: Final = 15.0
_PAUSE: Final = 0.5


@dataclass(slots=True)
class Agent:
    """This process, as others see it."""

    database: Database
    name: str
    capacity: int
    kinds: Sequence[str]
    user_agent: str | None = None
    uuid: UUID = field(default_factory=uuid4)
    id: AgentId = field(default=cast("AgentId", 0))
    _conn: "OwnConnection | None" = None
    _registered: asyncio.Event = field(default_factory=asyncio.Event)

    async def register(self) -> None:
        """Show this agent to others, however often the server goes away meanwhile."""
        while True:
            try:
                return await self._register()
            except LOST as error:
                log.warning("the agent cannot register yet", error=str(error))
                if self._conn is not None:
                    self._conn.terminate()
                await asyncio.sleep(_PAUSE)

    async def registered(self) -> None:
        """Wait until this agent has an id under which it can hold leases."""
        await self._registered.wait()

    async def _register(self) -> None:
        """Take the lock first, so that nobody ever sees this agent without it."""
        self._conn = await self.database.dedicated()
        self.id = AgentId(await queries.next_agent_id(self._conn))
        await self._lock(self._conn)
        await queries.register_agent(
            self._conn,
            agent_id=self.id,
            uuid=self.uuid,
            name=self.name,
            user_agent=self.user_agent,
            host=socket.gethostname(),
            pid=os.getpid(),
            capacity=self.capacity,
            kinds=list(self.kinds),
        )
        self._registered.set()
        log.info("agent started", agent=self.id, name=self.name)

    async def _lock(self, conn: OwnConnection) -> None:
        await conn.execute("SELECT pg_advisory_lock($1, $2)", LOCK_CLASS, int(self.id))

    async def keep_alive(self) -> None:
        """Hold the lock over restarts of the server; begin anew as another agent when buried."""
        while True:
            await asyncio.sleep(HEARTBEAT if self._alive() else 0.5)
            try:
                await self._beat()
            except (*LOST, DatabaseUnavailable) as error:
                log.warning("the agent lost its connection", agent=self.id, error=str(error))

    async def _locked(self) -> OwnConnection:
        """Open a connection that holds this agent's lock; one that does not get it is not left open."""
        conn = await self.database.dedicated()
        try:
            await self._lock(conn)
        except BaseException:
            conn.terminate()
            raise
        return conn

    def _alive(self) -> bool:
        return self._conn is not None and not self._conn.is_closed()

    async def _beat(self) -> None:
        if self._conn is None or self._conn.is_closed():
            self._conn = await self._locked()
        if not await queries.heartbeat(self._conn, agent_id=self.id):
            log.warning("this agent was taken for dead", agent=self.id)
            await self._conn.close()
            await self.register()

    async def finish(self) -> None:
        """Say goodbye and let the lock go."""
        if self._conn is None:
            return
        with suppress(*LOST):
            await queries.finish_agent(self._conn, agent_id=self.id)
            await self._conn.close()
        log.info("agent finished", agent=self.id)
