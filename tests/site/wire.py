"""The socket of one connection, for behaviours that no HTTP library would let you write."""

import asyncio
import socket
import struct
from collections.abc import Iterable

from tests.site.log import Entry
from tests.site.message import Headers, Response, reason


class Wire:
    """Writes bytes as given, waits for the client to take them, and can end rudely."""

    def __init__(self, transport: asyncio.Transport, entry: Entry) -> None:
        self._transport = transport
        self._entry = entry
        self._writable = asyncio.Event()
        self._writable.set()
        self.closing = False

    def pause(self) -> None:
        self._writable.clear()

    def resume(self) -> None:
        self._writable.set()

    async def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError
        self._transport.write(data)
        self._entry.sent += len(data)
        await self._writable.wait()

    async def head(self, status: int = 200, headers: Headers = ()) -> None:
        """Begin an answer whose headers are exactly these."""
        self.status(status)
        lines = [f"HTTP/1.1 {status} {reason(status)}", *(f"{n}: {v}" for n, v in headers)]
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def send(self, response: Response, *, head_only: bool = False) -> None:
        self.status(response.status)
        await self.write(response.encode(head_only=head_only))

    async def drip(self, pieces: Iterable[bytes], seconds: float) -> None:
        """Write the pieces with a pause before each."""
        for piece in pieces:
            await asyncio.sleep(seconds)
            await self.write(piece)

    def status(self, status: int) -> None:
        """Note in the log what the client was told."""
        self._entry.status = status

    def close(self) -> None:
        """Send what is written, then FIN; the connection is not used again."""
        self.closing = True
        self._transport.close()

    def reset(self) -> None:
        """Send RST: the client sees "connection reset by peer"."""
        self.closing = True
        sock: socket.socket = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
