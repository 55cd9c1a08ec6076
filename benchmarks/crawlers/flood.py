"""A crawl that finds a thousand new links on every page, on ten thousand hosts: who holds them all?

A server on loopback answers for every host name; TRAPLINE_RESOLVE leads there. The worker is a
process of its own: python -m benchmarks.crawlers.flood DSN PORT.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import uvloop

from benchmarks.crawlers import AT_ONCE
from trapline import app, logs
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.pipeline import submit
from trapline.pipeline.options import CrawlOptions
from trapline.settings import Settings

HOSTS = 10_000
LINKS = 1_000


class Flood(asyncio.Protocol):
    """Answers every page with links that nobody has seen before."""

    pages = 0
    port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET /robots.txt "):
            self.transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        Flood.pages += 1
        first = Flood.pages * LINKS
        links = "\n".join(
            f'<li><a href="http://h{n * 7919 % HOSTS}.flood.test:{Flood.port}/{n}">page {n}</a>'
            for n in range(first, first + LINKS)
        )
        body = (
            f"<!doctype html><title>{first}</title><h1>Page {first}</h1><ul>{links}</ul>".encode()
        )
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


@asynccontextmanager
async def flooding() -> AsyncIterator[int]:
    """Serve; yield the port."""
    server = await asyncio.get_running_loop().create_server(Flood, "127.0.0.1", 0)
    Flood.port = server.sockets[0].getsockname()[1]
    async with server:
        yield Flood.port


async def work(dsn: str, port: int) -> None:
    settings = Settings.load(
        {
            "DATABASE_URL": dsn,
            "TRAPLINE_ALLOW_NETS": "127.0.0.0/8",
            "TRAPLINE_RESOLVE": f"*:{port}:127.0.0.1",
            "TRAPLINE_LOG_LEVEL": "error",
        }
    )
    logs.configure(settings.logs)
    options = CrawlOptions.parse(
        url=f"http://h0.flood.test:{port}/",
        external_links=True,
        limit=10_000_000,
        delay=0,
        max_concurrency=AT_ONCE,
        sitemap="skip",
    )
    async with Database.open(settings) as database:
        async with database.system_tx() as conn:
            organisation = await tenancy.ensure_default(conn)
            await submit.crawl(conn, organisation, options)
        async with app.run_worker(database, settings, concurrency=AT_ONCE):
            print("working", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(work(sys.argv[1], int(sys.argv[2])))
