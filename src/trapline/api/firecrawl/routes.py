"""All routes of Firecrawl's, in the order in which they are matched."""

from typing import Final

from trapline.api.firecrawl import (
    account,
    batch,
    cloud,
    crawl,
    extract,
    health,
    mapping,
    monitor,
    parse,
    scrape,
    search,
    sockets,
    v1,
)

ROUTERS: Final = (
    # What is asked most often is found first.
    scrape.router,
    health.router,
    cloud.router,
    crawl.router,
    batch.router,
    mapping.router,
    search.router,
    extract.router,
    parse.router,
    account.router,
    monitor.router,
    v1.router,
    sockets.router,
    cloud.nowhere,
)
