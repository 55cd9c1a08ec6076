"""A sticky connection for single statements.

Acquiring a connection from the pool and releasing it costs as much as a short statement. So the
connection of the last statement is kept for the next one, as long as they follow each other closely.
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

# Seconds after which a kept connection that is not used is released.
_IDLE: Final = 0.1
# Seconds after which it is released in any case: the pool replaces connections by age.
_LONGEST: Final = 10.0
# A smaller pool has no connection to spare.
_SMALLEST_POOL: Final = 4

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
T = TypeVar("T")


class StickyConnection:
    """Runs statements in autocommit on the kept connection, or on another one of the pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: _Lent | None = None
        self._used = False
        self._idle_check: asyncio.TimerHandle | None = None
        self._releases: set[asyncio.Task[None]] = set()
        self._closed = False

    async def run(self, statement: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a statement; if it raises, its connection is not kept."""
        lent, self._kept = self._kept, None
        if lent is None:
            lent = _Lent(await self._pool.acquire(), asyncio.get_running_loop().time() + _LONGEST)
        try:
            result = await statement(lent.conn)
        except BaseException:
            await self._pool.release(lent.conn)
            raise
        self._keep(lent)
        return result

    async def aclose(self) -> None:
        """Release the kept connection; from now on none is kept."""
        self._closed = True
        if self._idle_check is not None:
            self._idle_check.cancel()
        self._release_kept()
        if self._releases:
            await asyncio.wait(self._releases)

    def _keep(self, lent: "_Lent") -> None:
        loop = asyncio.get_running_loop()
        late = loop.time() > lent.until
        if self._kept is not None or self._closed or late or not self._can_be_spared():
            self._release(lent)
            return
        self._kept, self._used = lent, True
        if self._idle_check is None:
            self._idle_check = loop.call_later(_IDLE, self._release_if_idle)

    def _can_be_spared(self) -> bool:
        """Tell whether the pool has connections left for others."""
        pool = self._pool
        most = pool.get_max_size()
        return most >= _SMALLEST_POOL and (pool.get_size() < most or pool.get_idle_size() > 0)

    def _release_if_idle(self) -> None:
        """Keep the connection if it was used since the last check."""
        self._idle_check = None
        if self._used:
            self._used = False
            self._idle_check = asyncio.get_running_loop().call_later(_IDLE, self._release_if_idle)
        else:
            self._release_kept()

    def _release_kept(self) -> None:
        lent, self._kept = self._kept, None
        if lent is not None:
            self._release(lent)

    def _release(self, lent: "_Lent") -> None:
        """Release a connection in the background: the caller already has its result."""
        release = asyncio.create_task(self._release_now(lent))
        self._releases.add(release)
        release.add_done_callback(self._releases.discard)

    async def _release_now(self, lent: "_Lent") -> None:
        with suppress(*LOST):
            await self._pool.release(lent.conn)


@dataclass(frozen=True, slots=True)
class _Lent:
    conn: "PoolConnectionProxy[asyncpg.Record]"
    until: float
