"""How far a source or an application is: by asking, over SSE and over WebSocket, as the rows have it."""

import asyncio
from itertools import groupby
from typing import Any

import aiohttp
import msgspec

from tests.site.site import Site
from tests.support.ingest_api import asked, ended, upload
from trapline.db.pool import Database

PARTS = ("completed", "failed", "processing", "pending", "cancelled")


async def test_counters_agree_with_the_rows_at_every_moment(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    application = await asked(ingest_client, "/api/applications", "POST", name="notes")
    files: dict[str, str | bytes] = {
        f"{n}.md": f"# Note {n}\n\nClock {n} is late." for n in range(400)
    }
    files["broken.pdf"] = b"%PDF-1.7 nothing"
    polled: list[dict[str, int]] = []
    streamed: list[dict[str, int]] = []
    socketed: list[dict[str, int]] = []
    path = f"/api/knowledge-source/{application['id']}/events"
    watching = [
        asyncio.create_task(sse(ingest_client, path, streamed)),
        asyncio.create_task(websocket(ingest_client, path, socketed)),
    ]
    _, answer = await upload(ingest_client, files, applicationId="notes")
    last = {"completed": 0, "failed": 0}
    async with asyncio.timeout(90):
        while last["completed"] + last["failed"] < len(files):
            scanned, counted = await repeatable(database)
            assert scanned == counted
            progress = await asked(
                ingest_client, f"/api/knowledge-source/{application['id']}/progress"
            )
            assert sum(progress[name] for name in PARTS) == progress["total"] == len(files)
            assert progress["completed"] >= last["completed"]
            last = progress
            polled.append(progress)
            await asyncio.sleep(0.02)
    await ended(ingest_client, answer["jobId"])
    final = await asked(ingest_client, f"/api/knowledge-source/{application['id']}/progress")
    assert (final["completed"], final["failed"], final["pending"]) == (400, 1, 0)
    async with asyncio.timeout(100):
        while [streamed[-1:], socketed[-1:]] != [[final], [final]]:  # noqa: ASYNC110 (two lists)
            await asyncio.sleep(0.05)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    for told in (streamed, socketed):
        assert all(sum(one[name] for name in PARTS) == one["total"] for one in told)
        counts = [one["completed"] for one in told]
        assert counts == sorted(counts)
    # Whoever was told something, in whichever way, was told how it was between two transactions.
    real = await states(database)
    for told in (polled, streamed, socketed):
        said = {(one["completed"], one["failed"]) for one in told}
        assert said <= real, said - real
        assert len(said) > 2


async def states(database: Database) -> set[tuple[int, int]]:
    """What had completed and failed after each transaction, from the beginning on."""
    async with database.system_tx() as conn:
        rows = await conn.fetch(
            "SELECT xid::text AS xid, data ->> 'status' AS status FROM queue.event"
            " WHERE type = 'item' ORDER BY number"
        )
    completed = failed = 0
    found = {(0, 0)}
    for _, part in groupby(rows, key=lambda row: row["xid"]):
        ends = [row["status"] for row in part]
        completed += ends.count("completed")
        failed += ends.count("failed")
        found.add((completed, failed))
    return found


async def repeatable(database: Database) -> tuple[dict[str, int], dict[str, int]]:
    """Both counts of one and the same moment."""
    async with database.system_tx() as conn:
        row = await conn.fetchrow(
            "SELECT (SELECT row_to_json(a) FROM (SELECT count(*) AS total,"
            " count(*) FILTER (WHERE status = 'completed') AS completed,"
            " count(*) FILTER (WHERE status = 'failed') AS failed FROM knowledge.source) a) AS rows,"
            " (SELECT row_to_json(b) FROM (SELECT sum(total) AS total, sum(completed) AS completed,"
            " sum(failed) AS failed FROM knowledge.tally) b) AS tally"
        )
    assert row is not None
    return row["rows"], row["tally"]


async def sse(client: aiohttp.ClientSession, path: str, told: list[dict[str, int]]) -> None:
    async with client.get(path) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                told += [msgspec.json.decode(line.removeprefix(b"data: "))]


async def websocket(client: aiohttp.ClientSession, path: str, told: list[dict[str, int]]) -> None:
    async with client.ws_connect(path) as socket:
        async for message in socket:
            told += [msgspec.json.decode(message.data)["data"]]


async def test_a_source_is_watched_to_its_end(
    ingest_client: aiohttp.ClientSession, site: Site
) -> None:
    body = {"url": site.url, "crawlLinks": True, "limit": 5}
    started = await asked(ingest_client, "/upload/url", "POST", **body)
    path = f"/api/knowledge-source/{started['knowledgeSourceId']}/events"
    async with asyncio.timeout(60), ingest_client.ws_connect(path) as socket:
        messages: list[Any] = [msgspec.json.decode(message.data) async for message in socket]
    items = [one["data"] for one in messages if one["type"] == "item"]
    last = [one["data"] for one in messages if one["type"] == "progress"][-1]
    assert last["completed"] == last["total"] == len(items) > 2
    assert {one["status"] for one in items} == {"completed"}


async def test_who_watches_nothing_is_told_so(ingest_client: aiohttp.ClientSession) -> None:
    for wrong in ("nothing", "00000000-0000-0000-0000-000000000000"):
        async with ingest_client.ws_connect(f"/api/knowledge-source/{wrong}/events") as socket:
            message = await socket.receive()
            assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
    async with ingest_client.get(
        "/api/knowledge-source/00000000-0000-0000-0000-000000000000/events"
    ) as answer:
        assert answer.status == 404
