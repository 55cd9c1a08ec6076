"""All routes of Firecrawl's, in the order in which they are matched."""

from typing import Final

from trapline.api.firecrawl import (
    account,
    batch,
    cloud,
    crawl,
    extract,
    health,
    parse,
    scrape,
    search,
    sockets,
    v1,
)

ROUTERS: Final = tuple(
    module.router
    for module in (
        health,
        cloud,
        scrape,
        crawl,
        batch,
        map,
        search,
        extract,
        parse,
        account,
        v1,
        sockets,
    )
)
