"""All routes of Firecrawl's, in the order in which they are matched."""

from typing import Final

from trapline.api.firecrawl import (
    account,
    batch,
    cloud,
    crawl,
    health,
    scrape,
    sockets,
)

ROUTERS: Final = tuple(
    module.router for module in (health, cloud, scrape, crawl, batch, account, sockets)
)
