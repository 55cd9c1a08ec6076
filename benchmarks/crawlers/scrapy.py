"""Scrapy as its documentation has it: robots on, title, links and text of every page as JSON lines."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response

from benchmarks.crawlers import AT_ONCE, Meter

METER = Meter()


class Pages(Spider):
    """Follows every link of its site."""

    name = "pages"
    custom_settings: ClassVar[dict[str, Any]] = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": AT_ONCE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "FEEDS": {sys.argv[2]: {"format": "jsonlines", "overwrite": True}},
    }
    start_urls: ClassVar[list[str]] = [sys.argv[1]]

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            return
        METER.pages += 1
        # Its LinkExtractor takes every fragment for a link of its own, and is three times slower here.
        found = {link.partition("#")[0] for link in response.css("a::attr(href)").getall()}
        urls = [url for link in found if (url := response.urljoin(link)).startswith(sys.argv[1])]
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "links": urls,
            "text": response.xpath("string(//body)").get(),
        }
        yield from map(Request, urls)


def main() -> None:
    Path(sys.argv[2]).unlink(missing_ok=True)
    process = CrawlerProcess()
    process.crawl(Pages)
    with METER:
        process.start()
    METER.tell()


if __name__ == "__main__":
    main()
