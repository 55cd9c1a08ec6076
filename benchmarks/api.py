"""The API: what it adds to a fetch and an extraction, paging through results, and watchers.

Each figure of /v2/scrape stands beside the bare loop: the same page, fetched and extracted in one
process without API, queue or database. The caller does as little as can be (`caller.py`): what a
client library takes to read an answer is not the server's.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import asyncpg
import psutil
import websockets
from aiohttp import web

from benchmarks.caller import Caller
from benchmarks.crawl import postgres_cpu
from tests.support.cli import Trapline
from trapline.db import pool
from trapline.extract import extract
from trapline.fetch import Fetcher
from trapline.model import APPROVED, Approval, Document, FetchRequest
from trapline.settings import Settings

CONCURRENCIES = (1, 16, 64)
# Politeness is between a host and everyone; many hosts keep it out of the figures.
HOSTS = 300
_LONGEST = 600.0

T = TypeVar("T")


def page() -> bytes:
    """A page of 30 KB: an article between a menu and a footer."""
    words = (
        "The bees that keep appointments return to the same flowers at the same hour of the day. "
    )
    paragraphs = "".join(f"<p>{n}. {words * 4}</p>" for n in range(70))
    links = "".join(f'<li><a href="/p/{n}">Page {n}</a></li>' for n in range(60))
    text = (
        "<!doctype html><html lang=en><head><title>Bees</title></head><body>"
        f"<nav><ul>{links}</ul></nav><main><article><h1>Bees</h1>{paragraphs}</article></main>"
        "<footer>Imprint</footer></body></html>"
    )
    return text.encode()


@asynccontextmanager
async def origin() -> AsyncIterator[int]:
    """Serve the page under every name; yield the port."""
    body = page()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\nAllow: /\n")
        return web.Response(body=body, content_type="text/html", charset="utf-8")

    application = web.Application()
    application.router.add_get("/{rest:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def address(port: int, kind: str, number: int) -> str:
    return f"http://h{number % HOSTS}.bench.test:{port}/{kind}/{number}"


@dataclass(frozen=True)
class Sizes:
    """How much is measured; 0 results or watchers: that part is left out."""

    requests: int
    results: int
    watchers: int


async def timed(
    call: Callable[[int], Awaitable[T]],
    concurrency: int,
    requests: int,
    check: Callable[[T], None],
) -> tuple[list[float], float]:
    """Return the milliseconds of each call, and calls a second; what is checked is not in the first."""
    numbers = iter(range(requests))
    took: list[float] = []

    async def caller() -> None:
        for number in numbers:
            began = time.perf_counter()
            answer = await call(number)
            took.append((time.perf_counter() - began) * 1000)
            check(answer)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(concurrency)))
    return sorted(took), requests / (time.perf_counter() - began)


async def bare(
    port: int, settings: Settings, requests: int
) -> dict[int, tuple[list[float], float]]:
    async def approve(_: str) -> Approval:
        return APPROVED

    async with Fetcher(settings.fetch) as fetcher:

        async def call(number: int) -> Document:
            fetched = await fetcher.fetch(
                FetchRequest(url=address(port, "bare", number), approve=approve)
            )
            return extract(fetched.body, fetched.content_type, fetched.url)

        def check(document: Document) -> None:
            assert document.markdown

        await timed(call, 4, min(requests, HOSTS), check)
        return {n: await timed(call, n, requests, check) for n in CONCURRENCIES}


async def through_api(api: str, port: int, requests: int) -> dict[int, tuple[list[float], float]]:
    async with Caller(api) as caller:

        async def call(number: int) -> tuple[int, bytes]:
            body = {"url": address(port, "api", number), "maxAge": 0, "formats": ["markdown"]}
            return await caller.post("/v2/scrape", json.dumps(body).encode())

        def check(answer: tuple[int, bytes]) -> None:
            status, body = answer
            assert status == 200, body
            assert json.loads(body)["data"]["markdown"]

        await timed(call, 4, min(requests, HOSTS), check)
        return {n: await timed(call, n, requests, check) for n in CONCURRENCIES}


async def results(
    api: str, dsn: str, port: int, server: psutil.Process, most: int
) -> dict[str, float]:
    """Page through a batch of many results: seconds, and the memory that the server gains."""
    async with aiohttp.ClientSession(api) as client:
        async with client.post(
            "/v2/batch/scrape", json={"urls": [address(port, "seed", 0)]}
        ) as answer:
            job_id = (await answer.json())["id"]
        while True:
            async with client.get(f"/v2/batch/scrape/{job_id}") as answer:
                if (await answer.json())["status"] == "completed":
                    break
            await asyncio.sleep(0.1)
        await multiply(dsn, job_id, most)
        before, pages, seen = server.memory_info().rss, [], 0
        peak = before
        next_url: str | None = f"{api}/v2/batch/scrape/{job_id}"
        while next_url:
            began = time.perf_counter()
            async with client.get(next_url) as answer:
                body = await answer.json()
            pages.append((time.perf_counter() - began) * 1000)
            peak = max(peak, server.memory_info().rss)
            seen += len(body["data"])
            next_url = body.get("next")
        assert seen == most, seen
    return {
        "status_pages": len(pages),
        "status_first_page_ms": round(pages[0], 1),
        "status_page_p50_ms": round(statistics.median(pages), 1),
        "status_last_page_ms": round(pages[-1], 1),
        "status_peak_growth_mb": round((peak - before) / 2**20, 1),
    }


async def multiply(dsn: str, job_id: str, most: int) -> None:
    """Make one finished page into many, in the event log alone."""
    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute(
            """
            INSERT INTO queue.event (job_id, number, organisation_id, type, task_id, data)
            SELECT e.job_id, 1000 + n, e.organisation_id, e.type, e.task_id, e.data
            FROM queue.event e, generate_series(1, $2) n
            WHERE e.job_id = $1::uuid AND e.type = 'page'
            """,
            job_id,
            most - 1,
        )
    finally:
        await conn.close()


async def watchers(api: str, port: int, server: psutil.Process, most: int) -> dict[str, float]:
    """Many watch one batch over WebSocket: how long until the last of them has heard of its end."""
    async with aiohttp.ClientSession(api) as client:
        urls = [address(port, "watched", n) for n in range(20)]
        body = {"urls": urls, "maxConcurrency": 2}
        async with client.post("/v2/batch/scrape", json=body) as answer:
            job_id = (await answer.json())["id"]
    before, used, own = server.memory_info().rss, _cpu(server), time.process_time()
    socket_url = f"{api.replace('http', 'ws')}/v2/batch/scrape/{job_id}"
    began = time.perf_counter()

    async def watch() -> int:
        pages = 0
        async with websockets.connect(socket_url, max_size=None, open_timeout=60) as socket:
            async for text in socket:
                message = json.loads(text)
                if message["type"] == "catchup":
                    pages += len(message["data"]["data"])
                pages += message["type"] == "document"
                if message["type"] == "done":
                    return pages
        return pages

    seen = await asyncio.gather(*(watch() for _ in range(most)))
    assert set(seen) == {20}, set(seen)
    return {
        "watchers": most,
        "watchers_seconds": round(time.perf_counter() - began, 1),
        # Most of the time goes to those who watch: they are one process here.
        "watchers_server_cpu_s": round(_cpu(server) - used, 1),
        "watchers_client_cpu_s": round(time.process_time() - own, 1),
        "watcher_kb": round(max(server.memory_info().rss - before, 0) / 1024 / most, 1),
    }


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _asked(requests: int) -> int:
    """Return how many pages a side was asked for, the first few to warm up included."""
    return min(requests, HOSTS) + len(CONCURRENCIES) * requests


def table(ours: dict[int, Any], peer: dict[int, Any]) -> None:
    print("concurrency   bare p50   p99      /s   | /v2/scrape p50   p99      /s   | ratio of /s")
    for n in CONCURRENCIES:
        (mine, rate), (theirs, best) = ours[n], peer[n]
        cells = [theirs[len(theirs) // 2], theirs[int(len(theirs) * 0.99)], best]
        cells += [mine[len(mine) // 2], mine[int(len(mine) * 0.99)], rate, rate / best]
        print(f"{n:11}   " + "  ".join(f"{cell:8.2f}" for cell in cells))


async def measure(sizes: Sizes) -> None:
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as home:
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG"}}
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(origin())
            pins = f"*.bench.test:{port}:127.0.0.1"
            settings = Settings.load(
                {
                    "TRAPLINE_HOME": Path(home) / "home",
                    "TRAPLINE_ALLOW_NETS": "127.0.0.0/8",
                    "TRAPLINE_RESOLVE": pins,
                }
            )
            found = await stack.enter_async_context(pool.server(settings.database))
            used = time.process_time()
            peer = await bare(port, settings, sizes.requests)
            bare_cpu = (time.process_time() - used) * 1000 / _asked(sizes.requests)
            program = Trapline(
                kept
                | {
                    "TRAPLINE_HOME": str(settings.database.home),
                    "TRAPLINE_ALLOW_NETS": "127.0.0.0/8",
                    "TRAPLINE_RESOLVE": pins,
                    "TRAPLINE_POOL_SIZE": "32",
                },
                Path(home),
            )
            process, api = await program.serving()
            drained = asyncio.create_task(process.stderr.read())  # type: ignore[union-attr]
            server = psutil.Process(process.pid)
            try:
                used, stored = _cpu(server), postgres_cpu(found.dsn)
                ours = await through_api(api, port, sizes.requests)
                cpu = (_cpu(server) - used) * 1000 / _asked(sizes.requests)
                stored = (postgres_cpu(found.dsn) - stored) * 1000 / _asked(sizes.requests)
                figures: dict[str, float] = {}
                if sizes.results:
                    figures |= await results(api, found.dsn, port, server, sizes.results)
                if sizes.watchers:
                    figures |= await watchers(api, port, server, sizes.watchers)
            finally:
                process.terminate()
                await process.wait()
                drained.cancel()
    table(ours, peer)
    print("  ".join(f"{name} {value}" for name, value in figures.items()))
    added = statistics.median(ours[1][0]) - statistics.median(peer[1][0])
    print(
        json.dumps(
            {
                "scrape_added_p50_ms": round(added, 2),
                "scrape_rps_c64": round(ours[64][1], 1),
                "scrape_vs_bare_c64": round(ours[64][1] / peer[64][1], 3),
                "scrape_cpu_ms": round(cpu, 2),
                "postgres_cpu_ms": round(stored, 2),
                "bare_cpu_ms": round(bare_cpu, 2),
            }
            | figures
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=1_000)
    asked = parser.parse_args()
    asyncio.run(_bounded(Sizes(asked.requests, asked.results, asked.watchers)))


async def _bounded(sizes: Sizes) -> None:
    """Measure, or fail: what waits for ever says nothing."""
    async with asyncio.timeout(_LONGEST):
        await measure(sizes)


if __name__ == "__main__":
    main()
