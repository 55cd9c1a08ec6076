"""The bare limit: aiohttp, and turbohtml for the links. Stores nothing, obeys nothing."""

import asyncio
import sys
from urllib.parse import urldefrag, urljoin

import aiohttp
import turbohtml
import uvloop

from benchmarks.crawlers import AT_ONCE, Meter


async def crawl(seed: str, meter: Meter) -> None:
    seen = {seed}
    waiting: asyncio.Queue[str] = asyncio.Queue()
    waiting.put_nowait(seed)
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            while True:
                url = await waiting.get()
                async with session.get(url) as answer:
                    html = await answer.text() if answer.content_type == "text/html" else ""
                if answer.status == 200 and html:
                    meter.pages += 1
                for link in links(turbohtml.parse(html)):
                    found = urldefrag(urljoin(url, link)).url
                    if found.startswith(seed) and found not in seen:
                        seen.add(found)
                        waiting.put_nowait(found)
                waiting.task_done()

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE)]
        await waiting.join()
        for worker in workers:
            worker.cancel()


def links(tree: turbohtml.Document) -> set[str]:
    """Return what a page links to, each once and without its fragment."""
    found = (a.attrs.get("href") for a in tree.find_all("a"))
    return {str(href).partition("#")[0] for href in found if href}


def main() -> None:
    meter = Meter()
    with meter:
        uvloop.run(crawl(sys.argv[1], meter))
    meter.tell()


if __name__ == "__main__":
    main()
