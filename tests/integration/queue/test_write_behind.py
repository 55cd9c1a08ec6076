"""A scrape that is answered before it is stored: what others see of it, and what becomes of it."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from tests.site.site import Site
from tests.support.http_api import client_of
from tests.support.queue_jobs import assert_sound, ended
from tests.support.scraper import Scrape, site_settings
from tests.support.settings import change_settings
from trapline import app
from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scrape.scraper import Caller, ScrapeResult
from trapline.queue.finish import Attempt, FinishedBatch, Finisher
from trapline.queue.maintenance import loop as maintenance
from trapline.queue.write_behind import WriteBehind
from trapline.settings import Settings

LONG = 600.0


async def _answered(scrape: Scrape, url: str, **wishes: object) -> ScrapeResult:
    options = PageOptions.parse(url=url, scrape=wishes)
    return await scrape.scraper.scrape(scrape.caller, options, answer_first=True)


async def _one(database: Database, query: str) -> object:
    async with database.system_tx() as conn:
        return await conn.fetchval(query)


@pytest.fixture
def unhurried(scrape: Scrape) -> WriteBehind:
    """Nothing is stored unless somebody needs it."""
    inline_tasks = scrape.scraper.inline_tasks
    inline_tasks.write_behind = WriteBehind(
        inline_tasks._ending.add, quiet=LONG, longest=LONG, most=3
    )
    return inline_tasks.write_behind


async def test_what_is_answered_is_stored_when_somebody_looks(
    scrape: Scrape, site: Site, database: Database, unhurried: WriteBehind
) -> None:
    answer = await _answered(scrape, site.at("/about/"))
    assert answer.document is not None
    assert (answer.version_id, answer.visit_id, answer.change) == (None, None, None)
    assert await _one(database, "SELECT status FROM queue.job") == "running"
    assert await _one(database, "SELECT count(*) FROM store.version") == 0
    assert len(unhurried) == 1
    await scrape.scraper.wait_until_stored(scrape.caller.organisation_id)
    assert len(unhurried) == 0
    assert (
        await _one(database, "SELECT id FROM queue.job WHERE status = 'completed'") == answer.job_id
    )
    stored = await _one(database, "SELECT markdown FROM store.version")
    assert stored == answer.document.markdown
    await assert_sound(database)


async def test_it_is_stored_soon_though_nobody_looks(
    scrape: Scrape, site: Site, database: Database
) -> None:
    answer = await _answered(scrape, site.at("/about/"))
    assert answer.job_id is not None
    assert (await ended(database, answer.job_id)).status == "completed"
    assert await _one(database, "SELECT count(*) FROM store.version") == 1


@pytest.mark.parametrize(
    "bounds",
    [
        {"quiet": 0.05, "longest": LONG},
        {"quiet": LONG, "longest": 0.05},
        {"quiet": LONG, "longest": LONG, "enough": 1},
    ],
    ids=["none comes", "a stream of them", "enough of them"],
)
async def test_each_bound_of_gathering_holds(
    scrape: Scrape, site: Site, database: Database, bounds: dict[str, Any]
) -> None:
    inline_tasks = scrape.scraper.inline_tasks
    inline_tasks.write_behind = WriteBehind(inline_tasks._ending.add, **bounds)
    answer = await _answered(scrape, site.at("/about/"))
    assert answer.job_id is not None
    assert (await ended(database, answer.job_id)).status == "completed"


async def test_the_next_scrape_of_the_page_finds_it(
    scrape: Scrape, site: Site, database: Database, unhurried: WriteBehind
) -> None:
    await _answered(scrape, site.at("/about/"))
    await _answered(scrape, site.at("/contact/"))
    assert len(unhurried) == 2
    again = await _answered(scrape, site.at("/about/"), max_age=3600)
    assert again.cache == "hit"
    await _answered(scrape, site.at("/about/"))
    await scrape.scraper.wait_until_stored()
    assert await _one(database, "SELECT count(*) FROM store.version") == 2
    assert await _one(database, "SELECT count(*) FROM archive.visit") == 3
    await assert_sound(database)


async def test_what_is_answered_holds_no_place(
    scrape: Scrape,
    site: Site,
    database: Database,
    organisation_id: OrganisationId,
    unhurried: WriteBehind,
) -> None:
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE tenancy.organisation SET max_concurrency = 1 WHERE id = $1", organisation_id
        )
    for path in ("/about/", "/contact/", "/"):
        answer = await _answered(scrape, site.at(path), timeout=20)
        assert answer.ok
        assert answer.waited_for != "organisation"
    assert len(unhurried) == 1
    await scrape.scraper.wait_until_stored()
    await assert_sound(database)


async def test_whoever_is_ahead_of_the_database_waits(
    scrape: Scrape, site: Site, unhurried: WriteBehind
) -> None:
    await asyncio.gather(
        *(_answered(scrape, site.at(f"/about/?{n}"), timeout=60) for n in range(8))
    )
    assert len(unhurried) <= 3


async def test_a_finish_whose_connection_is_cut_is_tried_again(
    scrape: Scrape, site: Site, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, tries = Finisher._together, itertools.count()

    async def cut_off(self: Finisher, attempts: Sequence[Attempt], finished: FinishedBatch) -> None:
        if next(tries) < 2:
            raise ConnectionResetError
        await together(self, attempts, finished)

    monkeypatch.setattr(Finisher, "_together", cut_off)
    await _answered(scrape, site.at("/about/"))
    await scrape.scraper.wait_until_stored()
    assert await _one(database, "SELECT count(*) FROM store.version") == 1
    await assert_sound(database)


async def test_a_finish_that_fails_is_tried_again(
    scrape: Scrape, site: Site, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, tries = Finisher.finish, itertools.count()

    async def fail(self: Finisher, attempts: Sequence[Attempt]) -> FinishedBatch:
        if next(tries) == 0:
            raise OverflowError("nothing that anybody expects")
        return await finish(self, attempts)

    monkeypatch.setattr(Finisher, "finish", fail)
    await _answered(scrape, site.at("/about/"))
    await scrape.scraper.wait_until_stored()
    assert await _one(database, "SELECT count(*) FROM store.version") == 1


async def test_a_process_that_dies_in_between_leaves_a_dead_task_and_nothing_else(
    scrape: Scrape, site: Site, database: Database, unhurried: WriteBehind
) -> None:
    answer = await _answered(scrape, site.at("/about/"))
    assert answer.job_id is not None
    # Nobody holds it any longer, as when the process was killed.
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.lease SET expires_at = now()")
    duties = asyncio.create_task(
        maintenance.run(database, maintenance.all_duties(database.settings))
    )
    try:
        dead = await ended(database, answer.job_id)
    finally:
        duties.cancel()
        await asyncio.gather(duties, return_exceptions=True)
    assert (dead.status, dead.failed) == ("failed", 1)
    assert "died" in str(await _one(database, "SELECT error FROM queue.done"))
    # And should it have been taken for dead only: what comes too late changes nothing.
    await scrape.scraper.wait_until_stored()
    assert await _one(database, "SELECT count(*) FROM archive.visit") == 0
    assert await _one(database, "SELECT count(*) FROM store.page") == 0
    assert await _one(database, "SELECT count(*) FROM store.blob") == 0
    await assert_sound(database)


async def test_who_ends_stores_first(
    database: Database, organisation_id: OrganisationId, site: Site, server_settings: Settings
) -> None:
    async with app.open_scraper(database, site_settings(server_settings, site)) as scraper:
        scraper.inline_tasks.write_behind = WriteBehind(
            scraper.inline_tasks._ending.add, quiet=LONG, longest=LONG
        )
        scrape = Scrape(scraper, Caller(organisation_id))
        await _answered(scrape, site.at("/about/"))
        assert await _one(database, "SELECT count(*) FROM store.version") == 0
    assert await _one(database, "SELECT count(*) FROM store.version") == 1
    await assert_sound(database)


async def test_what_the_answer_needs_is_stored_before_it(
    scrape: Scrape, site: Site, unhurried: WriteBehind
) -> None:
    answer = await _answered(scrape, site.at("/about/"), track_changes=True)
    assert answer.version_id is not None
    assert len(unhurried) == 0


async def test_who_wants_it_so_is_answered_last(
    database: Database, organisation_id: OrganisationId, site: Site, server_settings: Settings
) -> None:
    settings = change_settings(site_settings(server_settings, site), {"answer_first": False})
    async with app.open_scraper(database, settings) as scraper:
        answer = await _answered(Scrape(scraper, Caller(organisation_id)), site.at("/about/"))
        assert answer.version_id is not None


async def test_a_page_that_is_not_there_is_stored_before_its_answer(
    scrape: Scrape, site: Site, unhurried: WriteBehind
) -> None:
    answer = await _answered(scrape, site.at("/no-such-page/"))
    assert not answer.ok
    assert answer.visit_id is not None
    assert len(unhurried) == 0


async def test_readers_find_what_was_answered_in_this_process_and_in_others(
    database: Database, site: Site, server_settings: Settings
) -> None:
    settings = site_settings(server_settings, site)
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
    async with (
        app.run_worker(database, settings, name="one") as one,
        app.run_worker(database, settings, name="two") as two,
        client_of(application.build(database, settings, one.services)) as here,
        client_of(application.build(database, settings, two.services)) as there,
    ):
        inline_tasks = one.scraper.inline_tasks
        inline_tasks.write_behind = WriteBehind(inline_tasks._ending.add, quiet=LONG, longest=LONG)
        body = {"url": site.at("/about/"), "maxAge": 0}
        async with here.post("/v2/scrape", json=body) as answer:
            scrape_id = UUID((await answer.json())["scrape_id"])
        assert len(inline_tasks.write_behind) == 1
        elsewhere = asyncio.create_task(there.get(f"/v2/scrape/{scrape_id}"))
        async with here.get("/v2/concurrency-check") as answer:
            assert (await answer.json())["concurrency"] == 0
        assert len(inline_tasks.write_behind) == 0
        for read in (await elsewhere, await here.get(f"/v2/scrape/{scrape_id}")):
            async with read:
                assert read.status == 200
                assert "markdown" in (await read.json())["data"]
