"""A scrape: its answer, what it leaves behind, what it waits for and what it refuses."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.site.site import Site
from tests.support.queue_jobs import assert_sound
from tests.support.scraper import Scrape, site_settings
from tests.support.settings import change_settings
from trapline import app
from trapline.db.pool import Database
from trapline.errors import DeadlineExceeded, ExitCode, InvalidInput
from trapline.model import Format, OrganisationId, RedirectSource
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scrape.scraper import NotCached
from trapline.queue import gates, jobs
from trapline.settings import Settings
from trapline.store.pages import PageChange


async def _one(database: Database, query: str) -> object:
    async with database.system_tx() as conn:
        return await conn.fetchval(query)


async def test_the_answer_and_its_provenance(
    scrape: Scrape, site: Site, database: Database
) -> None:
    answer = await scrape(site.at("/about/"))
    assert answer.code is ExitCode.CONTENT
    assert answer.status == 200
    assert answer.document is not None
    assert answer.document.markdown
    assert answer.change is PageChange.NEW
    assert answer.cache == "miss"
    async with database.system_tx() as conn:
        assert answer.job_id is not None
        job = await jobs.get(conn, answer.job_id)
        visit = await conn.fetchrow("SELECT * FROM archive.visit")
        version = await conn.fetchrow("SELECT * FROM store.version")
    assert (job.kind, job.status, job.total, job.completed) == ("scrape", "completed", 1, 1)
    assert job.ttl == timedelta(hours=1)
    assert visit is not None
    assert version is not None
    assert (visit["id"], visit["job_id"], visit["crawl_type"]) == (
        answer.visit_id,
        answer.job_id,
        4,
    )
    assert (version["id"], version["markdown"]) == (answer.version_id, answer.document.markdown)
    await assert_sound(database)


async def test_an_address_that_is_opened_can_be_fetched_at_once(
    scrape: Scrape, site: Site, database: Database, server_settings: Settings
) -> None:
    closed = change_settings(site_settings(server_settings, site), {"allow_nets": ()})
    async with app.open_scraper(database, closed) as scraper:
        refused = await Scrape(scraper, scrape.caller)(site.at("/about/"))
    assert refused.code is ExitCode.UNSAFE_ADDRESS
    assert (await scrape(site.at("/about/"))).code is ExitCode.CONTENT


async def test_formats_are_given_as_asked(scrape: Scrape, site: Site) -> None:
    wanted = frozenset({"markdown", "html", "rawHtml", "links", "images", "summary"})
    answer = await scrape(
        site.at("/about/"),
        formats=wanted,
        with_body=True,
        attributes=[{"selector": "a", "attribute": "href"}],
    )
    document = answer.document
    assert document is not None
    assert document.html
    assert document.raw_html
    assert document.links
    assert document.summary
    assert answer.body == document.raw_html.encode()
    assert answer.attributes[0].values


async def test_what_is_stored_does_not_depend_on_what_is_wanted(
    scrape: Scrape, site: Site, database: Database
) -> None:
    whole = await scrape(site.at("/about/"), only_main_content=False)
    main = await scrape(site.at("/about/"), force=True)
    assert whole.document is not None
    assert main.document is not None
    assert len(whole.document.markdown) > len(main.document.markdown)
    assert main.change is PageChange.SAME
    assert main.version_id == whole.version_id
    assert await _one(database, "SELECT count(*) FROM store.version") == 1


async def test_an_unchanged_page_is_answered_from_its_version(scrape: Scrape, site: Site) -> None:
    first = await scrape(site.at("/about/"))
    second = await scrape(site.at("/about/"))
    assert second.code is ExitCode.NOT_MODIFIED
    assert second.ok
    assert first.document is not None
    assert second.document is not None
    assert second.document.markdown == first.document.markdown
    assert second.document.metadata == first.document.metadata
    assert second.version_id == first.version_id


async def test_a_change_is_shown(scrape: Scrape, site: Site) -> None:
    first = await scrape(site.at("/about/"), track_changes=True)
    assert (first.change, first.previous_at) == (PageChange.NEW, None)
    same = await scrape(site.at("/about/"), track_changes=True)
    assert same.change is PageChange.SAME
    assert same.previous_at is not None
    site.edit("/about/", "lens grinder", "contraptions")
    changed = await scrape(site.at("/about/"), track_changes=True)
    assert changed.change is PageChange.CHANGED
    assert changed.diff is not None
    assert "contraptions" in changed.diff.text


async def test_an_older_answer_will_do(scrape: Scrape, site: Site, database: Database) -> None:
    with pytest.raises(NotCached):
        await scrape(site.at("/about/"), min_age=0)
    first = await scrape(site.at("/about/"))
    seen = len(site.log)
    hit = await scrape(site.at("/about/"), max_age=3600)
    assert (hit.cache, hit.version_id, hit.job_id) == ("hit", first.version_id, None)
    assert hit.cached_at is not None
    assert first.document is not None
    assert hit.document is not None
    assert hit.document.markdown == first.document.markdown
    raw = await scrape(site.at("/about/"), max_age=3600, formats=["rawHtml", "html"])
    assert raw.cache == "hit"
    assert raw.document is not None
    assert raw.document.raw_html
    assert raw.document.html
    assert len(site.log) == seen
    with pytest.raises(NotCached):
        await scrape(site.at("/about/"), min_age=3600)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE store.page SET last_seen_at = now() - interval '2 hours'")
    assert (await scrape(site.at("/about/"), min_age=3600)).cache == "hit"
    assert (await scrape(site.at("/about/"), max_age=3600)).cache == "miss"


async def test_zero_data_retention_writes_no_content(
    scrape: Scrape, site: Site, database: Database
) -> None:
    answer = await scrape(site.at("/about/"), zero_data_retention=True)
    assert answer.document is not None
    assert answer.document.markdown
    for table in ("store.version", "store.page", "store.blob", "archive.visit", "frontier.url"):
        assert await _one(database, f"SELECT count(*) FROM {table}") == 0, table
    assert await _one(database, "SELECT result ->> 'url' FROM queue.done") is None
    assert await _one(
        database, "SELECT bool_and(expires_at <= now() + interval '1 hour') FROM queue.job"
    )


async def test_what_is_not_to_be_stored_leaves_its_visit_alone(
    scrape: Scrape, site: Site, database: Database
) -> None:
    answer = await scrape(site.at("/about/"), store=False)
    assert answer.document is not None
    assert answer.version_id is None
    assert await _one(database, "SELECT count(*) FROM store.version") == 0
    assert await _one(database, "SELECT count(*) FROM store.blob") == 0
    assert await _one(database, "SELECT count(*) FROM archive.visit") == 1


async def test_a_missing_page_has_its_status_and_what_the_server_shows(
    scrape: Scrape, site: Site, database: Database
) -> None:
    site.remove("/contact/", status=404)
    answer = await scrape(site.at("/contact/"))
    assert (answer.code, answer.status, answer.ok) == (ExitCode.NOT_FOUND, 404, False)
    assert answer.document is not None
    assert answer.error
    assert await _one(database, "SELECT count(*) FROM store.version") == 0
    assert await _one(database, "SELECT status FROM queue.job") == "failed"
    await assert_sound(database)


async def test_robots_and_private_addresses_hold(scrape: Scrape, site: Site) -> None:
    forbidden = await scrape(site.at("/private/"))
    assert forbidden.code is ExitCode.ROBOTS_DISALLOWED
    assert site.log.pages() == {}
    private = await scrape("http://10.0.0.1/")
    assert private.code is ExitCode.UNSAFE_ADDRESS


async def test_a_redirect_may_lead_to_another_host(scrape: Scrape, site: Site) -> None:
    answer = await scrape(site.at("/about/", "old.trapline.test"))
    assert answer.ok
    assert answer.final_url != answer.url
    assert answer.final_url.endswith("/about/")


async def test_time_is_bounded(scrape: Scrape, site: Site, database: Database) -> None:
    site.slow("/about/", first_byte=20)
    answer = await scrape(site.at("/about/"), timeout=1)
    assert answer.code is ExitCode.TOTAL_TIMEOUT
    assert answer.outcome.firecrawl_code == "SCRAPE_TIMEOUT"
    await assert_sound(database)


async def test_a_host_is_left_alone_between_two_scrapes(
    scrape: Scrape, site: Site, database: Database
) -> None:
    url = site.at("/", "other.test")
    answers = await asyncio.gather(*(scrape(url, timeout=60) for _ in range(4)))
    assert {answer.code for answer in answers} <= {ExitCode.CONTENT, ExitCode.NOT_MODIFIED}
    # robots.txt comes before the gate; it says half a second between two starts of pages.
    starts = sorted(e.started for e in site.log if e.host == "other.test" and e.target == "/")
    assert len(starts) == 4
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 0.49
    assert site.log.most_in_flight("other.test") == 1
    assert sum(answer.waited_for is not None for answer in answers) >= 3
    await assert_sound(database)


async def test_a_wait_that_is_too_long_is_refused_at_once(
    scrape: Scrape, site: Site, database: Database
) -> None:
    async with database.system_tx() as conn:
        host = site.url.split("/")[2]
        await gates.set_gate(conn, f"host:{host}", bound=1)
        await conn.execute("UPDATE queue.gate SET ready_at = now() + interval '1 hour'")
    with pytest.raises(DeadlineExceeded) as late:
        await scrape(site.at("/about/"), timeout=5)
    assert late.value.waited_for == "gap"
    assert await _one(database, "SELECT count(*) FROM queue.job") == 0


async def test_the_organisations_limit_holds(
    scrape: Scrape, site: Site, database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE tenancy.organisation SET max_concurrency = 1 WHERE id = $1", organisation_id
        )
    site.slow("/about/", first_byte=6)
    slow = asyncio.create_task(scrape(site.at("/about/")))
    await asyncio.to_thread(site.log.wait, lambda log: len(log.pages()) == 1)
    with pytest.raises(DeadlineExceeded) as late:
        await scrape(site.at("/contact/"), timeout=1)
    assert late.value.waited_for == "organisation"
    waiting = await scrape(site.at("/contact/"), timeout=60)
    assert waiting.waited_for == "organisation"
    assert (await slow).ok
    await assert_sound(database)


async def test_a_caller_that_goes_away_leaves_nothing_held(
    scrape: Scrape, site: Site, database: Database
) -> None:
    site.slow("/about/", first_byte=20)
    caller = asyncio.create_task(scrape(site.at("/about/")))
    await asyncio.to_thread(site.log.wait, lambda log: len(log.pages()) == 1)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await _one(database, "SELECT count(*) FROM queue.leased") == 0
    assert await _one(database, "SELECT sum(in_flight) FROM queue.gate") == 0
    await assert_sound(database)


async def test_many_scrapes_of_one_page_at_once_make_one_version(
    scrape: Scrape, site: Site, database: Database
) -> None:
    answers = await asyncio.gather(*(scrape(site.at("/about/"), timeout=60) for _ in range(12)))
    assert all(answer.ok for answer in answers)
    assert len({answer.page_id for answer in answers}) == 1
    assert {answer.version_id for answer in answers} == {answers[0].version_id}
    assert await _one(database, "SELECT count(*) FROM store.version") == 1
    assert await _one(database, "SELECT count(*) FROM archive.visit") == 12
    assert await _one(database, "SELECT count(*) FROM store.sighting") == 12
    assert await _one(database, "SELECT count(*) FROM queue.job WHERE status = 'completed'") == 12
    await assert_sound(database)


async def test_a_page_whose_task_was_taken_away_claims_nothing_that_is_not_stored(
    scrape: Scrape, site: Site, database: Database
) -> None:
    site.slow("/about/", first_byte=1)
    caller = asyncio.create_task(scrape(site.at("/about/")))
    await asyncio.to_thread(site.log.wait, lambda log: len(log.pages()) == 1)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.lease SET expires_at = now()")
    answer = await caller
    assert answer.ok
    assert answer.document is not None
    assert (answer.job_id, answer.visit_id, answer.version_id, answer.change) == (None,) * 4
    assert await _one(database, "SELECT count(*) FROM archive.visit") == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"formats": ["hologram"]},
        {"include_tags": ["p["]},
        {"headers": {"X-A": "one\r\nX-B: two"}},
        {"headers": {"bad name": "x"}},
        {"timeout": 0},
        {"max_age": -1},
        {"country": "Germany"},
        {"no_such_option": 1},
    ],
)
def test_what_cannot_be_done_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        PageOptions.parse(url="https://example.com/", scrape=wrong)


def test_options_survive_their_way_through_the_database() -> None:
    options = PageOptions.parse(
        url="https://example.com/", scrape={"formats": ["html"], "languages": ["de-DE", "en"]}
    )
    assert options.scrape.formats == {Format.HTML}
    assert options.scrape.accept_language == "de-DE;q=1.0,en;q=0.9"


async def test_a_page_that_sends_its_visitor_on_is_followed(
    scrape: Scrape, site: Site, database: Database
) -> None:
    answer = await scrape(site.at("/news.html"))
    assert answer.ok
    assert answer.final_url == site.at("/journal/")
    async with database.system_tx() as conn:
        sources = await conn.fetch("SELECT source, is_permanent FROM archive.redirect")
        charsets = await conn.fetchval("SELECT charset FROM archive.file")
    assert [tuple(row) for row in sources] == [(RedirectSource.META_REFRESH, True)]
    assert charsets == "utf-8"


async def test_a_page_that_asks_not_to_be_indexed_is_kept_only_by_wish(
    scrape: Scrape, site: Site, database: Database
) -> None:
    site.change("/secret", body=b"<p>Hush.</p>", headers=(("X-Robots-Tag", "noindex"),))
    options = PageOptions.parse(url=site.at("/secret"), store_noindex=False)
    answer = await scrape.scraper.scrape(scrape.caller, options)
    assert answer.ok
    assert answer.version_id is None
    assert (await scrape(site.at("/secret"))).version_id is not None
