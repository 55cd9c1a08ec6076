"""One delay for a host, whoever asks; and no worker that waits for one host while others are there."""

import asyncio
from ipaddress import ip_network
from itertools import pairwise

from tests.command import Trapline
from tests.queueing import ended, status
from tests.site.site import Site
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
    # What the way to the server takes varies by a little.
    assert min(gaps) >= DELAY - 0.05
    assert site.log.most_in_flight("other.test") == 1


async def test_a_slow_host_does_not_keep_others_waiting(
    database: Database, organisation_id: OrganisationId, site: Site
) -> None:
    """With a single runner: a host that may not be asked yet does not take it."""
    settings = database.settings.model_copy(
        update={
            "resolve": tuple(site.resolve("a.many.test").split(",")),
            "allow_nets": (ip_network("127.0.0.0/8"),),
        }
    )
    jobs_ids = []
    for start, limit in ((site.at("/", "other.test"), 9), (site.at("/1", "a.many.test"), 15)):
        options = CrawlOptions.parse(
            url=start, limit=limit, entire_domain=True, delay=0, max_concurrency=4, sitemap="skip"
        )
        async with database.tenant_tx(organisation_id) as conn:
            jobs_ids.append(await submit.crawl(conn, organisation_id, options))
    slow, fast = jobs_ids
    async with app.working(database, settings, concurrency=1):
        assert (await ended(database, fast)).completed == 16
        # It was asked for first, and has nine pages with half a second between them.
        assert (await status(database, slow)).remaining > 0
        assert (await ended(database, slow)).completed == 10
