"""Scrapes and maps that nobody waits for: queued over HTTP, run by a worker, retried, read later."""

from typing import Any
from uuid import UUID

import aiohttp
import msgspec
import pytest

from tests.integration.api.native.jobs.test_jobs import everything
from tests.site.site import Site
from tests.support.queue_jobs import ended, submit, working
from tests.support.scraper import site_settings
from trapline import app
from trapline.db.pool import Database
from trapline.errors import ExitCode, VisitFailed
from trapline.model import JobId, OrganisationId
from trapline.pipeline.crawl.url_discovery import MappedLink, events_of
from trapline.pipeline.kinds import MAP, MapTask
from trapline.pipeline.options import MapOptions
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.tasks import NewTask, Task
from trapline.settings import Settings


async def placed(api: aiohttp.ClientSession, **job: Any) -> JobId:
    async with api.post("/api/jobs", json=job) as answer:
        assert answer.status == 201, await answer.text()
        return JobId(UUID((await answer.json())["id"]))


async def shown(api: aiohttp.ClientSession, path: str) -> Any:
    async with api.get(path) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.fixture
def settings(server_settings: Settings, site: Site) -> Settings:
    return site_settings(server_settings, site)


async def test_a_map_is_run_by_a_worker_and_its_links_are_read_in_pages(
    api: aiohttp.ClientSession, database: Database, settings: Settings, site: Site
) -> None:
    job_id = await placed(api, kind="map", url=site.url, options={"limit": 7})
    async with app.run_worker(database, settings):
        await ended(database, job_id)
    job = await shown(api, f"/api/jobs/{job_id}")
    assert (job["status"], job["completed"], job["total"]) == ("completed", 1, 1)
    links = await everything(api, f"/api/jobs/{job_id}/links")
    assert links[0]["url"] == site.url
    assert len({link["url"] for link in links}) == 7
    assert await everything(api, f"/api/jobs/{job_id}/tasks") != []


async def test_a_failed_map_is_run_again_by_a_worker(
    api: aiohttp.ClientSession,
    database: Database,
    organisation_id: OrganisationId,
    settings: Settings,
    site: Site,
) -> None:
    async def fail(_: Task) -> None:
        raise VisitFailed(ExitCode.NOT_FOUND)

    kinds = Kinds([Kind(MAP, MapTask, fail)])
    options = msgspec.to_builtins(MapOptions.parse(url=site.url, limit=3))
    task = NewTask(MAP, MapTask(site.url))
    job_id, _ = await submit(database, kinds, organisation_id, [task], options=options)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.job SET kind = 'map' WHERE id = $1", job_id)
    async with working(database, kinds):
        await ended(database, job_id)
    async with api.post(f"/api/jobs/{job_id}/retry") as answer:
        assert answer.status == 201, await answer.text()
        again = JobId(UUID((await answer.json())["id"]))
    async with app.run_worker(database, settings):
        await ended(database, again)
    assert len(await everything(api, f"/api/jobs/{again}/links")) == 3
    assert await everything(api, f"/api/jobs/{job_id}/links") == []


async def test_a_scrape_is_run_by_a_worker(
    api: aiohttp.ClientSession, database: Database, settings: Settings, site: Site
) -> None:
    there = await placed(api, kind="scrape", url=site.url, priority=9)
    missing = await placed(api, kind="scrape", url=f"{site.url}no-such-page")
    async with app.run_worker(database, settings):
        await ended(database, there)
        await ended(database, missing)
    (page,) = await everything(api, f"/api/pages/of-job/{there}")
    assert (page["url"], page["status"], page["change"]) == (site.url, 200, "new")
    (error,) = await everything(api, f"/api/jobs/{missing}/errors")
    assert error["code"] == int(ExitCode.NOT_FOUND)


async def test_a_map_without_traces_leaves_none(
    api: aiohttp.ClientSession, database: Database, settings: Settings, site: Site
) -> None:
    options = {"limit": 5, "scrape": {"zero_data_retention": True}}
    job_id = await placed(api, kind="map", url=site.url, options=options)
    async with app.run_worker(database, settings):
        await ended(database, job_id)
    assert (await shown(api, f"/api/jobs/{job_id}"))["status"] == "completed"
    assert await everything(api, f"/api/jobs/{job_id}/links") == []


async def test_a_scheduled_map(
    api: aiohttp.ClientSession, database: Database, settings: Settings, site: Site
) -> None:
    template = {"kind": "map", "url": site.url, "options": {"limit": 2}}
    plan = {"name": "map", "cron": "0 0 1 1 *", "template": template}
    async with api.post("/api/schedules", json=plan) as answer:
        schedule = await answer.json()
        assert answer.status == 201, schedule
    async with api.post(f"/api/schedules/{schedule['id']}/run") as answer:
        job_id = JobId(UUID((await answer.json())["job_id"]))
    async with app.run_worker(database, settings):
        await ended(database, job_id)
    assert len(await everything(api, f"/api/jobs/{job_id}/links")) == 2


async def test_many_links_are_told_in_events_of_a_bounded_size() -> None:
    class Silent:
        zero_data_retention = False

    links = [MappedLink(f"https://example.com/{n}", "\0title" * 100) for n in range(2000)]
    events = list(events_of(Silent(), links))  # type: ignore[arg-type]
    assert len(events) > 3
    assert max(len(msgspec.json.encode(event.data)) for event in events) < 300_000
    told = [link["url"] for event in events for link in event.data["links"]]
    assert told == [link.url for link in links]
    assert b"\\u0000" not in msgspec.json.encode([event.data for event in events])
