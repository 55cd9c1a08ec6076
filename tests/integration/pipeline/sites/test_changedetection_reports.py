"""Reports of changedetection.io: signed, stored before they are answered, and each counted once."""

import asyncio
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from pydantic import SecretStr

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.http_api import Served
from tests.support.scraper import site_settings
from tests.support.settings import change_settings
from trapline import app
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline import after_job
from trapline.pipeline.sites import changedetection_reports
from trapline.settings import Settings

PATH = "/api/webhooks/changedetection"
SECRET = "a secret of the watcher"


@pytest.fixture
def settings(server_settings: Settings, site: Site) -> Settings:
    secret = {"changedetection_secret": SecretStr(SECRET)}
    return change_settings(site_settings(server_settings, site), secret)


@pytest.fixture
async def watched(served: Served, settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    async with served(settings) as client:
        yield client


def report(url: str, **fields: Any) -> bytes:
    return json.dumps({"watch_id": "w-1", "watch_url": url} | fields).encode()


async def signed(api: aiohttp.ClientSession, body: bytes) -> dict[str, str]:
    """Sign as the caller's organisation does."""
    async with api.get(PATH) as answer:
        return signature(body, (await answer.json())["secret"])


def signature(body: bytes, secret: str) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Trapline-Signature": f"sha256={digest}", "Content-Type": "application/json"}


async def send(api: aiohttp.ClientSession, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    async with api.post(PATH, data=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_a_report_is_stored_looked_at_again_and_settled(
    watched: aiohttp.ClientSession, database: Database, settings: Settings, site: Site
) -> None:
    body = report(f"{site.url}about/", diff="one line", diff_url="https://watch.test/d/1", tag="x")
    status, stored = await send(watched, body, await signed(watched, body))
    assert status == 202, stored
    assert (stored["rescrape_status"], stored["repeated"]) == ("queued", False)
    async with app.run_worker(database, settings), asyncio.timeout(60):
        while True:
            await after_job.follow_up(database)
            async with watched.get(f"/api/changes/{stored['change_id']}") as answer:
                change = await answer.json()
            if change["rescrape_status"] != "queued":
                break
            await asyncio.sleep(0.1)
    assert change["rescrape_status"] == "completed"
    assert change["indexed_at"] is not None
    assert (change["source"], change["status"], change["watch_id"]) == (
        "changedetection",
        "changed",
        "w-1",
    )
    assert change["summary"] == "one line"
    assert change["snapshot_url"] == "https://watch.test/d/1"
    assert change["metadata"]["tag"] == "x"
    assert change["version"] == 1
    assert site.log.pages() == {f"{site.url}about/": 1}


async def test_the_same_report_twice_is_one_event_and_one_look(
    watched: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    body = report(site.url)
    headers = await signed(watched, body)
    answers = await asyncio.gather(*(send(watched, body, headers) for _ in range(8)))
    # Whoever came in between is asked to send it again, and then finds it.
    assert {status for status, _ in answers} <= {202, 409}
    again, stored = await send(watched, body, await signed(watched, body))
    assert (again, stored["repeated"]) == (202, True)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM store.change") == 1
        assert (
            await conn.fetchval("SELECT count(*) FROM queue.job WHERE kind = 'batch_scrape'") == 1
        )
        assert await conn.fetchval("SELECT count(*) FROM queue.ready") <= 1


async def test_what_is_not_signed_is_not_stored(
    watched: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    body = report(site.url)
    for headers in (
        {},
        # The server's own secret signs for nobody: each organisation has one that is made from it.
        signature(body, SECRET),
        signature(body, "another secret"),
        await signed(watched, body + b" "),
        {"X-Trapline-Signature": "sha256=ü"},
    ):
        status, problem = await send(watched, body, headers)
        assert status == 401, problem
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM store.change") == 0


async def test_without_a_secret_nothing_is_taken(api: aiohttp.ClientSession) -> None:
    body = report("https://example.com/")
    assert (await send(api, body, signature(body, SECRET)))[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"watch_id": "", "watch_url": "https://example.com/"}',
        b'{"watch_id": "1", "watch_url": "file:///etc/passwd"}',
        b'{"watch_id": "1", "watch_url": "https://example.com/", "detected_at": "soon"}',
        b"\xff\xfe",
        b'{"watch_id": "1"' * 1000,
    ],
)
async def test_what_is_no_report_is_refused(watched: aiohttp.ClientSession, body: bytes) -> None:
    status, problem = await send(watched, body, await signed(watched, body))
    assert status == 400, problem


async def test_what_is_too_large_is_refused(watched: aiohttp.ClientSession) -> None:
    body = report("https://example.com/", diff="x" * 2**20)
    headers = await signed(watched, body)
    async with watched.post(PATH, data=io.BytesIO(body), headers=headers) as answer:
        assert answer.status == 413


async def test_odd_fields_are_kept_and_hurt_nobody(
    watched: aiohttp.ClientSession, database: Database
) -> None:
    body = report(
        "https://example.com/a\u0000b",
        diff="\u0000",
        deep={"\u0000": ["\u0000"]},
        detected_at="1999-01-01T00:00:00",
    )
    status, stored = await send(watched, body, await signed(watched, body))
    assert status == 202, stored
    async with database.system_tx() as conn:
        row = await conn.fetchrow("SELECT detected_at, now() AS now FROM store.change")
    # A clock that is decades wrong is not believed.
    assert (row["now"] - row["detected_at"]).total_seconds() < 60


async def test_one_organisations_secret_signs_for_no_other(
    watched: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    async with database.system_tx() as conn:
        await conn.execute("INSERT INTO tenancy.organisation (name) VALUES ('neighbour')")
    body = report(site.url)
    headers = await signed(watched, body)
    for other in ("neighbour", "nobody at all"):
        async with watched.post(
            PATH, data=body, headers=headers, params={"organisation": other}
        ) as answer:
            # Whether there is such an organisation is not said, either.
            assert answer.status == 401
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM store.change") == 0


async def test_the_command_line_shows_the_secret_of_an_organisation(trapline: Trapline) -> None:
    missing = await trapline("webhooks", "secret")
    assert missing.status == 3
    assert "TRAPLINE_CHANGEDETECTION_SECRET" in missing.err
    given = {"TRAPLINE_CHANGEDETECTION_SECRET": SECRET}
    assert (await trapline("webhooks", "secret", "--org", "nobody", **given)).status == 3
    shown = (await trapline("webhooks", "secret", "--json", **given)).json
    organisation_id = OrganisationId(UUID(shown["organisation_id"]))
    assert shown["secret"] == changedetection_reports.signing_secret(SECRET, organisation_id)
    assert (await trapline("webhooks", "secret", **given)).out.strip() == shown["secret"]
