"""The running site: a thread with its own event loop, listeners, and the handle tests hold."""

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

import uvloop

from tests.site.build import build
from tests.site.connection import Connection, Find
from tests.site.log import Log
from tests.site.message import Request
from tests.site.page import Page
from tests.site.state import State

if TYPE_CHECKING:
    from tests.site.atlas import Atlas

T = TypeVar("T")
_START_SECONDS = 30.0


class Server:
    """Owns the loop, the sockets and what they share. Its methods may be called from any thread."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.address = address
        self.port = port
        self.log = Log()
        self.state = State()
        self.errors: list[BaseException] = []
        self.atlas: Atlas
        self._connections: set[Connection] = set()
        self._listeners: dict[int, asyncio.Server] = {}
        self._loop = uvloop.new_event_loop()
        self._loop.set_exception_handler(self._note)
        self._thread = threading.Thread(target=self._loop.run_forever, name="site", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.port = self.listen(self.port)
        self.atlas = build(self.port)

    def stop(self) -> None:
        for port in list(self._listeners):
            self.unlisten(port)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def listen(
        self, port: int = 0, context: ssl.SSLContext | None = None, find: Find | None = None
    ) -> int:
        """Open a further port. With a context it speaks TLS; with a `find` it serves other pages."""

        def connection() -> Connection:
            if find is not None:
                # Nothing of this is the site's: not its log, not what a reset cuts off.
                return Connection(find, Log(limit=0), State(), set())
            scheme = "http" if context is None else "https"
            return Connection(self.find, self.log, self.state, self._connections, scheme)

        async def open_listener() -> int:
            listener = await self._loop.create_server(
                connection, self.address, port, ssl=context, backlog=1024
            )
            # uvloop's server is not asyncio's, but has the same attributes.
            server = cast("asyncio.Server", listener)
            number: int = server.sockets[0].getsockname()[1]
            self._listeners[number] = server
            return number

        return self.run(open_listener())

    def unlisten(self, port: int) -> None:
        """Close a port and every connection: clients are refused."""

        async def close() -> None:
            self._listeners.pop(port).close()
            self._abort()

        self.run(close())

    def listens(self, port: int) -> bool:
        return port in self._listeners

    def find(self, request: Request) -> Page:
        return self.atlas.find(request.host, request.target)

    def reset(self) -> None:
        """Return to the state of a fresh start: no faults, no changes, no log, no connections."""

        async def clear() -> None:
            self._abort()
            # Connections learn of their end in the next turn; only then is the log theirs no more.
            await asyncio.sleep(0)
            self.state.clear()
            self.atlas.restore()
            self.log.clear()
            self.errors.clear()

        self.run(clear())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_SECONDS)

    def _abort(self) -> None:
        for connection in list(self._connections):
            connection.abort()

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Keep what went wrong inside the site, so that a test fails for it."""
        error = context.get("exception")
        self.errors.append(error or RuntimeError(context.get("message", "unknown")))
