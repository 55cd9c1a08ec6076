"""Webhooks of a crawl from a running server, also when that is killed in the middle."""

import asyncio
import hashlib
import hmac
from pathlib import Path

import aiohttp

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.queue_jobs import until
from tests.support.webhook_receiver import Receiver, hang, receiving

SECRET = "s3cret"


def with_webhooks(trapline: Trapline, site: Site) -> Trapline:
    more = {"TRAPLINE_ALLOW_LOCAL_WEBHOOKS": "true", "TRAPLINE_WEBHOOK_SECRET": SECRET}
    return Trapline(trapline.environment | site.env() | more, trapline.directory)


async def start(url: str, site: Site, receiver: Receiver, limit: int) -> str:
    body = {
        "url": site.at("/glossary/"),
        "limit": limit,
        "sitemap": "skip",
        "maxConcurrency": 4,
        "webhook": {"url": receiver.url, "metadata": {"order": "7"}, "headers": {"X-Mine": "yes"}},
    }
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/v2/crawl", json=body) as answer,
    ):
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["id"])


def assert_told(receiver: Receiver, job_id: str, pages: int) -> None:
    """Started, all pages with their content, completed; what came twice has the same id."""
    first: dict[str, str] = {}
    for received in receiver.got:
        body = received.body
        signed = hmac.new(SECRET.encode(), received.raw, hashlib.sha256).hexdigest()
        assert received.headers["X-Firecrawl-Signature"] == f"sha256={signed}"
        assert received.headers["X-Mine"] == "yes"
        assert (body["id"], body["metadata"]) == (job_id, {"order": "7"})
        first.setdefault(body["webhookId"], body["type"])
    assert list(first.values()) == ["crawl.started", *["crawl.page"] * pages, "crawl.completed"]
    documents = {
        received.body["webhookId"]: received.body["data"][0]
        for received in receiver.got
        if received.body["type"] == "crawl.page"
    }
    assert len({document["metadata"]["sourceURL"] for document in documents.values()}) == pages
    assert all(document["markdown"] for document in documents.values())


async def test_a_crawl_is_told_of(trapline: Trapline, site: Site) -> None:
    program = with_webhooks(trapline, site)
    process, url = await program.serving()
    async with receiving() as receiver:
        job_id = await start(url, site, receiver, 6)
        await until(lambda: "crawl.completed" in receiver.names, 60)
        assert_told(receiver, job_id, 6)
        listed = await program("webhooks", "list", "--job", job_id, "--json")
        assert {row["state"] for row in listed.json} == {"delivered"}
        again = await program("webhooks", "replay", listed.json[0]["id"], "--json")
        assert again.json == {"replayed": 1}
        await until(lambda: receiver.names.count("crawl.completed") == 2, 30)
        shown = await program("webhooks", "show", listed.json[0]["id"], "--json")
        assert shown.json["url"] == receiver.url
    process.terminate()
    await process.communicate()


async def test_kill_9_in_the_middle_loses_no_webhook(trapline: Trapline, site: Site) -> None:
    program = with_webhooks(trapline, site)
    process, url = await program.serving()
    receiver = Receiver()

    async def hang_later(count: int, _: object) -> int:
        return await hang() if count > 4 else 200

    receiver.answer = hang_later
    async with receiving(receiver):
        job_id = await start(url, site, receiver, 12)
        await until(lambda: receiver.requests > 4, 60)
        process.kill()
        await process.communicate()
        receiver.answer = None
        process, _ = await program.serving()
        await until(lambda: "crawl.completed" in receiver.names, 120)
    process.terminate()
    await process.communicate()
    assert_told(receiver, job_id, 12)


async def test_a_cancelled_crawl_tells_so_once(
    trapline: Trapline, site: Site, tmp_path: Path
) -> None:
    program = with_webhooks(trapline, site)
    process, url = await program.serving()
    site.slow("/glossary/*", first_byte=0.3)
    async with receiving() as receiver:
        job_id = await start(url, site, receiver, 30)
        await until(lambda: "crawl.page" in receiver.names, 60)
        async with (
            aiohttp.ClientSession() as client,
            client.delete(f"{url}/v2/crawl/{job_id}") as answer,
        ):
            assert await answer.json() == {"status": "cancelled"}
        await until(lambda: "crawl.cancelled" in receiver.names, 30)
        await asyncio.sleep(1)
    process.terminate()
    await process.communicate()
    assert receiver.names[-1] == "crawl.cancelled"
    assert receiver.names.count("crawl.cancelled") == 1
