"""Sources that a Firecrawl elsewhere crawls: a real one of ours, and one that answers wrongly."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from aiohttp import web
from pydantic import SecretStr

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.firecrawl_webhooks import hook, signed
from tests.support.ingest_api import answering, asked, ended
from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.pipeline.ingest import remote_crawls
from trapline.settings import RemoteFirecrawlSettings, Settings

SECRET = "s3cret"


@asynccontextmanager
async def near(
    database: Database, settings: Settings, far: str
) -> AsyncIterator[aiohttp.ClientSession]:
    """Our side, which the far one can reach."""
    listener = socket.create_server(("127.0.0.1", 0))
    own = change_settings(
        settings,
        {
            "firecrawl_api_url": far,
            "firecrawl_api_key": SecretStr("fc-1"),
            "firecrawl_webhook_secret": SecretStr(SECRET),
            "public_url": f"http://127.0.0.1:{listener.getsockname()[1]}/",
        },
    )
    async with answering(database, own, listener) as client:
        yield client


@dataclass
class Far:
    """A Firecrawl on loopback that takes requests as a test says."""

    url: str = ""
    answers: list[web.Response] = field(default_factory=list)
    got: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    called_off: list[str] = field(default_factory=list)

    async def cancel(self, request: web.Request) -> web.Response:
        self.called_off.append(request.match_info["crawl"])
        if self.answers:
            return self.answers.pop(0)
        return web.json_response({"status": "cancelled"})

    async def crawl(self, request: web.Request) -> web.Response:
        self.got.append(await request.json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.answers:
            return self.answers.pop(0)
        return web.json_response({"success": True, "id": f"crawl-{len(self.got)}", "url": "x"})


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    found = Far()
    app = web.Application()
    app.router.add_post("/v2/crawl", found.crawl)
    app.router.add_delete("/v2/crawl/{crawl}", found.cancel)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


async def begin(ingest_client: aiohttp.ClientSession, **body: Any) -> dict[str, Any]:
    wish = {"url": "https://example.com/", "crawlLinks": True, "provider": "firecrawl"} | body
    found: dict[str, Any] = await asked(ingest_client, "/upload/url", "POST", **wish)
    return found


async def requested(far: Far, times: int) -> None:
    async with asyncio.timeout(60):
        while len(far.got) < times:  # noqa: ASYNC110 (the far side has no event)
            await asyncio.sleep(0.05)


async def shown(ingest_client: aiohttp.ClientSession, source: str) -> dict[str, Any]:
    found: dict[str, Any] = await asked(ingest_client, f"/api/knowledge-source/{source}")
    return found


async def test_a_real_server_crawls_and_its_pages_are_found_here(
    database: Database, server_settings: Settings, site_server: Site, served_site: str
) -> None:
    url = site_server.url
    async with near(database, server_settings, served_site) as ingest_client:
        application = await asked(ingest_client, "/api/applications", "POST", name="clocks")
        started = await begin(ingest_client, url=url, limit=4, maxDepth=2, applicationId="clocks")
        job = await ended(ingest_client, started["jobId"])
        assert job["status"] == "completed", job
        source = await shown(ingest_client, started["knowledgeSourceId"])
        assert (source["provider"], source["kind"], source["uri"]) == ("firecrawl", "site", url)
        assert source["fetching"] == {"limit": 4, "max_depth": 2}
        assert 1 < source["texts"] <= 4
        for scope in (source["id"], application["id"]):
            progress = await asked(ingest_client, f"/api/knowledge-source/{scope}/progress")
            assert progress["completed"] == progress["total"] == source["texts"]
        # All in the job that asked, and in no other.
        async with database.system_tx() as conn:
            rows = await conn.fetch("SELECT job_id, ended FROM knowledge.intake")
            made = await conn.fetchval("SELECT count(*) FROM queue.job")
        assert [(row["job_id"], row["ended"]) for row in rows] == [
            (UUID(started["jobId"]), "completed")
        ]
        assert made == 1
        # Fetched again, it is asked for again; the same pages are there once.
        again = await asked(ingest_client, f"/api/knowledge-source/{source['id']}/refresh", "POST")
        assert (await ended(ingest_client, again["job_id"]))["status"] == "completed"
        assert (await shown(ingest_client, source["id"]))["texts"] >= source["texts"]
        async with database.system_tx() as conn:
            twice = await conn.fetchval(
                "SELECT count(*) - count(DISTINCT uri) FROM knowledge.entry"
            )
            intakes = await conn.fetchval("SELECT count(DISTINCT job_id) FROM knowledge.intake")
        assert (twice, intakes) == (0, 2)


async def test_what_is_asked_and_how_it_is_routed(
    database: Database, server_settings: Settings, far: Far
) -> None:
    async with near(database, server_settings, far.url) as ingest_client:
        application = await asked(ingest_client, "/api/applications", "POST", name="clocks")
        user = (await asked(ingest_client, "/api/members", "POST", email="ada@example.com"))["id"]
        started = await begin(
            ingest_client, applicationId="clocks", userId=user, limit=7, maxDepth=3
        )
        await requested(far, 1)
        routed = {
            "knowledgeSourceId": started["knowledgeSourceId"],
            "applicationId": application["id"],
            "userId": user,
            "traplineJobId": started["jobId"],
        }
        for word, pages in (("page", (1,)), ("page", (2,)), ("completed", ())):
            body = hook(word, "crawl-1", *pages, metadata=routed)
            async with ingest_client.post(
                "/api/webhooks/firecrawl", data=body, headers=signed(body, SECRET)
            ) as answer:
                assert (await answer.json())["job_id"] == started["jobId"]
        job = await ended(ingest_client, started["jobId"])
        assert (job["status"], job["completed"]) == ("completed", 4)
    (request,) = far.got
    assert request["webhook"]["metadata"] == routed
    assert (request["limit"], request["maxDiscoveryDepth"]) == (7, 3)
    assert request["scrapeOptions"] == {"formats": ["markdown"], "onlyMainContent": True}
    assert far.headers[0]["authorization"] == "Bearer fc-1"
    assert UUID(far.headers[0]["x-idempotency-key"])
    hooks = request["webhook"]["url"]
    assert hooks.endswith("/api/webhooks/firecrawl?organisation=" + hooks.rpartition("=")[2])


async def test_refusals_are_the_sources_reason(
    database: Database, server_settings: Settings, far: Far
) -> None:
    wrong = {
        "402": web.json_response({"success": False, "error": "Out of credits."}, status=402),
        "Out of": web.json_response({"error": "Out of order."}, status=403),
        "302": web.Response(status=302, headers={"Location": "http://169.254.169.254/"}),
        "cannot be read": web.Response(text="<html>"),
        "be read": web.json_response({"success": True, "id": 7}),
        "answer": web.json_response([]),
    }
    async with near(database, server_settings, far.url) as ingest_client:
        for number, (why, answer) in enumerate(wrong.items()):
            far.answers = [answer]
            started = await begin(ingest_client, url=f"https://example.com/{number}")
            job = await ended(ingest_client, started["jobId"])
            assert job["status"] == "failed", (why, job)
            assert why in job["error"], job["error"]


async def test_a_busy_one_is_asked_again_with_the_same_key(
    database: Database, server_settings: Settings, far: Far
) -> None:
    far.answers = [web.Response(status=429, headers={"Retry-After": "1"}, text="slowly")]
    async with near(database, server_settings, far.url) as ingest_client:
        started = await begin(ingest_client)
        routed = {
            "traplineJobId": started["jobId"],
            "knowledgeSourceId": started["knowledgeSourceId"],
        }
        body = hook("completed", "crawl-2", metadata=routed)
        await requested(far, 2)
        async with ingest_client.post(
            "/api/webhooks/firecrawl", data=body, headers=signed(body, SECRET)
        ) as answer:
            assert answer.status == 200
        await ended(ingest_client, started["jobId"])
    first, second = (one["x-idempotency-key"] for one in far.headers)
    assert first == second


async def test_what_is_cancelled_or_deleted_here_ends_there(
    database: Database, server_settings: Settings, far: Far
) -> None:
    async with near(database, server_settings, far.url) as ingest_client:
        started = [await begin(ingest_client, url=f"https://example.com/{n}") for n in range(2)]
        async with asyncio.timeout(60):
            while True:
                async with database.system_tx() as conn:
                    asked_for = await conn.fetch("SELECT job_id, crawl FROM knowledge.intake")
                if len(asked_for) == len(started):
                    break
                await asyncio.sleep(0.05)
        crawls = {str(row["job_id"]): row["crawl"] for row in asked_for}
        # One whose crawl has ended meanwhile is told so; that is what was wanted.
        far.answers = [web.json_response({"error": "ended"}, status=409)]
        first, second = (one["knowledgeSourceId"] for one in started)
        await asked(ingest_client, f"/api/knowledge-source/{first}/cancel", "POST")
        await called_off(far, 1)
        await asked(ingest_client, f"/api/knowledge-source/{second}", "DELETE")
        await called_off(far, 2)
        assert far.called_off == [crawls[one["jobId"]] for one in started]
        async with database.system_tx() as conn:
            ends = await conn.fetch(
                "SELECT id FROM queue.job WHERE metadata ? 'cancelled_job_id' ORDER BY created_at"
            )
        for row in ends:
            assert (await ended(ingest_client, row["id"]))["status"] == "completed"
        assert len(ends) == 2


async def called_off(far: Far, times: int) -> None:
    async with asyncio.timeout(60):
        while len(far.called_off) < times:  # noqa: ASYNC110 (the far side has no event)
            await asyncio.sleep(0.05)


async def test_without_its_settings_it_is_refused(
    ingest_client: aiohttp.ClientSession, trapline: Trapline, server_settings: Settings
) -> None:
    body = {"url": "https://example.com/", "provider": "firecrawl"}
    async with ingest_client.post("/upload/url", json=body) as answer:
        problem = await answer.json()
        assert answer.status == 503
    for name in ("FIRECRAWL_API_URL", "FIRECRAWL_WEBHOOK_SECRET", "TRAPLINE_PUBLIC_URL"):
        assert name in problem["detail"]
    async with ingest_client.post("/upload/url", json=body | {"provider": "somebody"}) as answer:
        assert answer.status == 400
    refused = await trapline("sources", "add", "https://example.com/", "--provider", "firecrawl")
    assert refused.status != 0
    assert "TRAPLINE_PUBLIC_URL" in refused.err
    settings = {
        "FIRECRAWL_API_URL": "http://127.0.0.1:9",
        "FIRECRAWL_WEBHOOK_SECRET": "x",
        "TRAPLINE_PUBLIC_URL": "http://127.0.0.1:8",
    }
    added = await trapline(
        "sources", "add", "https://example.com/", "--provider", "firecrawl", "--json", **settings
    )
    assert added.status == 0, added.err
    listed = await trapline("sources", "show", added.json["source_id"], "--json")
    assert listed.json["provider"] == "firecrawl"
    # Whoever fetched it, its texts can be cut in another way.
    anew = await trapline("sources", "reprocess", added.json["source_id"], "--chunk-tokens", "128")
    assert anew.status == 0, anew.err
    wrong = await trapline("sources", "reprocess", added.json["source_id"], "--model", "nobody's")
    assert (wrong.status != 0, "nobody's" in wrong.err) == (True, True)


def test_all_that_is_missing_is_named() -> None:
    remote_crawls.require_settings(
        RemoteFirecrawlSettings(
            url="http://a", public_url="http://b", webhook_secret=SecretStr("c")
        )
    )
    every = "FIRECRAWL_API_URL and FIRECRAWL_WEBHOOK_SECRET and TRAPLINE_PUBLIC_URL"
    with pytest.raises(Unavailable, match=every):
        remote_crawls.require_settings(RemoteFirecrawlSettings())
