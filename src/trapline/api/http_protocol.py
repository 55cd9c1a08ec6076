"""HTTP/1 protocol for uvicorn: bounds a request's head, which httptools does not, and writes a
response's head and body with one system call.
"""

import asyncio
import os
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD: Final = 64 * 1024
"""Most bytes of a request's first line and headers."""

_ANSWER: Final = b"HTTP/1."


class JoiningTransport:
    """A transport that holds a response's head back until its body comes, or until the next loop cycle.

    Every write is a system call and wakes the reader; uvicorn writes head and body apart. With the
    file descriptor of its socket, a whole response is written at once: uvloop would write it at the
    end of the loop cycle, behind all other work.
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
            # A stream's body may come much later; its head must not wait for it.
            self._loop.call_soon(self.flush)
        else:
            self._transport.write(data)

    def _send(self, head: bytes, body: bytes) -> None:
        transport, sent = self._transport, 0
        if self._file is not None and not (
            transport.is_closing() or transport.get_write_buffer_size()
        ):
            # The transport writes the rest, or raises the error.
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
    """Refuses a request whose head is too large before it fills the memory."""

    _head: int | None = None
    """Bytes received of an unfinished head."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # Under TLS only the transport may write to the socket.
        plain = transport.get_extra_info("sslcontext") is None
        file = transport.get_extra_info("socket").fileno() if plain else None
        super().connection_made(JoiningTransport(transport, file))  # type: ignore[arg-type]

    def handle_websocket_upgrade(self) -> None:
        # The WebSocket protocol takes the transport over.
        joined = self.transport
        if isinstance(joined, JoiningTransport):
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
