"""The bare loop that stores: what it costs to keep a page at all, python -m … URL DSN.

Fetch, parse, links, and of each page its bytes (zstd, SHA-256), the parser's own text and markdown of
the whole page, and its links, in one table, in batches by COPY. No robots, no queue that survives, no
provenance, no main content, no history: nothing that a crawler is chosen for.
"""

import asyncio
import hashlib
import json
import sys
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urljoin

import aiohttp
import asyncpg
import turbohtml
import uvloop
import zstandard

from benchmarks.crawlers import AT_ONCE, Meter
from benchmarks.crawlers.bare import links

BATCH = 64
_LEVEL = 3
_TABLE = """
CREATE TABLE stored_page (
    url text, sha256 bytea, html bytea, text text, markdown text, links jsonb
)
"""


@dataclass
class Table:
    """Rows on their way to PostgreSQL, a batch at a time, beside the requests."""

    conn: asyncpg.Connection
    rows: list[tuple[object, ...]] = field(default_factory=list)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def add(self, *row: object) -> None:
        self.rows.append(row)
        if len(self.rows) >= BATCH:
            await self.write()

    async def write(self) -> None:
        async with self.writing:
            rows, self.rows = self.rows, []
            await self.conn.copy_records_to_table("stored_page", records=rows)


async def crawl(seed: str, dsn: str, meter: Meter) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute(_TABLE)
    await conn.execute("ALTER TABLE stored_page ALTER html SET STORAGE EXTERNAL")
    with meter:
        table = Table(conn)
        await _visit_all(seed, table, meter)
        await table.write()
    await conn.close()


async def _visit_all(seed: str, table: Table, meter: Meter) -> None:
    seen = {seed}
    waiting: asyncio.Queue[str] = asyncio.Queue()
    waiting.put_nowait(seed)
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            while True:
                url = await waiting.get()
                async with session.get(url) as answer:
                    body = await answer.read()
                if answer.status == 200 and answer.content_type == "text/html":
                    meter.pages += 1
                    tree = turbohtml.parse(body.decode())
                    targets = [urldefrag(urljoin(url, link)).url for link in links(tree)]
                    for found in targets:
                        if found.startswith(seed) and found not in seen:
                            seen.add(found)
                            waiting.put_nowait(found)
                    digest, packed = hashlib.sha256(body).digest(), packer.compress(body)
                    texts = tree.text, tree.to_markdown()
                    await table.add(url, digest, packed, *texts, json.dumps(targets))
                waiting.task_done()

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE)]
        await waiting.join()
        for worker in workers:
            worker.cancel()


def main() -> None:
    meter = Meter()
    uvloop.run(crawl(sys.argv[1], sys.argv[2], meter))
    meter.tell()


if __name__ == "__main__":
    main()
