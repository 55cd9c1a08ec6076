"""A site whose every page, header and URL holds a marker, and the search for what is left of it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network

import aiohttp.web
import pytest

from tests.support.queue_jobs import ended
from tests.support.settings import change_settings
from trapline import app
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.pipeline import submit
from trapline.pipeline.options import CrawlOptions

MARKER = "Quetzalcoatlus"
IN_URL = "pterodactyl-path"
PAGE = f"""<html><head><title>{MARKER} title</title>
<meta name="description" content="{MARKER} described"></head><body><main>
<h1>{MARKER}</h1><p>{"The " + MARKER + " flew over the valley, slowly and with intent. " * 20}</p>
<p><a href="/{IN_URL}/next?q={MARKER}">next</a> <a href="/{IN_URL}/broken">broken</a></p>
</main></body></html>"""


@pytest.fixture
async def origin() -> AsyncIterator[str]:
    """The site's address; one of its pages is not there."""

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.Response:
        if request.path == "/robots.txt":
            return aiohttp.web.Response(status=404)
        headers = {"ETag": f'"{MARKER}"', "X-Marker": MARKER}
        status = 404 if "broken" in request.path else 200
        return aiohttp.web.Response(
            text=PAGE, content_type="text/html", headers=headers, status=status
        )

    web = aiohttp.web.Application()
    web.router.add_get("/{path:.*}", answer)
    runner = aiohttp.web.AppRunner(web, access_log=None)
    await runner.setup()
    listener = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/{IN_URL}/"
    await runner.cleanup()


@pytest.fixture
def open_database(database: Database) -> Database:
    """The database of a Trapline that may visit this machine."""
    settings = change_settings(database.settings, {"allow_nets": (ip_network("127.0.0.0/8"),)})
    return replace(database, settings=settings)


async def crawled(
    database: Database, organisation_id: OrganisationId, url: str, *, zdr: bool = False
) -> JobId:
    """Crawl the site's three pages."""
    scrape = {"zero_data_retention": zdr}
    options = CrawlOptions.parse(url=url, sitemap="skip", delay=0, limit=3, scrape=scrape)
    async with database.system_tx() as conn:
        job_id = await submit.crawl(conn, organisation_id, options)
    async with app.run_worker(database, database.settings):
        await ended(database, job_id, seconds=90)
    return job_id
