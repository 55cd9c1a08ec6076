"""A scraper in the test's own process, against the test site."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.site.site import Site
from tests.support.settings import change_settings, make_settings
from trapline import app
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scrape.scraper import Caller, Scraper, ScrapeResult
from trapline.settings import Settings


class Scrape:
    """Scrapes in one line."""

    def __init__(self, scraper: Scraper, caller: Caller) -> None:
        self.scraper, self.caller = scraper, caller

    async def __call__(self, url: str, *, force: bool = False, **scrape: Any) -> ScrapeResult:
        options = PageOptions.parse(url=url, force=force, scrape=scrape)
        return await self.scraper.scrape(self.caller, options)


def site_settings(settings: Settings, site: Site, *further: str) -> Settings:
    """The same settings, with the site's names pinned and its address open."""
    env = site.env(*further)
    return change_settings(
        settings,
        {
            "resolve": tuple(env["TRAPLINE_RESOLVE"].split(",")),
            "allow_nets": make_settings(allow_nets=env["TRAPLINE_ALLOW_NETS"]).fetch.allow_nets,
        },
    )


@pytest.fixture
async def scrape(
    database: Database,
    organisation_id: OrganisationId,
    site: Site,
    server_settings: Settings,
) -> AsyncIterator[Scrape]:
    async with app.open_scraper(database, site_settings(server_settings, site)) as scraper:
        yield Scrape(scraper, Caller(organisation_id))


Made = Callable[..., Scrape]
