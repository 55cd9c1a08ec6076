"""All Firecrawl routers, in the order in which requests try them."""

from typing import Final

from trapline.api.firecrawl import (
    account,
    batch,
    crawl,
    extract,
    health,
    monitor,
    parse,
    scrape,
    search,
    unsupported,
    v1,
    websockets,
)
from trapline.api.firecrawl import (
    map as mapping,
)

ROUTERS: Final = (
    # The most frequent first.
    scrape.router,
    health.router,
    unsupported.router,
    crawl.router,
    batch.router,
    mapping.router,
    search.router,
    extract.router,
    parse.router,
    account.router,
    monitor.router,
    v1.router,
    websockets.router,
    unsupported.unknown_router,
)
