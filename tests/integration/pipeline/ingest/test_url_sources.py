"""Pages and sites as knowledge sources: fetched and indexed by one job, which ends when all is found."""

import asyncio
from typing import Any

import aiohttp
import msgspec

from tests.site.site import Site
from tests.support.ingest_api import answering, asked, ended
from tests.support.scraper import Scrape, site_settings
from trapline.db.pool import Database
from trapline.pipeline.options import PageOptions
from trapline.settings import Settings


async def stream(
    client: aiohttp.ClientSession, path: str, **body: Any
) -> list[tuple[str, dict[str, Any]]]:
    """Read server-sent events to their end."""
    found: list[tuple[str, dict[str, Any]]] = []
    ask = client.post(path, json=body) if body else client.get(path)
    async with asyncio.timeout(60), ask as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "text/event-stream"
        for block in (await answer.text()).split("\n\n"):
            if block.startswith("event: "):
                name, data = block.split("\n", 1)
                found.append((name[7:], msgspec.json.decode(data.removeprefix("data: "))))
    return found


async def test_one_page_is_told_of_as_it_goes(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    told = await stream(ingest_client, "/upload/url", url=f"{site.url}about/")
    assert [name for name, _ in told] == [
        "started",
        "processing",
        "fetched",
        "indexed",
        "completed",
    ]
    source = told[0][1]["knowledgeSourceId"]
    assert told[3][1]["passages"] > 0
    shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
    assert (shown["status"], shown["kind"], shown["texts"]) == ("completed", "url", 1)
    progress = await asked(ingest_client, f"/api/knowledge-source/{source}/progress")
    assert (progress["total"], progress["completed"]) == (1, 1)
    # The same address is the same source; nothing changed, so nothing is written again.
    async with database.system_tx() as conn:
        before = await conn.fetchval("SELECT max(id) FROM knowledge.chunk")
    again = await stream(ingest_client, f"/upload/url?url={site.url}about/")
    assert again[0][1]["knowledgeSourceId"] == source
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT max(id) FROM knowledge.chunk") == before


async def test_a_page_that_cannot_be_had_says_why(
    ingest_client: aiohttp.ClientSession, site: Site
) -> None:
    told = await stream(ingest_client, "/upload/url", url=f"{site.url}hostile/status/410")
    assert told[-1][0] == "failed"
    assert "robots.txt" in told[-1][1]["error"]
    source = told[0][1]["knowledgeSourceId"]
    async with asyncio.timeout(100):
        while True:
            shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
            if shown["error"]:
                break
            await asyncio.sleep(0.1)
    assert (shown["status"], "robots.txt" in shown["error"]) == ("failed", True)


async def test_a_site_is_fetched_in_the_background(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    application = await asked(ingest_client, "/api/applications", "POST", name="clocks")
    body = {"url": site.url, "crawlLinks": True, "limit": 12, "applicationId": "clocks"}
    async with ingest_client.post("/upload/url", json=body) as answer:
        assert answer.status == 202, await answer.text()
        started = await answer.json()
    # Whoever asks twice is told that it is under way.
    async with ingest_client.post("/upload/url", json=body) as answer:
        assert answer.status in {409, 202}
    job = await ended(ingest_client, started["jobId"])
    assert job["status"] == "completed"
    source = started["knowledgeSourceId"]
    async with database.system_tx() as conn:
        pages = await conn.fetchval("SELECT count(*) FROM store.page WHERE version_id IS NOT NULL")
        texts = await conn.fetchval("SELECT count(*) FROM knowledge.entry")
        visits = await conn.fetchval("SELECT count(DISTINCT url_id) FROM archive.visit")
    assert texts == pages > 5
    # Indexing is outside the limit of pages.
    assert visits <= 12
    for scope in (source, application["id"]):
        progress = await asked(ingest_client, f"/api/knowledge-source/{scope}/progress")
        assert progress["completed"] == progress["total"] >= texts
        assert progress["processing"] == progress["pending"] == 0
    shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
    assert (shown["status"], shown["kind"]) == ("completed", "site")


async def test_a_crawl_with_index_fills_the_source_of_its_site(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    body = {"kind": "crawl", "url": site.url, "options": {"limit": 6, "index": True}}
    job = await asked(ingest_client, "/api/jobs", "POST", **body)
    await ended(ingest_client, job["id"])
    async with database.system_tx() as conn:
        pages = await conn.fetchval("SELECT count(*) FROM store.page WHERE version_id IS NOT NULL")
        row = await conn.fetchrow("SELECT * FROM knowledge.source")
        texts = await conn.fetch("SELECT uri, path, version_id, page_id FROM knowledge.entry")
    assert row is not None
    assert (row["kind"], row["site_id"] is not None) == ("site", True)
    assert len(texts) == pages > 3
    assert all(text["path"].startswith("/") for text in texts)


async def test_what_a_crawl_indexed_is_found_when_its_job_says_completed(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    """Not a moment later: every page is asked for as soon as the status says so."""
    body = {"kind": "crawl", "url": site.url, "options": {"limit": 8, "index": True}}
    job = await asked(ingest_client, "/api/jobs", "POST", **body)
    await ended(ingest_client, job["id"])
    found = await asked(ingest_client, "/api/search", "POST", query="page", mode="vector", limit=50)
    async with database.system_tx() as conn:
        rows = await conn.fetch(
            "SELECT u.path, v.title FROM store.page p JOIN store.version v ON v.id = p.version_id"
            " JOIN frontier.url u ON u.id = p.url_id"
        )
    assert {one["path"] for one in found["items"]} == {row["path"] for row in rows}
    assert len(rows) > 3
    for row in rows:
        for mode in ("keyword", "hybrid"):
            query = {"query": row["title"], "mode": mode, "limit": 20}
            found = await asked(ingest_client, "/api/search", "POST", **query)
            assert row["path"] in {one["path"] for one in found["items"]}, (row["title"], mode)


async def test_a_scrape_can_be_indexed(
    database: Database, server_settings: Settings, site: Site, scrape: Scrape
) -> None:

    options = PageOptions.parse(url=f"{site.url}about/", index=True)
    scraped = await scrape.scraper.scrape(scrape.caller, options)
    assert scraped.ok
    async with answering(database, site_settings(server_settings, site)) as ingest_client:
        await ended(ingest_client, str(scraped.job_id))
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.entry") == 1


async def test_without_asking_nothing_is_indexed(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    body = {"kind": "crawl", "url": site.url, "options": {"limit": 3}}
    job = await asked(ingest_client, "/api/jobs", "POST", **body)
    await ended(ingest_client, job["id"])
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.source") == 0


async def test_bad_addresses_are_refused(ingest_client: aiohttp.ClientSession) -> None:
    for body in (
        {"url": ""},
        {"url": "ftp://example.com/"},
        {"url": "https://example.com/", "limit": 0},
        {"url": "https://example.com/", "applicationId": "nobody"},
        {"url": "https://example.com/", "embeddingConfig": {"chunk_tokens": 3}},
        {"url": "https://example.com/", "embeddingConfig": {"chunk_overlap": 200}},
        {"url": "https://example.com/", "surprise": True},
    ):
        async with ingest_client.post("/upload/url", json=body) as answer:
            assert answer.status in {400, 404}, (body, await answer.text())
