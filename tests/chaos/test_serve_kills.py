"""`trapline serve` on its own embedded PostgreSQL, killed in every way."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.embedded_client import EmbeddedHome, embedded_home


@pytest.fixture
def server_home(tmp_path: Path) -> Iterator[EmbeddedHome]:
    with embedded_home(tmp_path / "home") as server_home:
        yield server_home


@pytest.fixture
def trapline(server_home: EmbeddedHome, tmp_path: Path) -> Trapline:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    own = {"TRAPLINE_HOME": str(server_home.home), "TRAPLINE_ALLOW_NETS": "127.0.0.0/8"}
    return Trapline(kept | own, tmp_path)


async def names(url: str) -> list[str]:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/api/organisations") as answer:
        assert answer.status == 200, await answer.text()
        return [row["name"] for row in await answer.json()]


async def test_requests_outlive_the_database_server(
    trapline: Trapline, server_home: EmbeddedHome
) -> None:
    process, url = await trapline.serving()
    assert await names(url) == ["default"]
    for victim in (server_home.postmaster(), *server_home.watchers()):
        os.kill(victim, signal.SIGKILL)
        assert await names(url) == ["default"]
    process.terminate()
    await process.communicate()
    assert process.returncode == 0
    server_home.wait_until_gone()


async def test_what_was_committed_survives_kill_9(
    trapline: Trapline, server_home: EmbeddedHome
) -> None:
    process, url = await trapline.serving()
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/api/organisations", json={"name": "Acme"}) as answer,
    ):
        assert answer.status == 201
    process.kill()
    await process.communicate()
    server_home.wait_until_gone()
    process, url = await trapline.serving()
    assert await names(url) == ["default", "Acme"]
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == 0


async def test_scrapes_that_were_answered_are_stored_or_dead_after_kill_9(
    trapline: Trapline, server_home: EmbeddedHome, site: Site
) -> None:
    """They are stored behind their answers: killed in between, none is half there or open for ever."""
    process, url = await trapline.serving()
    pages = [f"{site.url}{path}" for path in ("", "about/", "manual/", "journal/")]
    async with aiohttp.ClientSession(url) as client:
        jobs = [await _scraped(client, page) for page in pages]
    process.kill()
    await process.communicate()
    server_home.wait_until_gone()
    process, url = await trapline.serving()
    async with aiohttp.ClientSession(url) as client:
        ends = [await _ended(client, job) for job in jobs]
        async with client.get("/api/pages") as answer:
            stored = {row["url"] for row in (await answer.json())["items"]}
    process.terminate()
    await process.communicate()
    # The last was answered a moment before the end: mostly too late to be stored.
    assert all("died" in job["error"] for job in ends if job["status"] == "failed")
    assert stored == {
        page for page, job in zip(pages, ends, strict=True) if job["status"] == "completed"
    }
    sound = await trapline("audit")
    assert sound.status == 0, sound.out


async def _scraped(client: aiohttp.ClientSession, page: str) -> str:
    async with client.post("/v2/scrape", json={"url": page, "maxAge": 0}) as answer:
        body = await answer.json()
        assert answer.status == 200, body
        assert body["data"]["markdown"]
        return str(body["scrape_id"])


async def _ended(client: aiohttp.ClientSession, job_id: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            async with client.get(f"/api/jobs/{job_id}") as answer:
                job: dict[str, Any] = await answer.json()
            if job["status"] in {"completed", "failed"}:
                return job
            await asyncio.sleep(0.1)
