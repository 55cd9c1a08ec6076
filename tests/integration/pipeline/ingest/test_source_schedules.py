"""Sources that are fetched again: as they were fetched, by themselves, paused, and what was lost."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import aiohttp

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.ingest_api import asked, ended
from tests.support.queue_jobs import working
from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.knowledge import progress_counters, sources
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.progress_counters import CounterChange
from trapline.knowledge.sources import NewSource
from trapline.model import JobId, OrganisationId, PageId, SourceId
from trapline.pipeline import after_job, job_templates
from trapline.pipeline.ingest import source_operations
from trapline.pipeline.kinds import INDEX, IndexTask, ingest_kinds
from trapline.pipeline.sql.sources import SourceDetails
from trapline.queue import jobs
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.maintenance import dead_workers
from trapline.queue.schedule import schedules
from trapline.queue.tasks import NewTask, Task

DAY = 86400


async def added(ingest_client: aiohttp.ClientSession, **body: Any) -> tuple[str, str]:
    """Fetch a site or a page; return its source and its ended job."""
    async with ingest_client.post("/upload/url", json={"crawlLinks": True} | body) as answer:
        text = await answer.text()
    # A page is told of as it goes; the first event says what was begun.
    told = next((line[6:] for line in text.splitlines() if line.startswith("data: ")), text)
    started = json.loads(told)
    await ended(ingest_client, started["jobId"])
    return started["knowledgeSourceId"], started["jobId"]


async def options_of(database: Database, job_id: str) -> dict[str, Any]:
    async with database.system_tx() as conn:
        row = await conn.fetchrow("SELECT options FROM queue.job WHERE id = $1", job_id)
    assert row is not None
    found: dict[str, Any] = row["options"]
    return found


async def fire(database: Database, at: datetime) -> int:
    """Let the clock of schedules be another one."""
    return await schedules.fire_due(
        database, job_templates.create_scheduled_job, catch_up=timedelta(hours=1), now=at
    )


async def test_it_is_fetched_again_with_its_own_limits(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    source, first = await added(ingest_client, url=site.url, limit=3, maxDepth=1)
    shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
    assert shown["fetching"] == {"limit": 3, "max_depth": 1}
    again = await asked(ingest_client, f"/api/knowledge-source/{source}/refresh", "POST")
    await ended(ingest_client, again["job_id"])
    before, after = await options_of(database, first), await options_of(database, again["job_id"])
    assert (after["limit"], after["max_depth"]) == (3, 1)
    assert after == before
    # Who asks with other limits is asked by those from then on.
    await added(ingest_client, url=site.url, limit=2)
    shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
    assert shown["fetching"] == {"limit": 2, "max_depth": 5}


async def test_a_sites_own_source_is_fetched_as_the_site_is_crawled(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    config = {"limit": 4, "index": True}
    made = await asked(
        ingest_client, "/api/sites", "POST", name="clocks", base_url=site.url, config=config
    )
    first = await asked(ingest_client, f"/api/sites/{made['id']}/crawl", "POST")
    await ended(ingest_client, first["job_id"])
    (source,) = (await asked(ingest_client, "/api/knowledge-source"))["items"]
    again = await asked(ingest_client, f"/api/knowledge-source/{source['id']}/refresh", "POST")
    await ended(ingest_client, again["job_id"])
    options = await options_of(database, again["job_id"])
    assert (options["limit"], options["site_id"]) == (4, made["id"])


async def test_a_source_is_fetched_again_by_itself(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    source, _ = await added(
        ingest_client, url=f"{site.url}about/", crawlLinks=False, rescrapeSeconds=DAY
    )
    path = f"/api/knowledge-source/{source}"
    shown = await asked(ingest_client, path)
    assert (shown["rescrape_seconds"], shown["fetched_every_seconds"]) == (DAY, DAY)
    following = datetime.fromisoformat(shown["next_fetch_at"])
    now = datetime.now(UTC)
    assert now < following <= now + timedelta(days=1)
    assert await fire(database, now) == 0
    # However many look, one job a tick.
    fired = await asyncio.gather(*(fire(database, following) for _ in range(4)))
    assert sum(fired) == 1
    job_id = (await asked(ingest_client, path))["job_id"]
    job = await ended(ingest_client, job_id)
    assert job["status"] == "completed"
    assert job["metadata"]["schedule_id"] == shown["schedule_id"]
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.entry") == 1
    after = await asked(ingest_client, path)
    assert datetime.fromisoformat(after["next_fetch_at"]) == following + timedelta(days=1)


async def test_it_can_be_paused_changed_and_stopped(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    source, _ = await added(ingest_client, url=site.url, limit=2, rescrapeSeconds=DAY)
    path = f"/api/knowledge-source/{source}"
    paused = await asked(ingest_client, path, "PATCH", fetching_paused=True)
    assert (paused["fetching_paused"], paused["next_fetch_at"]) == (True, None)
    assert await fire(database, datetime.now(UTC) + timedelta(days=2)) == 0
    # Another interval does not wake it up; being told twice is no error.
    changed = await asked(ingest_client, path, "PATCH", rescrape_seconds=3600, fetching_paused=True)
    assert (changed["fetching_paused"], changed["fetched_every_seconds"]) == (True, 3600)
    resumed = await asked(ingest_client, path, "PATCH", fetching_paused=False)
    assert resumed["next_fetch_at"] is not None
    stopped = await asked(ingest_client, path, "PATCH", rescrape_seconds=None)
    assert (stopped["fetched_every_seconds"], stopped["schedule_id"]) == (None, None)
    for body in ({"fetching_paused": True}, {"rescrape_seconds": 5}, {"rescrape_seconds": "often"}):
        async with ingest_client.patch(path, json=body) as answer:
            assert answer.status in {400, 409}, body
    await asked(ingest_client, path, "PATCH", rescrape_seconds=3600)
    await asked(ingest_client, path, "DELETE")
    assert (await asked(ingest_client, "/api/schedules"))["items"] == []


async def test_an_applications_interval_is_that_of_its_sources(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site
) -> None:
    await asked(ingest_client, "/api/applications", "POST", name="clocks", rescrape_seconds=DAY)
    first, _ = await added(
        ingest_client, url=f"{site.url}about/", applicationId="clocks", crawlLinks=False
    )
    own, _ = await added(
        ingest_client, url=site.url, limit=2, applicationId="clocks", rescrapeSeconds=2 * DAY
    )
    await asked(ingest_client, "/api/applications/clocks", "PATCH", rescrape_seconds=3600)
    shown = {
        one["id"]: one for one in (await asked(ingest_client, "/api/knowledge-source"))["items"]
    }
    assert shown[first]["fetched_every_seconds"] == 3600
    assert shown[first]["rescrape_seconds"] is None
    assert shown[own]["fetched_every_seconds"] == 2 * DAY
    await asked(ingest_client, "/api/applications/clocks", "PATCH", rescrape_seconds=None)
    listed = await asked(ingest_client, "/api/schedules")
    assert [one["every_seconds"] for one in listed["items"]] == [2 * DAY]
    await asked(ingest_client, "/api/applications/clocks", "DELETE")
    assert (await asked(ingest_client, "/api/schedules"))["items"] == []


async def test_a_busy_source_is_left_to_its_job(
    ingest_client: aiohttp.ClientSession,
    database: Database,
    organisation_id: OrganisationId,
    site: Site,
) -> None:
    source, _ = await added(ingest_client, url=site.url, limit=2, rescrapeSeconds=DAY)
    shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
    async with database.system_tx() as conn:
        # Someone fetches it, slowly.
        job = await jobs.create(conn, NewJob("crawl", organisation_id))
        await sources.begin_job(conn, [shown["id"]], job.id)
    assert await fire(database, datetime.fromisoformat(shown["next_fetch_at"])) == 0
    async with database.system_tx() as conn:
        row = await conn.fetchrow("SELECT outcome, detail FROM queue.schedule_run")
    assert row is not None
    assert (row["outcome"], str(job.id) in row["detail"]) == ("failed", True)


async def test_the_command_line_says_how_often(trapline: Trapline) -> None:
    created = await trapline("apps", "create", "clocks", "--every", "1d", "--json")
    assert created.json["rescrape_seconds"] == DAY, created.err
    url = "https://example.com/clocks"
    new = await trapline("sources", "add", url, "--app", "clocks", "--every", "6h", "--json")
    source = new.json["source_id"]
    listed = await trapline("sources", "list", "--json")
    assert [one["fetched_every_seconds"] for one in listed.json] == [21600]
    paused = await trapline("sources", "rescrape", source, "--never", "--pause", "--json")
    assert (paused.json["fetched_every_seconds"], paused.json["fetching_paused"]) == (DAY, True)
    resumed = await trapline("sources", "rescrape", source, "--resume", "--json")
    assert resumed.json["next_fetch_at"] is not None
    stopped = await trapline("apps", "rescrape", "clocks", "--never", "--json")
    assert stopped.json["rescrape_seconds"] is None
    for wrong in (
        ("sources", "rescrape", source, "--every", "often"),
        ("sources", "rescrape", source, "--pause"),
        ("apps", "create", "b", "--every", "10s"),
    ):
        assert (await trapline(*wrong)).status != 0, wrong


async def test_a_page_whose_worker_died_of_it_has_failed_and_says_why(
    database: Database, organisation_id: OrganisationId
) -> None:
    taken = asyncio.Event()

    async def hang(task: Task) -> None:
        taken.set()
        await asyncio.Event().wait()

    kinds = Kinds(ingest_kinds({INDEX: hang}))
    job = NewJob("crawl", organisation_id)
    async with database.system_tx() as conn:
        source = await sources.get_or_create(
            conn,
            NewSource(
                organisation_id=organisation_id,
                kind="url",
                uri="https://example.com/",
                config=default_config(database.settings.embedding),
            ),
        )
        page = IndexTask(source.id, source.uri, PageId(uuid4()), 1)
        await jobs.submit(conn, kinds, job, [NewTask(INDEX, page)], now=datetime.now(UTC))
        await sources.begin_job(conn, [source.id], job.id)
        made = (await jobs.get(conn, job.id)).created_at
        await progress_counters.add(
            conn, [CounterChange(organisation_id, source.id, job.id, made, total=1)]
        )
    strict = replace(database, settings=change_settings(database.settings, {"most_stalls": 0}))
    async with working(database, kinds):
        await asyncio.wait_for(taken.wait(), 30)
        async with database.system_tx() as conn:
            await conn.execute("UPDATE queue.lease SET expires_at = now() - interval '1 second'")
        async with asyncio.timeout(100):
            while await _status(database, job.id) not in jobs.ENDED:
                await dead_workers.sweep(strict)
    progress, shown = await _settled(database, organisation_id, source.id)
    assert (progress.total, progress.failed, progress.cancelled) == (1, 1, 0)
    assert shown.status == "failed"
    assert "worker" in (shown.error or ""), shown.error


async def _settled(
    database: Database, organisation_id: OrganisationId, source_id: SourceId
) -> tuple[source_operations.Progress, SourceDetails]:
    """What is shown once the job's end was seen, for which all older transactions must have ended."""
    async with asyncio.timeout(100):
        while True:
            await after_job.catch_up(database)
            async with database.system_tx() as conn:
                shown = await source_operations.show(conn, organisation_id, source_id)
                if shown.error is not None:
                    now = datetime.now(UTC)
                    return await source_operations.progress(
                        conn, organisation_id, source_id, now=now
                    ), shown


async def _status(database: Database, job_id: JobId) -> str:
    async with database.system_tx() as conn:
        return (await jobs.get(conn, job_id)).status
