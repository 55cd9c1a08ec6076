"""One delay for a host, whoever asks; and no worker that waits for one host while others are there."""

import asyncio
from ipaddress import ip_network
from itertools import pairwise

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.queue_jobs import ended, status
from tests.support.settings import change_settings
from trapline import app
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline import submit
from trapline.pipeline.options import CrawlOptions

DELAY = 0.5
"""What the robots.txt of other.test asks for."""


async def test_two_processes_of_two_organisations_respect_one_delay(
    trapline: Trapline, site: Site
) -> None:
    crawler = Trapline(trapline.environment | site.env(), trapline.directory)
    for name in ("One", "Two"):
        assert (await crawler("orgs", "create", name)).status == 0
    start = site.at("/", "other.test")
    options = ("--delay", "0", "--concurrency", "8", "--sitemap", "skip", "--json")
    one, two = await asyncio.gather(
        crawler("crawl", start, "--org", "One", *options),
        crawler("crawl", start, "--org", "Two", *options),
    )
    assert (one.status, two.status) == (0, 0), one.err + two.err
    assert one.json["job"]["completed"] == two.json["job"]["completed"] == 10
    seen = site.log.pages("other.test")
    assert set(seen.values()) == {2}
    starts = sorted(e.started for e in site.log if e.host == "other.test" and e.url in seen)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert len(gaps) == 17
    # Counted from the first byte of an answer, so that the way to the server takes nothing from it.
    assert min(gaps) >= DELAY - 0.01
    assert site.log.most_in_flight("other.test") == 1


async def test_a_slow_host_does_not_keep_others_waiting(
    database: Database, organisation_id: OrganisationId, site: Site
) -> None:
    """With a single runner: a host that may not be asked yet does not take it."""
    settings = change_settings(
        database.settings,
        {
            "resolve": tuple(site.resolve("a.many.test").split(",")),
            "allow_nets": (ip_network("127.0.0.0/8"),),
        },
    )
    jobs_ids = []
    for start, limit in ((site.at("/", "other.test"), 9), (site.at("/1", "a.many.test"), 15)):
        options = CrawlOptions.parse(
            url=start, limit=limit, entire_domain=True, delay=0, max_concurrency=4, sitemap="skip"
        )
        async with database.tenant_tx(organisation_id) as conn:
            jobs_ids.append(await submit.crawl(conn, organisation_id, options))
    slow, fast = jobs_ids
    async with app.run_worker(database, settings, concurrency=1):
        assert (await ended(database, fast)).completed == 16
        # It was asked for first, and has nine pages with half a second between them.
        assert (await status(database, slow)).remaining > 0
        assert (await ended(database, slow)).completed == 10


async def test_broken_urls_do_not_slow_down_their_host(trapline: Trapline, site: Site) -> None:
    """URLs that always answer 500 are retried by themselves; the host's gate keeps its pace."""
    site.fail("/shop/*", status=500)
    crawler = Trapline(trapline.environment | site.env(), trapline.directory)
    done = await crawler("crawl", site.url, "--limit", "80", "--delay", "0", "--json")
    assert done.status == 0, done.err
    failed = [url for url in site.log.pages() if "/shop/" in url]
    assert len(failed) >= 3
    assert done.json["job"]["failed"] >= 3
    asked = await crawler("db", "psql", "--", "-Atc", "SELECT max(pressure) FROM queue.gate")
    assert asked.out.strip() == "0"
