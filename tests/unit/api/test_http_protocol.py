"""Requests as they come off the wire: heads without end, and what comes in pieces."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest
import uvicorn
import uvloop

from trapline.api.http_protocol import MOST_HEAD, BoundedProtocol, JoiningTransport


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with how many bytes the body has."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    headers = [(b"content-length", str(len(str(size))).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": str(size).encode()})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_echo, http=BoundedProtocol, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await running


async def _answer(port: int, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        return await asyncio.wait_for(reader.read(4096), 20)
    finally:
        writer.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * MOST_HEAD,
        b"GET / HTTP/1.1\r\nX-Long: " + b"a" * MOST_HEAD,
        b"GET / HTTP/1.1\r\n" + b"X-Many: a\r\n" * (MOST_HEAD // 10),
    ],
)
async def test_a_head_without_end_is_refused(port: int, head: bytes) -> None:
    assert (await _answer(port, head)).startswith(b"HTTP/1.1 400")


async def test_a_body_may_be_longer_than_any_head(port: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (3 * MOST_HEAD)
    answer = await _answer(port, head[:10], head[10:], *[b"b" * MOST_HEAD] * 3)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(str(3 * MOST_HEAD).encode())


async def test_the_second_request_of_a_connection_is_counted_anew(port: int) -> None:
    one = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (MOST_HEAD * 3 // 4) + b"\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(one)
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n0"), 20)).startswith(
            b"HTTP/1.1 200"
        )
    writer.close()


class _Wire:
    """Notes what is written at once."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.written.append(b"".join(pieces))

    def close(self) -> None:
        self.written.append(b"closed")

    def is_closing(self) -> bool:
        return b"closed" in self.written


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


async def test_a_head_and_a_body_that_is_there_are_written_at_once() -> None:
    wire = _Wire()
    joined = JoiningTransport(cast("asyncio.Transport", wire))
    joined.write(HEAD)
    assert wire.written == []
    joined.write(b"body")
    joined.write(b"more")
    await asyncio.sleep(0)
    assert wire.written == [HEAD + b"body", b"more"]


async def test_the_head_of_a_stream_does_not_wait_for_its_body() -> None:
    wire = _Wire()
    joined = JoiningTransport(cast("asyncio.Transport", wire))
    joined.write(HEAD)
    await asyncio.sleep(0)
    assert wire.written == [HEAD]
    joined.write(b"much later")
    assert wire.written == [HEAD, b"much later"]


async def test_an_answer_without_a_body_is_written_before_the_end() -> None:
    wire = _Wire()
    joined = JoiningTransport(cast("asyncio.Transport", wire))
    joined.write(HEAD)
    joined.close()
    assert wire.written == [HEAD, b"closed"]
    assert joined.is_closing()


async def _sent(theirs: socket.socket, size: int) -> bytes:
    async with asyncio.timeout(60):
        came = b""
        while len(came) < size:
            came += await asyncio.get_running_loop().sock_recv(theirs, 2**16)
        return came


async def _joined(ours: socket.socket) -> JoiningTransport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    return JoiningTransport(transport, transport.get_extra_info("socket").fileno())


def test_a_whole_answer_is_on_its_way_before_the_loop_turns() -> None:
    """As it does with asyncio's own loop; the server's is another."""
    uvloop.run(_answered_at_once())


async def _answered_at_once() -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    with ours, theirs:
        joined = await _joined(ours)
        joined.write(HEAD)
        joined.write(b"body")
        assert theirs.recv(100) == HEAD + b"body"
        joined.close()


async def test_an_answer_that_does_not_fit_comes_whole_and_in_order() -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    large = bytes(range(256)) * 2**13
    with ours, theirs:
        joined = await _joined(ours)
        for _ in range(3):
            joined.write(HEAD)
            joined.write(large)
        wanted = (HEAD + large) * 3
        assert await _sent(theirs, len(wanted)) == wanted
        joined.close()


async def test_an_answer_to_someone_who_is_gone_is_no_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        joined = await _joined(ours)
        theirs.close()
        joined.write(HEAD)
        joined.write(b"body")
        await asyncio.sleep(0)
        joined.close()
