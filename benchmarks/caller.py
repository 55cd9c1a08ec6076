"""The leanest caller of an HTTP server: what it measures is the server's time, not its own."""

import asyncio
from typing import Final, Self
from urllib.parse import urlsplit

_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_ASKED: Final = (
    "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Content-Length: {length}\r\n\r\n"
)


class Caller:
    """Connections to one server; each carries one request at a time."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)
        self._free: list[_Line] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for line in self._free:
            line.transport.close()

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Ask, and return the status and the whole body."""
        # A server closes what was idle for some seconds.
        self._free = [line for line in self._free if not line.transport.is_closing()]
        line = self._free.pop() if self._free else await self._connect()
        head = _ASKED.format(path=path, host=self._place.netloc, length=len(body))
        answer = await line.ask(head.encode() + body)
        self._free.append(line)
        return answer

    async def _connect(self) -> "_Line":
        loop = asyncio.get_running_loop()
        place = self._place
        _, line = await loop.create_connection(_Line, place.hostname, place.port)
        return line


class _Line(asyncio.Protocol):
    """One connection. It reads what our server writes: a head with a length, and a body."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._came = bytearray()
        self._size = 0
        self._head = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bytes]]:
        self._answer = asyncio.get_running_loop().create_future()
        self._came.clear()
        self._head = b""
        self.transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._came += data
        if not self._head:
            end = self._came.find(_END)
            if end < 0:
                return
            self._head = bytes(self._came[:end]).lower()
            length = self._head.partition(_LENGTH)[2].partition(b"\r\n")[0]
            self._size = end + len(_END) + int(length)
        if len(self._came) >= self._size and self._answer is not None:
            status, body = int(self._head.split(b" ", 2)[1]), self._came[len(self._head) + 4 :]
            self._answer.set_result((status, bytes(body)))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(
                error or ConnectionError("The server closed the connection.")
            )
