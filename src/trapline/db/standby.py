"""A connection that stands by for single statements.

To take a connection from the pool and to give it back costs as much as a short statement itself. So the
one that the last statement ran on is kept for the next, while they follow each other closely.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import asyncpg

from trapline.db.connection import LOST, Connection

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# Nobody waits longer than this for a connection that is kept and not used.
_IDLE: Final = 0.1
# After so long it goes back in any case: the pool replaces connections by their age.
_LONGEST: Final = 10.0
# A pool that is smaller has none to spare.
_FEW: Final = 4

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
T = TypeVar("T")


class Standby:
    """Runs statements of one pool, each its own transaction, on the connection that is kept or another."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: _Lent | None = None
        self._used = False
        self._look: asyncio.TimerHandle | None = None
        self._going: set[asyncio.Task[None]] = set()
        self._closed = False

    async def run(self, statement: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a statement; whatever it raises is raised, and its connection is not kept."""
        lent, self._kept = self._kept, None
        if lent is None:
            lent = _Lent(await self._pool.acquire(), asyncio.get_running_loop().time() + _LONGEST)
        try:
            answer = await statement(lent.conn)
        except BaseException:
            await self._pool.release(lent.conn)
            raise
        self._keep(lent)
        return answer

    async def aclose(self) -> None:
        """Give back what is kept; from now on nothing is."""
        self._closed = True
        if self._look is not None:
            self._look.cancel()
        self._give_back()
        if self._going:
            await asyncio.wait(self._going)

    def _keep(self, lent: "_Lent") -> None:
        loop = asyncio.get_running_loop()
        late = loop.time() > lent.until
        if self._kept is not None or self._closed or late or not self._can_be_spared():
            self._release(lent)
            return
        self._kept, self._used = lent, True
        if self._look is None:
            self._look = loop.call_later(_IDLE, self._look_after)

    def _can_be_spared(self) -> bool:
        """Whether there are others for those who come meanwhile."""
        pool = self._pool
        most = pool.get_max_size()
        return most >= _FEW and (pool.get_size() < most or pool.get_idle_size() > 0)

    def _look_after(self) -> None:
        """Keep it as long as it was used since the last look."""
        self._look = None
        if self._used:
            self._used = False
            self._look = asyncio.get_running_loop().call_later(_IDLE, self._look_after)
        else:
            self._give_back()

    def _give_back(self) -> None:
        lent, self._kept = self._kept, None
        if lent is not None:
            self._release(lent)

    def _release(self, lent: "_Lent") -> None:
        """Give a connection back; whoever has their answer does not wait for that."""
        going = asyncio.create_task(self._released(lent))
        self._going.add(going)
        going.add_done_callback(self._going.discard)

    async def _released(self, lent: "_Lent") -> None:
        with suppress(*LOST):
            await self._pool.release(lent.conn)


@dataclass(frozen=True, slots=True)
class _Lent:
    conn: "PoolConnectionProxy[asyncpg.Record]"
    until: float
