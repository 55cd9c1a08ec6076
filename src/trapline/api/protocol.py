"""How requests are read off the wire, by httptools, which itself bounds nothing before the body; and
how answers are put on it: the head and a body that is there already in one piece.
"""

import asyncio
import os
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD: Final = 64 * 1024
"""Bytes of a request's first line and headers; one that has more is refused."""

_ANSWER: Final = b"HTTP/1."


class Joined:
    """A transport that keeps the head of an answer until its body comes, or the loop turns.

    Every write is a system call and wakes whoever reads; uvicorn makes one of each. Given the file of
    its socket, a whole answer goes there at once: uvloop writes when the loop turns, and until then an
    answer would wait for everything that is done after it.
    """

    __slots__ = ("_file", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, file: int | None = None) -> None:
        self._transport = transport
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._send(head, data)
        elif data.startswith(_ANSWER):
            self._head = data
            # The body of a stream comes whenever there is something to tell; its head goes at once.
            self._loop.call_soon(self.flush)
        else:
            self._transport.write(data)

    def _send(self, head: bytes, body: bytes) -> None:
        transport, sent = self._transport, 0
        if self._file is not None and not (
            transport.is_closing() or transport.get_write_buffer_size()
        ):
            # What does not go now, or not at all, is the transport's to write, or to fail with.
            with suppress(OSError):
                sent = os.writev(self._file, (head, body))
        if not sent:
            transport.writelines((head, body))
        elif sent < len(head) + len(body):
            transport.write((head + body)[sent:])

    def flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        self.flush()
        self._transport.close()


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a request whose head goes on and on, before it fills the memory."""

    _head: int | None = None
    """How much of an unfinished head has come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # What TLS encrypts goes through its transport alone.
        plain = transport.get_extra_info("sslcontext") is None
        file = transport.get_extra_info("socket").fileno() if plain else None
        super().connection_made(Joined(transport, file))  # type: ignore[arg-type]

    def handle_websocket_upgrade(self) -> None:
        # What comes next is a protocol of its own.
        joined = self.transport
        if isinstance(joined, Joined):
            joined.flush()
            self.transport = joined._transport  # noqa: SLF001 (the same module)
        super().handle_websocket_upgrade()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is None or self.transport.is_closing():
            return
        self._head += len(data)
        if self._head > MOST_HEAD:
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()
