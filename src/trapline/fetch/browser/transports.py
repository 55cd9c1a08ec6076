"""Transports of the DevTools protocol: a socket pair to our own process, or a WebSocket to another's."""

import asyncio
import socket
from contextlib import suppress
from typing import Final

import aiohttp

from trapline.errors import Unavailable
from trapline.fetch.browser.connection import Connection

_CHUNK: Final = 2**20
_MAX_MESSAGE: Final = 256 * 2**20
_CONNECT_SECONDS: Final = 10.0


class PipeTransport:
    """Messages end with a zero byte, over a socket pair that Chromium has as its pipe."""

    def __init__(self, connection: Connection, end: socket.socket) -> None:
        self._connection = connection
        self._socket = end
        self._loop = asyncio.get_running_loop()
        self._incoming = bytearray()
        self._outgoing = bytearray()
        end.setblocking(False)  # noqa: FBT003 (the standard library's signature)
        self._loop.add_reader(end, self._read)

    def send(self, message: bytes) -> None:
        idle = not self._outgoing
        self._outgoing += message
        self._outgoing.append(0)
        if idle:
            self._flush()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()

    def _flush(self) -> None:
        try:
            del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self._lose()
            return
        if self._outgoing:
            self._loop.add_writer(self._socket, self._flush)
        else:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or len(self._incoming) > _MAX_MESSAGE:
            self._lose()
            return
        self._incoming += data
        if 0 not in data:
            return
        *messages, rest = bytes(self._incoming).split(b"\0")
        self._incoming = bytearray(rest)
        for message in messages:
            self._connection.receive(message)

    def _lose(self) -> None:
        self.close()
        self._connection.lost()


class WebSocketTransport:
    """Messages to a browser that somebody else runs."""

    def __init__(self, connection: Connection, session: aiohttp.ClientSession) -> None:
        self._connection = connection
        self._session = session
        self._tasks: list[asyncio.Task[None]] = []
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()

    @classmethod
    async def connect(cls, connection: Connection, url: str) -> "WebSocketTransport":
        session = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                stream = await session.ws_connect(url, max_msg_size=_MAX_MESSAGE, compress=0)
        except (aiohttp.ClientError, OSError) as error:
            await session.close()
            raise Unavailable(f"The browser at {url} does not answer: {error}.") from error
        transport = cls(connection, session)
        transport._tasks = [
            asyncio.create_task(transport._read(stream)),
            asyncio.create_task(transport._write(stream)),
        ]
        return transport

    def send(self, message: bytes) -> None:
        self._outgoing.put_nowait(message)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = [asyncio.create_task(self._session.close())]

    async def _read(self, stream: aiohttp.ClientWebSocketResponse) -> None:
        async for message in stream:
            if message.type is aiohttp.WSMsgType.TEXT:
                self._connection.receive(message.data.encode())
        self._connection.lost()

    async def _write(self, stream: aiohttp.ClientWebSocketResponse) -> None:
        with suppress(ConnectionError, aiohttp.ClientError):
            while True:
                await stream.send_str((await self._outgoing.get()).decode())
        self._connection.lost()
