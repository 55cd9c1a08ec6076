"""Crawlee's ParselCrawler: robots on, title, links and text of every page, everything in memory."""

import asyncio
import logging
import sys
from pathlib import Path

from crawlee import ConcurrencySettings, Glob
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from benchmarks.crawlers import AT_ONCE, Meter


async def crawl(seed: str, meter: Meter) -> None:
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(
            min_concurrency=AT_ONCE, desired_concurrency=AT_ONCE, max_concurrency=AT_ONCE
        ),
        storage_client=MemoryStorageClient(),
        configuration=Configuration(purge_on_start=True),
        respect_robots_txt_file=True,
        configure_logging=False,
    )
    logging.getLogger("crawlee").setLevel(logging.ERROR)

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        meter.pages += 1
        selector = context.selector
        await context.push_data(
            {
                "url": context.request.url,
                "title": selector.css("title::text").get(),
                "links": selector.css("a::attr(href)").getall(),
                "text": selector.xpath("string(//body)").get(),
            }
        )
        await context.enqueue_links(include=[Glob(f"{seed}**")])

    await crawler.run([seed])
    await crawler.export_data(Path(sys.argv[2]))


def main() -> None:
    meter = Meter()
    with meter:
        asyncio.run(crawl(sys.argv[1], meter))
    meter.tell()


if __name__ == "__main__":
    main()
