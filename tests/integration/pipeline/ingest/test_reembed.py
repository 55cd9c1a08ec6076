"""Better embeddings: an endpoint that is busy at times, renewal beside what is found, upgrades."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import web

from tests.support.ingest_api import answering, asked, ended, upload
from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.knowledge.embedding.embedders import STATIC, Embedders
from trapline.pipeline.ingest import reembed
from trapline.settings import Settings

TEXT = "\n\n".join(
    f"## Part {n}\n\n" + f"Clock number {n} is late by a minute. " * 20 for n in range(8)
)


@dataclass
class Endpoint:
    """Embeds like OpenAI's, counts what it was asked, and is busy when told to be."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    busy: int = 0
    wish: str = "0"
    times: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def embed(self, request: web.Request) -> web.Response:
        self.times.append(time.time())
        if self.busy:
            self.busy -= 1
            return web.Response(status=429, headers={"Retry-After": self.wish}, text="slowly")
        body: dict[str, Any] = await request.json()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        self.asked += body["input"]
        rows = [
            {"index": at, "embedding": [byte + 1.0 for byte in sha256(text.encode()).digest()[:8]]}
            for at, text in enumerate(body["input"])
        ]
        return web.json_response({"data": rows[::-1]})


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    found = Endpoint()
    app = web.Application()
    app.router.add_post("/v1/embeddings", found.embed)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}/v1"
    yield found
    await runner.cleanup()


@pytest.fixture
def better(server_settings: Settings, endpoint: Endpoint) -> Settings:
    return change_settings(
        server_settings,
        {
            "embed_url": endpoint.url,
            "embed_model": "tiny",
            "embed_dimensions": 8,
            "embed_batch": 4,
            "embed_concurrency": 2,
        },
    )


async def models(database: Database) -> list[tuple[str, int]]:
    async with database.system_tx() as conn:
        rows = await conn.fetch(
            "SELECT m.name, count(*) AS n FROM knowledge.vector v"
            " JOIN knowledge.model m ON m.id = v.model_id GROUP BY m.name ORDER BY m.name"
        )
    return [(row["name"], row["n"]) for row in rows]


async def test_an_endpoint_is_asked_in_bounded_batches_and_again_when_busy(
    better: Settings, endpoint: Endpoint
) -> None:
    endpoint.busy = 2
    embedder = Embedders(better.embedding).default
    texts = [f"text {n}" for n in range(30)]
    vectors = await embedder.embed(texts)
    assert vectors.shape == (30, 8)
    assert sorted(endpoint.asked) == sorted(texts)
    assert endpoint.most_at_once <= 2
    again = await embedder.embed(texts[7:8])
    assert (vectors[7] == again[0]).all()


@pytest.mark.parametrize("as_date", [False, True])
async def test_a_busy_endpoint_is_asked_again_when_it_said(
    better: Settings, endpoint: Endpoint, *, as_date: bool
) -> None:
    # The usual pause is a second: what is longer was asked for.
    endpoint.busy, moment = 1, int(time.time()) + 4
    endpoint.wish = formatdate(moment, usegmt=True) if as_date else "3"
    await Embedders(better.embedding).default.embed(["clock"])
    first, second = endpoint.times
    assert second >= (moment - 0.1 if as_date else first + 2.9)


async def test_what_did_not_change_is_not_embedded_again(
    database: Database, better: Settings, endpoint: Endpoint
) -> None:
    async with answering(database, better) as ingest_client:
        _, first = await upload(ingest_client, {"a.md": TEXT})
        await ended(ingest_client, first["jobId"])
        before = len(endpoint.asked)
        assert before > 4
        changed = TEXT.replace("Clock number 3 is", "Clock number three was")
        _, second = await upload(ingest_client, {"a.md": changed})
        await ended(ingest_client, second["jobId"])
        assert 0 < len(endpoint.asked) - before < before / 2


async def test_a_source_is_made_anew_beside_what_is_found(
    database: Database, server_settings: Settings
) -> None:
    async with answering(database, server_settings) as ingest_client:
        _, answer = await upload(ingest_client, {"a.md": TEXT})
        await ended(ingest_client, answer["jobId"])
        (source,) = answer["knowledgeSourceIds"]
        path = f"/api/knowledge-source/{source}"
        before = await asked(ingest_client, path)
        config = {"chunk_tokens": 64, "chunk_overlap": 8}
        job = await asked(ingest_client, f"{path}/reprocess", "POST", embedding_config=config)
        assert (await ended(ingest_client, job["job_id"]))["status"] == "completed"
        after = await asked(ingest_client, path)
        assert (after["generation"], after["config"]["chunk_tokens"]) == (1, 64)
        assert after["passages"] > before["passages"]
        assert (after["texts"], after["status"]) == (1, "completed")
        async with database.system_tx() as conn:
            assert await conn.fetchval("SELECT count(*) FROM knowledge.entry") == 1
        wrong = {"embedding_config": {"model": "nobody has this"}}
        async with ingest_client.post(f"{path}/reprocess", json=wrong) as refused:
            assert refused.status == 503


async def test_sources_are_upgraded_in_the_background(
    database: Database, server_settings: Settings, better: Settings, endpoint: Endpoint
) -> None:
    async with answering(database, server_settings) as ingest_client:
        _, answer = await upload(ingest_client, {f"{n}.md": f"{TEXT} {n}" for n in range(3)})
        await ended(ingest_client, answer["jobId"])
    assert [name for name, _ in await models(database)] == [STATIC]
    improved = replace(database, settings=better)
    async with answering(improved, better) as ingest_client:
        await reembed.reembed_outdated(improved)
        async with asyncio.timeout(60):
            while [name for name, _ in await models(database)] != ["tiny"]:  # noqa: ASYNC110 (rows)
                await asyncio.sleep(0.1)
        for source in answer["knowledgeSourceIds"]:
            shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
            assert (shown["config"]["model"], shown["status"]) == ("tiny", "completed")
    assert await reembed.reembed_outdated(improved) == 0
    # Without the endpoint nothing is made worse again.
    assert await reembed.reembed_outdated(database) == 0
    assert len(endpoint.asked) > 10
