"""One TCP connection: reads requests one after another and answers each from the page table."""

import asyncio
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import cast

from tests.site.answers import answer
from tests.site.disturbance import disturbed
from tests.site.log import Entry, Log
from tests.site.message import BadRequest, Request, Response, parse_head
from tests.site.page import Page, Perform
from tests.site.state import State
from tests.site.wire import Wire

Find = Callable[[Request], Page]

_MOST_HEAD_BYTES = 1 << 20
_numbers = count(1)


class Connection(asyncio.Protocol):
    """Plain pages are answered at once from `data_received`; behaviours run as a task."""

    def __init__(
        self, find: Find, log: Log, state: State, live: set["Connection"], scheme: str = "http"
    ) -> None:
        self._find = find
        self._log = log
        self._state = state
        self._live = live
        self._scheme = scheme
        self._number = next(_numbers)
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._wire: Wire | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._live.add(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._live.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        if self._wire is not None:
            self._wire.pause()

    def resume_writing(self) -> None:
        if self._wire is not None:
            self._wire.resume()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._proceed()

    def abort(self) -> None:
        self._transport.abort()

    def _proceed(self) -> None:
        try:
            while self._task is None and (request := self._take()) is not None:
                self._serve(request)
        except BadRequest:
            self._transport.write(Response(400, b"Bad request.").encode(close=True))
            self._transport.close()

    def _take(self) -> Request | None:
        """Return the next complete request of the buffer, if there is one."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEAD_BYTES:
                raise BadRequest("too long")
            return None
        request = parse_head(bytes(self._buffer[:end]), self._scheme)
        length = int(request.headers.get("content-length", "0"))
        if len(self._buffer) < end + 4 + length:
            return None
        request.body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        return request

    def _serve(self, request: Request) -> None:
        entry = self._log.open(request, self._number)
        page = self._find(request)
        fault = next((fault for fault in self._state.faults if fault.applies(request)), None)
        if fault is not None:
            page = disturbed(page, fault)
        if page.perform is None:
            self._reply(answer(page, request, self._state), request, entry)
        else:
            self._wire = Wire(self._transport, entry)
            self._start(page.perform, request, self._wire, entry)

    def _reply(self, response: Response, request: Request, entry: Entry) -> None:
        close = not request.keeps_alive
        data = response.encode(head_only=request.method == "HEAD", close=close)
        self._transport.write(data)
        entry.status, entry.sent, entry.finished = response.status, len(data), monotonic()
        if close:
            self._transport.close()

    def _start(self, perform: Perform, request: Request, wire: Wire, entry: Entry) -> None:
        work = self._perform(perform, request, wire, entry)
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(lambda task: self._done(task, request, wire))

    async def _perform(self, perform: Perform, request: Request, wire: Wire, entry: Entry) -> None:
        try:
            await perform(request, wire, self._state)
        except (ConnectionError, asyncio.CancelledError):
            # The client left: for endless answers that is the only way to end.
            entry.aborted = True
            self._transport.abort()
        finally:
            entry.finished = monotonic()

    def _done(self, task: asyncio.Task[None], request: Request, wire: Wire) -> None:
        self._task = self._wire = None
        if not task.cancelled():
            task.result()
        if self._transport.is_closing():
            return
        if wire.closing or not request.keeps_alive:
            self._transport.close()
        else:
            self._proceed()
