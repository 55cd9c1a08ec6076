"""The cache is keyed by how a page is asked for: nobody gets what a server gave to another caller."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from hashlib import sha256
from typing import Any

import aiohttp
import pytest

from tests.site.message import Request, Response
from tests.site.site import Site
from tests.site.state import State
from tests.support.http_api import client_of
from tests.support.scraper import Scrape, site_settings
from trapline import app
from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import ExitCode
from trapline.model import OrganisationId
from trapline.pipeline.options import MapOptions, PageOptions
from trapline.pipeline.scrape.mapper import Mapper
from trapline.pipeline.scrape.scraper import NotCached, ScrapeResult
from trapline.settings import Settings
from trapline.store import sites
from trapline.store.pages import PageChange

ECHOED = ("cookie", "x-colour", "user-agent", "accept-language")
HOUR = 3600
COOKIE = {"headers": {"Cookie": "session=alice"}}
WITH_HEADERS = [{"headers": {"X-Colour": "green"}}, COOKIE]
WITHOUT_HEADERS: list[dict[str, Any]] = [
    {"mobile": True},
    {"location": {"languages": ["de"]}},
    {"location": {"country": "FR"}},
    {"skipTlsVerification": False},
]


def _echo(request: Request, _state: State) -> Response:
    """Say what was asked with; the ETag is that of the answer to this cookie."""
    asked = [f"{name}: {request.headers.get(name, 'none')}" for name in ECHOED]
    asked.append(f"proxy: {request.proxied}")
    text = "".join(f"<p>This page was asked for with {line}, and says so.</p>" for line in asked)
    tag = f'"{sha256(request.headers.get("cookie", "").encode()).hexdigest()[:8]}"'
    headers = (("ETag", tag), ("Vary", "Cookie"))
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers=headers)
    page = f"<html><title>{asked[0]}</title><main><h1>Echo</h1>{text}</main></html>"
    return Response(200, page.encode(), headers)


@pytest.fixture
def url(site: Site) -> str:
    site.change("/echo", respond=_echo)
    return site.at("/echo")


@pytest.fixture
async def api(
    database: Database, site: Site, server_settings: Settings
) -> AsyncIterator[aiohttp.ClientSession]:
    settings = site_settings(server_settings, site)
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
    async with AsyncExitStack() as stack:
        working = await stack.enter_async_context(app.run_worker(database, settings, name="one"))
        built = application.build(database, settings, working.services)
        yield await stack.enter_async_context(client_of(built))


async def _scraped(api: aiohttp.ClientSession, url: str, **wishes: Any) -> tuple[str, str]:
    """Return whether the answer came from the cache, and what it says."""
    body = {"url": url, "maxAge": HOUR * 1000} | wishes
    async with api.post("/v2/scrape", json=body) as answer:
        found = await answer.json()
    assert answer.status == 200, found
    return found["data"]["metadata"]["cacheState"], found["data"]["markdown"]


async def _text(scrape: Scrape, url: str, **wishes: Any) -> str:
    answer = await scrape(url, **wishes)
    assert answer.document is not None
    return answer.document.markdown


# Over HTTP


@pytest.mark.parametrize("option", WITHOUT_HEADERS, ids=str)
async def test_an_option_has_a_cache_of_its_own(
    api: aiohttp.ClientSession, url: str, option: dict[str, Any]
) -> None:
    assert (first := await _scraped(api, url, **option))[0] == "miss"
    assert (plain := await _scraped(api, url))[0] == "miss"
    assert await _scraped(api, url, **option) == ("hit", first[1])
    assert await _scraped(api, url) == ("hit", plain[1])


@pytest.mark.parametrize("option", WITHOUT_HEADERS, ids=str)
async def test_an_option_does_not_get_a_plain_answer(
    api: aiohttp.ClientSession, url: str, option: dict[str, Any]
) -> None:
    assert (await _scraped(api, url))[0] == "miss"
    assert (await _scraped(api, url, **option))[0] == "miss"


@pytest.mark.parametrize("option", WITH_HEADERS, ids=str)
async def test_headers_never_meet_the_cache(
    api: aiohttp.ClientSession, url: str, option: dict[str, Any]
) -> None:
    (value,) = option["headers"].values()
    assert (plain := await _scraped(api, url))[0] == "miss"
    for _ in range(2):
        state, text = await _scraped(api, url, **option)
        assert state == "miss"
        assert value in text
    assert await _scraped(api, url) == ("hit", plain[1])
    assert value not in plain[1]


async def test_what_came_with_a_cookie_is_given_to_nobody_else(
    api: aiohttp.ClientSession, url: str
) -> None:
    assert "alice" in (await _scraped(api, url, **COOKIE))[1]
    state, text = await _scraped(api, url)
    assert (state, "alice" in text) == ("miss", False)
    body = {"url": url, "lockdown": True} | COOKIE
    async with api.post("/v2/scrape", json=body) as answer:
        assert answer.status == 404


async def test_a_change_is_told_to_those_who_ask_in_the_same_way(
    api: aiohttp.ClientSession, url: str
) -> None:
    async def status(**wishes: Any) -> str:
        tracked = {"type": "changeTracking", "modes": ["git-diff"]}
        body = {"url": url, "maxAge": 0, "formats": ["markdown", tracked]} | wishes
        async with api.post("/v2/scrape", json=body) as answer:
            told = (await answer.json())["data"]["changeTracking"]
        assert "diff" not in told or told["diff"] is None
        return str(told["changeStatus"])

    assert [await status(**COOKIE), await status()] == ["new", "new"]
    assert [await status(**COOKIE), await status(), await status(mobile=True)] == [
        "same",
        "same",
        "new",
    ]


# In the scraper


@pytest.mark.parametrize("option", ["proxy", "languages", "verify_tls"])
async def test_options_without_a_name_in_firecrawl(
    scrape: Scrape, site: Site, url: str, option: str
) -> None:
    values = {"proxy": site.url.rstrip("/"), "languages": ["nl"], "verify_tls": False}
    wish = {option: values[option]}
    first = await _text(scrape, url, **wish)
    plain = await scrape(url, max_age=HOUR)
    assert plain.cache == "miss"
    again = await scrape(url, max_age=HOUR, **wish)
    assert again.document is not None
    assert (again.cache, again.document.markdown) == ("hit", first)


async def test_a_validator_is_sent_by_those_who_ask_in_the_same_way(
    scrape: Scrape, site: Site, url: str
) -> None:
    asked = []
    for wishes in (COOKIE, {}, {}, COOKIE, {"headers": {"Cookie": "session=bob"}}):
        answer = await scrape(url, **wishes)
        assert answer.document is not None
        expected = wishes.get("headers", {}).get("Cookie", "none")
        assert f"cookie: {expected}," in answer.document.markdown
        asked.append(site.log.of(target="/echo")[-1].headers.get("if-none-match"))
    tags = [sha256(cookie.encode()).hexdigest()[:8] for cookie in ("", "session=alice")]
    assert asked == [None, None, *(f'"{tag}"' for tag in tags), None]


async def test_a_page_that_is_not_stored_leaves_no_validator(
    scrape: Scrape, site: Site, url: str
) -> None:
    await scrape(url)
    await scrape(url, store=False, force=True)
    assert (await scrape(url)).code is ExitCode.CONTENT
    assert "if-none-match" not in site.log.of(target="/echo")[-1].headers


async def test_only_a_stored_answer_will_do_and_headers_have_none(scrape: Scrape, url: str) -> None:
    await scrape(url, **COOKIE)
    for wishes in ({"only_cached": True}, {"min_age": 0}, {"min_age": 0, **COOKIE}):
        with pytest.raises(NotCached):
            await scrape(url, **wishes)


async def test_a_version_is_a_change_only_to_those_who_ask_in_the_same_way(
    scrape: Scrape, url: str, database: Database
) -> None:
    for wishes in (COOKIE, {}, {"mobile": True}):
        answer = await scrape(url, track_changes=True, **wishes)
        assert (answer.change, answer.diff) == (PageChange.NEW, None)
    async with database.system_tx() as conn:
        names = await conn.fetch("SELECT name, base_url FROM store.site ORDER BY variant")
        assert await conn.fetchval("SELECT count(*) FROM store.version") == 3
    assert [row["name"] == row["base_url"] for row in names] == [True, False, False]
    assert len({row["base_url"] for row in names}) == 1


async def test_a_map_shows_nothing_of_what_came_with_a_cookie(
    scrape: Scrape, site: Site, url: str
) -> None:
    await scrape(url, **COOKIE)
    await scrape(site.at("/about/"))

    async def titles(**wishes: Any) -> dict[str, str | None]:
        options = MapOptions.parse(url=site.url, sitemap="skip", scrape=wishes)
        found = await Mapper.sharing(scrape.scraper).map(scrape.caller, options)
        return {link.url: link.title for link in found.links}

    assert url not in (public := await titles())
    assert public[site.at("/about/")]
    assert "alice" in ((await titles(**COOKIE))[url] or "")


# Under a site that has a name


@pytest.fixture
async def named(
    scrape: Scrape, database: Database, organisation_id: OrganisationId, site: Site, url: str
) -> Any:
    async with database.system_tx() as conn:
        row = await sites.create(conn, organisation_id, "Echo", site.url, config={})

    async def ask(**wishes: Any) -> ScrapeResult:
        options = PageOptions.parse(url=url, site_id=str(row.id), scrape=wishes)
        return await scrape.scraper.scrape(scrape.caller, options)

    return ask


async def test_a_named_site_gives_a_version_to_those_who_ask_in_the_same_way(
    named: Any, site: Site, database: Database
) -> None:
    first = await named(**COOKIE)
    plain = await named(max_age=HOUR)
    assert plain.cache == "miss"
    assert "alice" not in plain.document.markdown
    assert "if-none-match" not in site.log.of(target="/echo")[-1].headers
    assert (await named(max_age=HOUR)).cache == "hit"
    assert (await named(max_age=HOUR, mobile=True)).cache == "miss"
    assert (await named(max_age=HOUR)).cache == "miss"
    assert first.page_id == plain.page_id
    async with database.system_tx() as conn:
        statuses = await conn.fetch("SELECT status FROM store.change ORDER BY id")
    assert [row["status"] for row in statuses] == ["new"]


async def test_a_difference_is_between_versions_of_one_kind(named: Any, site: Site) -> None:
    await named(track_changes=True)
    alice = await named(track_changes=True, **COOKIE)
    assert (alice.diff, alice.previous_at) == (None, None)
    site.change("/echo", body=b"<main><h1>Echo</h1><p>It says nothing more.</p></main>")
    again = await named(track_changes=True)
    assert again.diff is not None
    assert "nothing more" in again.diff.text
    assert "alice" not in again.diff.text


async def test_a_304_confirms_the_version_that_it_was_asked_about(
    named: Any, site: Site, url: str
) -> None:
    plain = await named()
    site.slow("/echo", first_byte=1)
    confirming = asyncio.create_task(named())
    await asyncio.to_thread(site.log.wait, lambda log: len(log.of(target="/echo")) == 2)
    site.mend()
    assert "alice" in (await named(**COOKIE)).document.markdown
    confirmed = await confirming
    assert confirmed.code is ExitCode.NOT_MODIFIED
    assert confirmed.version_id == plain.version_id
    assert "alice" not in confirmed.document.markdown
