"""A scraper in the test's own process, against the test site."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.site.site import Site
from trapline import app
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scraping import Asker, Scraped, Scraper
from trapline.settings import Settings


class Scrape:
    """Scrapes in one line."""

    def __init__(self, scraper: Scraper, asker: Asker) -> None:
        self.scraper, self.asker = scraper, asker

    async def __call__(self, url: str, *, force: bool = False, **scrape: Any) -> Scraped:
        options = PageOptions.parse(url=url, force=force, scrape=scrape)
        return await self.scraper.scrape(self.asker, options)


def site_settings(settings: Settings, site: Site, *further: str) -> Settings:
    """The same settings, with the site's names pinned and its address open."""
    env = site.env(*further)
    return settings.model_copy(
        update={
            "resolve": tuple(env["TRAPLINE_RESOLVE"].split(",")),
            "allow_nets": Settings(allow_nets=env["TRAPLINE_ALLOW_NETS"]).allow_nets,
        }
    )


@pytest.fixture
async def scrape(
    database: Database,
    organisation_id: OrganisationId,
    site: Site,
    server_settings: Settings,
) -> AsyncIterator[Scrape]:
    async with app.scraping(database, site_settings(server_settings, site)) as scraper:
        yield Scrape(scraper, Asker(organisation_id))


Made = Callable[..., Scrape]
