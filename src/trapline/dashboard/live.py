"""Live views: each is rendered once for all open tabs and sent as server-sent events.

A message holds the whole state of the live parts, so a tab that comes back after a break needs no
history. The number of queries depends on how many different views are open, not on how many tabs.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import msgspec

from trapline.db.connection import LOST
from trapline.db.pool import Database
from trapline.db.sql import sessions as queries
from trapline.errors import DatabaseUnavailable, NotFound
from trapline.logs import get_logger

log = get_logger(__name__)

_LEAST_PAUSE: Final = 0.5
_HEARTBEAT: Final = 15.0
_SESSION_CHECK: Final = 5.0
HEARTBEAT_MESSAGE: Final = b": nothing new\n\n"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The live parts of a view; `final` when nothing will change any more."""

    html: str
    final: bool = False


Render = Callable[[], Awaitable[Rendered]]
Signals = Callable[[], AsyncIterator[object]]


@dataclass(slots=True)
class _Broadcast:
    """One live view: its latest state, and the task that renders it while somebody looks."""

    render: Render
    pause: float
    number: int = 0
    message: bytes = b""
    final: bool = False
    subscribers: int = 0
    due: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def wake(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def publish(self, event: str, data: object, *, final: bool = False) -> None:
        message = b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(data))
        if message != self.message or final:
            self.number += 1
            self.message, self.final = message, final
            self.wake()

    async def render_forever(self) -> None:
        while not self.final:
            self.due.clear()
            try:
                rendered = await self.render()
                self.publish("parts", rendered.html, final=rendered.final)
            except NotFound:
                self.publish("gone", "", final=True)
            except (*LOST, DatabaseUnavailable) as error:
                log.warning("a live view waits for PostgreSQL", error=str(error))
                self.publish("offline", "The database does not answer; trying again.")
            await asyncio.sleep(_LEAST_PAUSE)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pause):
                    await self.due.wait()

    async def follow(self, signals: Signals) -> None:
        async for _ in signals():
            self.due.set()

    def start(self, signals: Signals | None) -> None:
        self.tasks = [asyncio.create_task(self.render_forever(), name="live view")]
        if signals is not None:
            self.tasks.append(asyncio.create_task(self.follow(signals), name="live signals"))

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


@dataclass(slots=True)
class LiveViews:
    """The live views of this process."""

    database: Database
    _views: dict[Hashable, _Broadcast] = field(default_factory=dict)
    _sessions: dict[UUID, int] = field(default_factory=dict)
    _ended: set[UUID] = field(default_factory=set)
    _checker: asyncio.Task[None] | None = None

    async def stream(
        self,
        key: Hashable,
        render: Render,
        *,
        session: UUID | None,
        pause: float,
        signals: Signals | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the messages of one tab, until the view is final or the session has ended."""
        view = self._open(key, render, pause, signals)
        self._watch(session)
        seen = 0
        try:
            while session not in self._ended:
                changed = view.changed
                if view.number > seen:
                    seen = view.number
                    yield b"id: %d\n%b" % (seen, view.message)
                    if view.final:
                        yield b"event: end\ndata: \n\n"
                        return
                    continue
                try:
                    async with asyncio.timeout(_HEARTBEAT):
                        await changed.wait()
                except TimeoutError:
                    yield HEARTBEAT_MESSAGE
            yield b"event: signed-out\ndata: \n\n"
        finally:
            self._unwatch(session)
            self._close(key, view)

    def _open(
        self, key: Hashable, render: Render, pause: float, signals: Signals | None
    ) -> _Broadcast:
        view = self._views.get(key)
        if view is None or view.final:
            view = self._views[key] = _Broadcast(render, pause)
            view.start(signals)
        view.subscribers += 1
        return view

    def _close(self, key: Hashable, view: _Broadcast) -> None:
        view.subscribers -= 1
        if not view.subscribers:
            view.stop()
            if self._views.get(key) is view:
                del self._views[key]

    def _watch(self, session: UUID | None) -> None:
        if session is None:
            return
        self._sessions[session] = self._sessions.get(session, 0) + 1
        if self._checker is None or self._checker.done():
            self._checker = asyncio.create_task(self._check_sessions(), name="session check")

    def _unwatch(self, session: UUID | None) -> None:
        if session is None:
            return
        self._sessions[session] -= 1
        if not self._sessions[session]:
            del self._sessions[session]
            self._ended.discard(session)

    async def _check_sessions(self) -> None:
        """Find sessions that were revoked while they stream: one query for all of them."""
        while self._sessions:
            with suppress(*LOST, DatabaseUnavailable):
                open_ids = list(self._sessions)
                live = await self.database.run_statement(
                    lambda conn, ids=open_ids: queries.live_sessions(conn, ids=ids)  # type: ignore[misc]
                )
                self._end(set(open_ids) - set(live))
            await asyncio.sleep(_SESSION_CHECK)

    def _end(self, ended: set[UUID]) -> None:
        if ended:
            self._ended |= ended & self._sessions.keys()
            for view in self._views.values():
                view.wake()
