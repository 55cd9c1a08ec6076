"""Servers that send too much, too little, too slowly or for ever."""

import asyncio
import gzip
import socket
import struct

import psutil
import pytest

from tests.support.origin_server import Client, Perform, Serve, client, hurried, page
from trapline.errors import ExitCode
from trapline.model import FetchLimits

OK = b"HTTP/1.1 200 OK\r\n"
LIMITS = FetchLimits(body_bytes=100_000, decompressed_bytes=200_000, header_bytes=8_000)


def says(*parts: bytes, reset: bool = False, again: float | None = None) -> Perform:
    """Write parts; then close, or reset, or repeat the last one for ever every `again` seconds."""

    async def perform(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        while again is not None:
            await asyncio.sleep(again)
            writer.write(parts[-1])
            await writer.drain()
        if reset:
            await asyncio.sleep(0.05)
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return perform


async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def code_of(serve: Serve, fetch: Client, answer: Perform, limits: FetchLimits) -> ExitCode:
    origin = await serve({"/a": answer})
    got = await fetch(origin.url("/a"), limits=limits)
    await origin.until(connected=0)
    assert got.body == b""
    assert got.requests[-1].exit_code is got.exit_code
    return got.exit_code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (says(OK + b"Content-Length: 10000000000\r\n\r\n" + b"x" * 1000), ExitCode.BODY_TOO_LARGE),
        (says(OK + b"\r\n", b"x" * 65536, again=0), ExitCode.BODY_TOO_LARGE),
        (
            says(
                OK + b"Transfer-Encoding: chunked\r\n\r\n",
                b"10000\r\n" + b"x" * 65536 + b"\r\n",
                again=0,
            ),
            ExitCode.BODY_TOO_LARGE,
        ),
        (
            says(page(gzip.compress(bytes(50_000_000)), Content_Encoding="gzip")),
            ExitCode.DECOMPRESSED_TOO_LARGE,
        ),
        (says(page(gzip.compress(b"x" * 999)[:-9], Content_Encoding="gzip")), ExitCode.TRUNCATED),
        (says(page(b"not gzip at all", Content_Encoding="gzip")), ExitCode.MALFORMED_RESPONSE),
        (says(OK + b"Content-Length: 50\r\n\r\nshort"), ExitCode.TRUNCATED),
        (says(OK + b"Content-Length: 50\r\n\r\nshort", reset=True), ExitCode.TRUNCATED),
        (says(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"), ExitCode.TRUNCATED),
        (says(OK + b"Connection: close\r\n\r\n", b"cut", reset=True), ExitCode.TRUNCATED),
        (says(OK + b"X-Long: " + b"x" * 50_000 + b"\r\n\r\n"), ExitCode.HEADERS_TOO_LARGE),
        (
            says(OK + b"".join(b"X-%d: %b\r\n" % (n, b"y" * 99) for n in range(100)) + b"\r\n"),
            ExitCode.HEADERS_TOO_LARGE,
        ),
        (says(OK, b"X-More: more\r\n" * 1000, again=0), ExitCode.HEADERS_TOO_LARGE),
        (hang, ExitCode.FIRST_BYTE_TIMEOUT),
        (says(OK, b"X-Patience: please\r\n", again=0.1), ExitCode.FIRST_BYTE_TIMEOUT),
        (says(OK + b"Content-Length: 1000\r\n\r\n", b"x", again=0.1), ExitCode.TOTAL_TIMEOUT),
        (says(reset=True), ExitCode.CONNECTION_RESET),
        (says(), ExitCode.CONNECTION_RESET),
        (says(b"SSH-2.0-OpenSSH_9.0\r\n"), ExitCode.MALFORMED_RESPONSE),
        (says(b"HTTP/1.1 fine OK\r\n\r\n"), ExitCode.MALFORMED_RESPONSE),
        (says(OK + b"no header\r\n\r\n"), ExitCode.MALFORMED_RESPONSE),
        (
            says(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\nx\r\n"),
            ExitCode.MALFORMED_RESPONSE,
        ),
        (says(bytes(range(256)) * 10), ExitCode.MALFORMED_RESPONSE),
    ],
)
async def test_bad_answers(serve: Serve, fetch: Client, answer: Perform, code: ExitCode) -> None:
    assert await code_of(serve, fetch, answer, hurried(LIMITS, code)) is code


async def test_a_body_without_length_ends_with_its_connection(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": says(OK + b"\r\n", b"all of it")})
    got = await fetch(origin.url("/a"), limits=LIMITS)
    assert (got.exit_code, got.body) == (ExitCode.CONTENT, b"all of it")


async def test_names_that_never_resolve() -> None:
    async def lookup(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(3600)
        return []

    async with client(lookup=lookup) as fetch:
        for code in (ExitCode.CONNECT_TIMEOUT, ExitCode.TOTAL_TIMEOUT):
            got = await fetch("http://slow.test/", limits=hurried(LIMITS, code))
            assert got.exit_code is code


async def test_total_time_spans_all_hops(serve: Serve, fetch: Client) -> None:
    async def slowly(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        number = len(origin.asked)
        writer.write(page(b"", "302 Found", Location=f"/{number}"))

    origin = await serve({})
    origin.answers = {f"/{n}": slowly for n in range(50)}
    got = await fetch(origin.url("/0"), limits=FetchLimits(total=2.0, redirects=50))
    assert got.exit_code is ExitCode.TOTAL_TIMEOUT
    assert 1 <= len(got.redirects) <= 4


async def test_cancelling_closes_the_connection(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": hang})
    task = asyncio.create_task(fetch(origin.url("/a")))
    await origin.until(connected=1, asked=1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await origin.until(connected=0)


async def test_cancelling_in_the_body_closes_the_connection(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": says(OK + b"Content-Length: 9999\r\n\r\n", b"x", again=0.05)})
    task = asyncio.create_task(fetch(origin.url("/a")))
    await origin.until(connected=1, asked=1)
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await origin.until(connected=0)


async def test_an_idle_connection_that_was_closed_is_replaced(serve: Serve, fetch: Client) -> None:
    async def once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Promises to stay, answers, and leaves a moment later.
        writer.write(page(b"first"))

    origin = await serve({"/a": once})
    for _ in range(5):
        got = await fetch(origin.url("/a"))
        assert got.exit_code is ExitCode.CONTENT
        assert len(got.requests) == 1


async def test_a_new_connection_that_is_closed_is_not_tried_twice(
    serve: Serve, fetch: Client
) -> None:
    origin = await serve({"/a": says()})
    got = await fetch(origin.url("/a"))
    assert got.exit_code is ExitCode.CONNECTION_RESET
    assert len(origin.asked) == 1


async def test_memory_stays_bounded_under_endless_bodies(serve: Serve, fetch: Client) -> None:
    """Ten endless bodies at once, each read up to 8 MB: far below what they would send."""
    origin = await serve({"/a": says(OK + b"\r\n", b"x" * 2**20, again=0)})
    limits = FetchLimits(body_bytes=8 * 2**20)
    process = psutil.Process()
    before = process.memory_info().rss
    got = await asyncio.gather(*(fetch(origin.url("/a"), limits=limits) for _ in range(10)))
    assert {one.exit_code for one in got} == {ExitCode.BODY_TOO_LARGE}
    assert process.memory_info().rss - before < 250 * 2**20
    await origin.until(connected=0)


async def test_nothing_is_left_running(serve: Serve) -> None:
    origin = await serve({"/a": page(), "/hang": hang})
    before = asyncio.all_tasks()
    async with client() as fetch:
        await asyncio.gather(*(fetch(origin.url("/a")) for _ in range(20)))
        await fetch(origin.url("/hang"), limits=hurried(LIMITS, ExitCode.FIRST_BYTE_TIMEOUT))
    await origin.until(connected=0)
    await asyncio.sleep(0.05)
    assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()
