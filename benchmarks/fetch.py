"""What a fetch costs beside aiohttp's own: CPU time of the client per page, from loopback.

Batches of all contenders take turns, and the medians of the rounds are compared, so that other
work on the machine hits all of them alike. `traced` is aiohttp's session with its own tracing, which is
how the same times could be recorded without us.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from typing import cast

import aiohttp
import uvloop

from benchmarks import report, versions
from trapline.fetch import Fetcher
from trapline.model import APPROVED, Approval, FetchRequest
from trapline.settings import FetchSettings

PAGE_BYTES = 16_000
BATCH = 500
ROUNDS = 40
AT_ONCE = 32

Fetch = Callable[[str], Awaitable[object]]


class Page(asyncio.Protocol):
    """Answers every request with one page, as cheaply as Python can."""

    answer = (
        b"HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sun, 15 Nov 2026 20:42:02 GMT\r\n"
        b"Content-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"
        b"Last-Modified: Sun, 15 Nov 2026 20:42:02 GMT\r\n"
        b'ETag: "6afa191a-1731"\r\nAccept-Ranges: bytes\r\n\r\n' % PAGE_BYTES
    ) + b"<!doctype html><title>Page</title>".ljust(PAGE_BYTES, b"x")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(b"\r\n\r\n")):
            self.transport.write(self.answer)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Page, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def approve(_url: str) -> Approval:
    return APPROVED


async def batch(fetch: Fetch, urls: list[str]) -> float:
    """Fetch all of them, some at once, and return the CPU microseconds per page."""
    left = iter(urls)

    async def work() -> None:
        for url in left:
            await fetch(url)

    begun = time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return (time.process_time() - begun) / len(urls) * 1e6


async def measure(port: int) -> dict[str, list[float]]:
    urls = [f"http://127.0.0.1:{port}/page/{number}" for number in range(BATCH)]
    async with (
        aiohttp.ClientSession() as session,
        aiohttp.ClientSession(trace_configs=[tracing()]) as traced,
        Fetcher(FetchSettings(allow_nets=(ip_network("127.0.0.0/8"),))) as fetcher,
    ):
        contenders: dict[str, Fetch] = {
            "aiohttp session": lambda url: read(session, url),
            "aiohttp session, traced": lambda url: read(traced, url),
            "trapline.fetch": lambda url: fetcher.fetch(FetchRequest(url=url, approve=approve)),
        }
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, fetch in contenders.items():
                times[name].append(await batch(fetch, urls))
    return times


async def read(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as response:
        return await response.read()


def tracing() -> aiohttp.TraceConfig:
    async def note(*_: object) -> None:
        time.perf_counter()

    config = aiohttp.TraceConfig()
    for signal in (
        config.on_request_start,
        config.on_dns_resolvehost_start,
        config.on_dns_resolvehost_end,
        config.on_connection_create_start,
        config.on_connection_create_end,
        config.on_connection_reuseconn,
        config.on_request_end,
    ):
        signal.append(note)
    return config


def main() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.fetch", "--serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            times = runner.run(measure(port))
    finally:
        server.kill()
        server.wait()
    medians = {name: statistics.median(values) for name, values in times.items()}
    bare = medians["aiohttp session"]
    rows = [
        {"client": name, "CPU µs/page": round(medians[name], 1), "best": round(min(values), 1)}
        | {"÷ session": round(medians[name] / bare, 3)}
        for name, values in times.items()
    ]
    title = f"Fetching a page of {PAGE_BYTES:,} bytes, {AT_ONCE} at once ({versions('aiohttp')})"
    report(title, rows, {"fetch_cpu_vs_bare": round(medians["trapline.fetch"] / bare, 3)})


if __name__ == "__main__":
    if "--serve" in sys.argv:
        uvloop.run(serve())
    else:
        main()
