"""Who asks for a scrape is looked up by the statement that begins it: a key that is gone does nothing."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from tests.site.site import Site
from tests.support.http_api import client_of
from tests.support.scraper import site_settings
from trapline import app
from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.settings import Settings


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


async def _key_of(database: Database, name: str) -> str:
    async with database.system_tx() as conn:
        organisation = await tenancy.create_organisation(conn, name)
        return (await tenancy.issue_key(conn, organisation.id, "k")).secret


async def _status(api: aiohttp.ClientSession, url: str, key: str | None, max_age: int = 0) -> int:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    body = {"url": url, "maxAge": max_age}
    async with api.post("/v2/scrape", json=body, headers=headers) as answer:
        await answer.read()
        return answer.status


async def _jobs(database: Database) -> object:
    async with database.system_tx() as conn:
        return await conn.fetchval("SELECT count(*) FROM queue.job WHERE kind = 'scrape'")


async def _revoke(database: Database, key: str) -> None:
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE tenancy.api_key SET revoked_at = now() WHERE prefix = $1", key[:12]
        )


@pytest.mark.parametrize("max_age", [0, 3_600_000])
async def test_a_key_that_was_revoked_between_two_scrapes_does_nothing(
    api: aiohttp.ClientSession, site: Site, database: Database, max_age: int
) -> None:
    key, other = await _key_of(database, "A"), await _key_of(database, "B")
    assert await _status(api, site.at("/about/"), key) == 200
    assert await _status(api, site.at("/contact/"), key) == 200
    await _revoke(database, key)
    asked = site.log.total
    assert await _status(api, site.at("/about/"), key, max_age) == 401
    assert await _status(api, site.at("/about/"), other) == 200
    assert await _jobs(database) == 3
    assert site.log.total == asked + 1


async def test_nobody_in_particular_is_refused_as_soon_as_there_is_a_key(
    api: aiohttp.ClientSession, site: Site, database: Database
) -> None:
    assert await _status(api, site.at("/about/"), None) == 200
    assert await _status(api, site.at("/contact/"), None) == 200
    await _key_of(database, "A")
    assert await _status(api, site.at("/about/"), None) == 401
    assert await _jobs(database) == 2


async def test_a_key_that_may_no_longer_write_is_refused(
    api: aiohttp.ClientSession, site: Site, database: Database
) -> None:
    key = await _key_of(database, "A")
    assert await _status(api, site.at("/about/"), key) == 200
    async with database.system_tx() as conn:
        await conn.execute("UPDATE tenancy.api_key SET scopes = '{read}'")
    assert await _status(api, site.at("/contact/"), key) == 403
    assert await _jobs(database) == 1


async def test_a_key_that_stands_for_others_by_now_acts_for_them(
    api: aiohttp.ClientSession, site: Site, database: Database
) -> None:
    """A server without keys takes whatever comes; the same words may be a key a moment later."""
    key = await _key_of(database, "A")
    async with database.system_tx() as conn:
        row = await conn.fetchrow("DELETE FROM tenancy.api_key RETURNING *")
    assert await _status(api, site.at("/about/"), key) == 200
    async with database.system_tx() as conn:
        values = ", ".join(f"${place}" for place in range(1, len(row) + 1))
        await conn.execute(f"INSERT INTO tenancy.api_key VALUES ({values})", *row.values())
    assert await _status(api, site.at("/contact/"), key) == 200
    async with database.system_tx() as conn:
        names = await conn.fetch(
            "SELECT o.name FROM queue.job j JOIN tenancy.organisation o ON o.id = j.organisation_id"
            " ORDER BY j.created_at"
        )
    assert [row["name"] for row in names] == ["default", "A"]
