"""Webhooks of a Firecrawl elsewhere: signed, stored before they are answered, each taken in once."""

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from pydantic import SecretStr

from tests.support.firecrawl_webhooks import hook, signed
from tests.support.http_api import Served, client_of
from tests.support.ingest_api import answering, asked, ended
from tests.support.settings import change_settings
from tests.support.tcp_proxy import postgres_proxy
from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database, ExternalServer
from trapline.settings import Settings

PATH = "/api/webhooks/firecrawl"
SECRET = "a secret of the account"


@pytest.fixture
def settings(server_settings: Settings) -> Settings:
    return change_settings(server_settings, {"firecrawl_webhook_secret": SecretStr(SECRET)})


@pytest.fixture
async def ingest_client(
    database: Database, settings: Settings
) -> AsyncIterator[aiohttp.ClientSession]:
    async with answering(database, settings) as client:
        yield client


async def send(
    client: aiohttp.ClientSession, body: bytes, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    async with client.post(
        PATH, data=io.BytesIO(body), headers=headers or signed(body, SECRET)
    ) as answer:
        return answer.status, await answer.json()


async def texts(database: Database) -> list[str]:
    async with database.system_tx() as conn:
        rows = await conn.fetch("SELECT uri FROM knowledge.entry ORDER BY id")
    return [row["uri"] for row in rows]


async def test_a_crawl_elsewhere_becomes_a_source(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    application = await asked(ingest_client, "/api/applications", "POST", name="clocks")
    crawl, user = str(uuid4()), str(uuid4())
    routed = {"metadata": {"applicationId": application["id"], "userId": user}}
    for body in (
        hook("started", crawl, **routed),
        *(hook("page", crawl, n, **routed) for n in range(5)),
        hook("completed", crawl, **routed),
    ):
        status, answer = await send(ingest_client, body)
        assert (status, answer["repeated"]) == (200, False), answer
    job = await ended(ingest_client, answer["job_id"])
    assert (job["status"], job["completed"]) == ("completed", 6)
    assert len(await texts(database)) == 5
    listed = await asked(ingest_client, f"/api/knowledge-source?application={application['id']}")
    (source,) = listed["items"]
    assert (source["kind"], source["provider"]) == ("site", "firecrawl")
    progress = await asked(ingest_client, f"/api/knowledge-source/{source['id']}/progress")
    assert (progress["total"], progress["completed"]) == (5, 5)
    async with database.system_tx() as conn:
        told = await conn.fetch("SELECT data FROM queue.event WHERE type = 'item'")
    assert {one["data"]["user_id"] for one in told} == {user}


async def test_it_goes_where_its_metadata_says(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    crawl = str(uuid4())
    await send(ingest_client, hook("page", "first", 1))
    (source,) = (await asked(ingest_client, "/api/knowledge-source"))["items"]
    routed = {"metadata": {"knowledgeSourceId": source["id"]}}
    status, answer = await send(ingest_client, hook("page", crawl, 2, **routed))
    assert status == 200
    await send(ingest_client, hook("completed", crawl, **routed))
    await ended(ingest_client, answer["job_id"])
    assert len((await asked(ingest_client, "/api/knowledge-source"))["items"]) == 1
    for wrong in (str(uuid4()), "nonsense"):
        body = hook("page", str(uuid4()), 1, metadata={"knowledgeSourceId": wrong})
        status, _ = await send(ingest_client, body)
        assert status == 404
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM deliver.inbox") == 3


async def test_what_is_not_signed_is_not_stored(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    body = hook("page", str(uuid4()), 1)
    right = signed(body, SECRET)["X-Firecrawl-Signature"]
    for headers in (
        {"Content-Type": "application/json"},
        signed(body, "another secret"),
        signed(body + b" ", SECRET),
        {"X-Firecrawl-Signature": right.removeprefix("sha256=")},
        {"X-Firecrawl-Signature": right.upper()},
        {"X-Firecrawl-Signature": "sha256=ü"},
    ):
        status, problem = await send(ingest_client, body, headers)
        assert status == 401, problem
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM deliver.inbox") == 0
        assert await conn.fetchval("SELECT count(*) FROM queue.job") == 0


async def test_without_a_secret_nothing_is_taken(served: Served, server_settings: Settings) -> None:
    async with served(server_settings) as client:
        status, _ = await send(client, hook("page", str(uuid4()), 1))
        assert status == 404


async def test_what_cannot_be_read_is_refused(ingest_client: aiohttp.ClientSession) -> None:
    for body, expected in (
        (b"", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"type": "crawl.page"}', 400),
        (b'{"type": "crawl.page", "id": ""}', 400),
        (b"\xff\xfe", 400),
        (json.dumps({"type": "crawl.page", "id": "x", "data": "text"}).encode(), 200),
        (json.dumps({"type": "crawl.page", "id": "x", "data": [None, {}, 5]}).encode(), 200),
        (json.dumps({"type": "else.where", "id": "y\x00z", "data": {}}).encode(), 200),
        (b'{"type": "crawl.page", "id": "x", "data": [' + b"1," * 5000 + b"1]}", 413),
        (b" " * (20 * 2**20 + 1), 413),
    ):
        status, answer = await send(ingest_client, body)
        assert status == expected, (body[:80], answer)


async def test_what_is_sent_again_is_stored_once(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    crawl = str(uuid4())
    body = hook("page", crawl, 1)
    answers = await asyncio.gather(*(send(ingest_client, body) for _ in range(10)))
    assert {status for status, _ in answers} == {200}
    assert sum(not answer["repeated"] for _, answer in answers) == 1
    # Without an id of its own, its bytes tell.
    bare = json.dumps(
        {"type": "crawl.page", "id": crawl, "data": json.loads(body)["data"]}
    ).encode()
    first, second = await send(ingest_client, bare), await send(ingest_client, bare)
    assert (first[1]["repeated"], second[1]["repeated"]) == (False, True)
    await send(ingest_client, hook("completed", crawl))
    job = await ended(ingest_client, first[1]["job_id"])
    assert job["completed"] == 3
    assert await texts(database) == ["https://example.com/1"]


async def test_in_whatever_order_they_come(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    crawl = str(uuid4())
    bodies = [hook("started", crawl), hook("completed", crawl)]
    bodies += [hook("page", crawl, n) for n in range(20)]
    random.Random(7).shuffle(bodies)
    answers = [await send(ingest_client, body) for body in bodies]
    assert {status for status, _ in answers} == {200}
    job = await ended(ingest_client, answers[0][1]["job_id"])
    assert (job["status"], job["completed"]) == ("completed", 21)
    assert len(await texts(database)) == 20


async def test_a_page_after_the_end_is_taken_in_too(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    crawl = str(uuid4())
    _, answer = await send(ingest_client, hook("page", crawl, 1))
    await send(ingest_client, hook("completed", crawl))
    await ended(ingest_client, answer["job_id"])
    status, late = await send(ingest_client, hook("page", crawl, 2))
    assert (status, late["job_id"]) == (200, answer["job_id"])
    async with asyncio.timeout(100):
        while len(await texts(database)) < 2:  # noqa: ASYNC110 (the database has no event)
            await asyncio.sleep(0.1)
    assert (await ended(ingest_client, answer["job_id"]))["completed"] == 3


async def test_how_it_ended_elsewhere_is_how_its_source_ended(
    ingest_client: aiohttp.ClientSession,
) -> None:
    for word, expected in (("failed", "failed"), ("cancelled", "cancelled")):
        crawl = str(uuid4())
        _, answer = await send(ingest_client, hook("page", crawl, 1))
        failed = json.dumps(
            {"success": False, "type": "crawl.page", "id": crawl, "webhookId": str(uuid4()),
             "data": [{"metadata": {"url": "https://example.com/x"}}], "error": "No DNS."}
        ).encode()  # fmt: skip
        await send(ingest_client, failed)
        await send(ingest_client, hook(word, crawl, success=False, error="Out of credits."))
        job = await ended(ingest_client, answer["job_id"])
        assert (job["completed"], job["failed"]) == (1, 2)
        async with asyncio.timeout(100):
            while True:
                items = (await asked(ingest_client, "/api/knowledge-source"))["items"]
                source = next(one for one in items if one["job_id"] == answer["job_id"])
                if source["error"]:
                    break
                await asyncio.sleep(0.1)
        assert (source["status"], source["error"]) == (expected, "Out of credits.")


async def test_while_the_database_is_away_it_is_sent_again_and_stored_once(
    dsn: str, settings: Settings, database: Database
) -> None:
    body = hook("page", str(uuid4()), 1)
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
    async with (
        postgres_proxy(dsn) as way,
        Database.connect(ExternalServer(way.dsn), settings) as distant,
        client_of(application.build(distant, settings)) as client,
    ):
        await way.close()
        status, problem = await send(client, body)
        assert (status, "again" in problem["detail"]) == (503, True)
        await way.open()
        status, answer = await send(client, body)
        assert status == 200, answer
        status, third = await send(client, body)
        assert (status, third["repeated"], third["job_id"]) == (200, True, answer["job_id"])
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM deliver.inbox") == 1
        assert await conn.fetchval("SELECT count(*) FROM queue.task WHERE kind = 'file'") == 1
        assert await conn.fetchval("SELECT pages FROM knowledge.intake") == 1


async def test_five_thousand_pages_at_two_hundred_a_second(
    served: Served, settings: Settings, database: Database
) -> None:
    """The receiving side alone, as its sender would press it; nothing is lost or there twice."""
    crawl, pages = str(uuid4()), 5000
    async with served(settings) as client:
        loop = asyncio.get_running_loop()
        began = loop.time()
        pressing = asyncio.Semaphore(50)

        async def one(number: int) -> int:
            await asyncio.sleep(max(0.0, began + number / 200 - loop.time()))
            body = hook("page", crawl, number)
            async with pressing:
                return (await send(client, body))[0]

        answers = await asyncio.gather(*(one(n) for n in range(pages)))
    assert set(answers) == {200}
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM deliver.inbox") == pages
        assert await conn.fetchval("SELECT count(*) FROM queue.ready") == pages
        assert await conn.fetchval("SELECT pages FROM knowledge.intake") == pages
        assert await conn.fetchval("SELECT sum(total) FROM knowledge.tally") == pages
