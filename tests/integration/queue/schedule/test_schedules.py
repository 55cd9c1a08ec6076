"""Schedules make exactly one job a tick, catch up what is not too late, and say what they skipped."""

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from tests.support.cli import Trapline
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database, ExternalServer
from trapline.errors import Conflict, InvalidInput, NotFound, Unavailable
from trapline.model import JobId, OrganisationId
from trapline.pipeline import job_templates
from trapline.queue import jobs
from trapline.queue.jobs import NewJob
from trapline.queue.maintenance import schedule_firing as duty
from trapline.queue.schedule import schedules
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.schedule.schedules import Plan
from trapline.queue.sql.schedules import ScheduleRow, ScheduleRunRow
from trapline.settings import Settings
from trapline.store import sites

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
HOURLY = Rule("recurring", cron="0 * * * *")
CRAWL = {"kind": "crawl", "url": "http://docs.example/", "options": {"limit": 5}}

Fire = Callable[[datetime], Awaitable[int]]


async def create(conn: Connection, schedule: ScheduleRow, tick: datetime) -> JobId:
    """Make a job that stays open until someone ends it."""
    row = await jobs.create(
        conn, NewJob("test", schedule.organisation_id, metadata={"tick": tick.isoformat()})
    )
    return row.id


async def refuse(conn: Connection, schedule: ScheduleRow, tick: datetime) -> JobId:
    raise NotFound("The site is gone.")


@pytest.fixture
def fire(database: Database) -> Fire:
    return lambda at: schedules.fire_due(database, create, catch_up=HOUR, now=at)


async def added(
    database: Database, organisation_id: OrganisationId, rule: Rule = HOURLY, **plan: Any
) -> ScheduleRow:
    async with database.tenant_tx(organisation_id) as conn:
        return await schedules.add(
            conn, organisation_id, Plan("nightly", rule, CRAWL, **plan), now=NOW
        )


async def now_of(database: Database, row: ScheduleRow) -> ScheduleRow:
    async with database.system_tx() as conn:
        return await schedules.get(conn, row.id)


async def runs_of(database: Database, row: ScheduleRow) -> list[ScheduleRunRow]:
    async with database.system_tx() as conn:
        return await schedules.runs(conn, row.id)


async def end_jobs(database: Database) -> None:
    async with database.system_tx() as conn:
        await conn.execute("SELECT queue.cancel_job(id, 'test', NULL) FROM queue.job")


async def count_jobs(database: Database) -> int:
    async with database.system_tx() as conn:
        return int(await conn.fetchval("SELECT count(*) FROM queue.job"))


async def test_a_tick_makes_a_job_and_names_the_next(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id)
    assert row.next_at == NOW + 0.5 * HOUR
    assert await fire(NOW) == 0
    assert await fire(row.next_at) == 1
    assert await fire(row.next_at) == 0
    after = await now_of(database, row)
    assert (after.next_at, after.last_tick) == (NOW + 1.5 * HOUR, row.next_at)
    (run,) = await runs_of(database, row)
    assert (run.outcome, run.tick, run.job_id) == ("created", row.next_at, after.last_job_id)


async def test_missed_ticks_are_made_up_for_once_and_said(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id)
    assert await fire(NOW + 5 * HOUR) == 1
    last, first = await runs_of(database, row)
    assert (last.outcome, last.tick) == ("created", NOW + 4.5 * HOUR)
    assert (first.outcome, first.tick) == ("missed", NOW + 0.5 * HOUR)
    assert first.detail is not None
    assert "made up for" in first.detail


async def test_what_is_too_late_is_skipped_and_said(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id, Rule("recurring", cron="0 13 * * *"))
    assert await fire(NOW + 2 * HOUR) == 0
    (run,) = await runs_of(database, row)
    assert run.outcome == "missed"
    assert (await now_of(database, row)).next_at == NOW + 24.5 * HOUR
    assert await count_jobs(database) == 0


async def test_a_schedule_may_be_more_patient(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    daily = Rule("recurring", cron="0 13 * * *")
    await added(database, organisation_id, daily, catch_up=3 * HOUR)
    assert await fire(NOW + 2 * HOUR) == 1


async def test_runs_do_not_overlap_unless_allowed(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id)
    assert await fire(NOW + 0.5 * HOUR) == 1
    assert await fire(NOW + 1.5 * HOUR) == 0
    assert (await runs_of(database, row))[0].outcome == "overlapped"
    await end_jobs(database)
    assert await fire(NOW + 2.5 * HOUR) == 1
    async with database.system_tx() as conn:
        plan = Plan("nightly", HOURLY, CRAWL, overlap=True)
        await schedules.change(conn, row.id, plan, now=NOW + 2.6 * HOUR)
    assert await fire(NOW + 3.5 * HOUR) == 1


async def test_pausing_skips_and_resuming_goes_on(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id)
    async with database.tenant_tx(organisation_id) as conn:
        await schedules.pause(conn, row.id)
        with pytest.raises(Conflict):
            await schedules.pause(conn, row.id)
    assert await fire(NOW + 0.5 * HOUR) == 0
    async with database.tenant_tx(organisation_id) as conn:
        await schedules.resume(conn, row.id, now=NOW + 0.6 * HOUR)
        with pytest.raises(Conflict):
            await schedules.resume(conn, row.id, now=NOW)
    assert await fire(NOW + 0.7 * HOUR) == 0
    assert await fire(NOW + 1.5 * HOUR) == 1


async def test_run_now_leaves_the_rule_alone(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id)
    async with database.tenant_tx(organisation_id) as conn:
        await schedules.pause(conn, row.id)
        job_id = await schedules.run_now(conn, row.id, create, now=NOW)
        with pytest.raises(Conflict, match="still runs"):
            await schedules.run_now(conn, row.id, create, now=NOW)
        await schedules.resume(conn, row.id, now=NOW)
    await end_jobs(database)
    assert await fire(NOW + 0.5 * HOUR) == 1
    runs = await runs_of(database, row)
    assert [run.manual for run in runs] == [False, True]
    assert runs[1].job_id == job_id


@pytest.mark.parametrize(
    ("rule", "at"),
    [(Rule("one_time"), NOW), (Rule("scheduled", starts_at=NOW + HOUR), NOW + HOUR)],
)
async def test_single_runs_run_once(
    database: Database, organisation_id: OrganisationId, fire: Fire, rule: Rule, at: datetime
) -> None:
    row = await added(database, organisation_id, rule)
    assert await fire(at) == 1
    assert (await now_of(database, row)).next_at is None
    await end_jobs(database)
    assert await fire(at + HOUR) == 0


async def test_a_template_that_fails_holds_up_nobody(
    database: Database, organisation_id: OrganisationId
) -> None:
    row = await added(database, organisation_id)
    await schedules.fire_due(database, refuse, catch_up=HOUR, now=NOW + HOUR)
    (run,) = await runs_of(database, row)
    assert (run.outcome, run.detail) == ("failed", "The site is gone.")
    assert (await now_of(database, row)).next_at == NOW + 1.5 * HOUR


async def test_what_may_pass_is_tried_again(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    async def not_now(conn: Connection, schedule: ScheduleRow, tick: datetime) -> JobId:
        raise Unavailable

    row = await added(database, organisation_id)
    at = NOW + 0.5 * HOUR
    assert await schedules.fire_due(database, not_now, catch_up=HOUR, now=at) == 0
    assert await runs_of(database, row) == []
    assert await fire(at) == 1


async def test_names_are_unique_and_plans_checked(
    database: Database, organisation_id: OrganisationId
) -> None:
    row = await added(database, organisation_id)
    with pytest.raises(Conflict):
        await added(database, organisation_id)
    for wrong in ({"importance": 11}, {"catch_up": -HOUR}):
        with pytest.raises(InvalidInput):
            await added(database, organisation_id, **wrong)
    with pytest.raises(InvalidInput, match="passed"):
        await added(database, organisation_id, Rule("scheduled", starts_at=NOW - HOUR))
    async with database.tenant_tx(organisation_id) as conn:
        assert (await schedules.find(conn, organisation_id, "NIGHTLY")).id == row.id
        await schedules.remove(conn, row.id)
        with pytest.raises(NotFound):
            await schedules.remove(conn, row.id)


async def test_old_notes_of_runs_are_forgotten(
    database: Database, organisation_id: OrganisationId, fire: Fire
) -> None:
    row = await added(database, organisation_id)
    await fire(NOW + 0.5 * HOUR)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.schedule_run SET created_at = now() - interval '91 days'")
    assert await duty.forget(database) == 1
    assert await runs_of(database, row) == []


def _fire_in_process(dsn: str, settings: Settings, start: Any, ticks: int) -> None:
    async def main() -> None:
        async with Database.connect(ExternalServer(dsn), settings) as database:
            start.wait()
            for n in range(ticks):
                at = NOW + (0.5 + n) * HOUR
                await schedules.fire_due(database, create, catch_up=HOUR, now=at)

    asyncio.run(main())


async def test_processes_together_make_one_job_a_tick(
    database: Database, organisation_id: OrganisationId, dsn: str, server_settings: Settings
) -> None:
    count, ticks, processes = 5, 8, 4
    async with database.tenant_tx(organisation_id) as conn:
        for n in range(count):
            plan = Plan(f"number {n}", HOURLY, CRAWL, overlap=True)
            await schedules.add(conn, organisation_id, plan, now=NOW)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    workers = [
        context.Process(target=_fire_in_process, args=(dsn, server_settings, start, ticks))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join, 60)
    assert [worker.exitcode for worker in workers] == [0] * processes
    async with database.system_tx() as conn:
        per_tick = await conn.fetch(
            "SELECT count(*) AS n FROM queue.schedule_run WHERE outcome = 'created'"
            " GROUP BY schedule_id, tick"
        )
        others = await conn.fetchval(
            "SELECT count(*) FROM queue.schedule_run WHERE outcome <> 'created'"
        )
    # A process that lagged behind finds its tick merged or fired: none is made twice.
    assert [row["n"] for row in per_tick] == [1] * len(per_tick)
    assert len(per_tick) + others >= count
    assert await count_jobs(database) == len(per_tick)


# From the template to the job


async def test_a_crawl_template_becomes_a_crawl(
    database: Database, organisation_id: OrganisationId
) -> None:
    row = await added(database, organisation_id, importance=9)
    async with database.tenant_tx(organisation_id) as conn:
        job_id = await schedules.run_now(conn, row.id, job_templates.create_scheduled_job, now=NOW)
        job = await jobs.get(conn, job_id)
    assert (job.kind, job.priority, job.total, job.task_limit) == ("crawl", -4, 1, 5)
    assert job.metadata["schedule_id"] == str(row.id)


async def test_a_site_is_crawled_by_its_own_config(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.tenant_tx(organisation_id) as conn:
        site = await sites.create(
            conn, organisation_id, "docs", "http://docs.example/", config={"max_depth": 2}
        )
    row = await added(database, organisation_id, site_id=site.id)
    async with database.tenant_tx(organisation_id) as conn:
        job = await jobs.get(
            conn, await schedules.run_now(conn, row.id, job_templates.create_scheduled_job, now=NOW)
        )
    assert (job.options["max_depth"], job.options["limit"]) == (2, 5)
    assert (job.metadata["site_id"], job.metadata["trigger"]) == (str(site.id), "schedule")


async def test_a_list_of_pages_becomes_a_batch(
    database: Database, organisation_id: OrganisationId
) -> None:
    urls = ["http://a.example/1", "b.example/2", "http://a.example/1"]
    order = job_templates.JobRequest(organisation_id, {"kind": "batch_scrape", "urls": urls})
    async with database.tenant_tx(organisation_id) as conn:
        job = await jobs.get(conn, await job_templates.create_job(conn, order))
    assert (job.kind, job.total) == ("batch_scrape", 2)


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"kind": "bake"},
        {"kind": "crawl"},
        {"kind": "crawl", "url": "javascript:alert(1)"},
        {"kind": "crawl", "url": "http://a.example/", "options": {"limit": -1}},
        {"kind": "crawl", "url": "http://a.example/", "options": {"colour": "red"}},
        {"kind": "crawl", "url": "http://a.example/", "more": 1},
        {"kind": "batch_scrape", "urls": []},
        {"kind": "batch_scrape", "urls": ["http://a.example/"] * 10_001},
        {"kind": "batch_scrape", "urls": ["http://a.example/", "::"]},
    ],
)
def test_a_bad_template_is_refused(template: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        job_templates.parse(template)


# At the edges

PLAN = {"name": "docs", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "template": CRAWL}


async def test_the_api_adds_shows_changes_and_removes(api: aiohttp.ClientSession) -> None:
    async with api.post("/api/schedules", json=PLAN | {"priority": 8}) as answer:
        assert answer.status == 201
        made = await answer.json()
    assert len(made["next_runs"]) == 5
    path = f"/api/schedules/{made['id']}"
    async with api.post("/api/schedules", json=PLAN) as answer:
        assert answer.status == 409
    async with api.post(f"{path}/run") as answer:
        assert answer.status == 202
        job_id = (await answer.json())["job_id"]
    async with api.get(f"{path}/runs") as answer:
        assert [run["job_id"] for run in (await answer.json())["items"]] == [job_id]
    async with api.post(f"{path}/pause") as answer:
        paused = await answer.json()
    assert (paused["paused"], paused["next_at"], paused["next_runs"]) == (True, None, [])
    async with api.post(f"{path}/resume") as answer:
        assert (await answer.json())["next_at"] == made["next_at"]
    async with api.put(path, json=PLAN | {"cron": "0 4 * * *"}) as answer:
        assert (await answer.json())["next_at"] != made["next_at"]
    async with api.delete(path) as answer:
        assert answer.status == 204
    async with api.get(path) as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "never"},
        {"timezone": "Mars/Olympus"},
        {"priority": 0},
        {"name": ""},
        {"name": "\0"},
        {"template": {"kind": "bake"}},
        {"template": []},
        {"every_seconds": 3600},
        {"kind": "scheduled"},
        {"starts_at": "2026-01-01T00:00:00"},
        {"colour": "red"},
    ],
)
async def test_the_api_says_what_is_wrong(
    api: aiohttp.ClientSession, wrong: dict[str, Any]
) -> None:
    async with api.post("/api/schedules", json=PLAN | wrong) as answer:
        assert answer.status == 400
        assert answer.content_type == "application/problem+json"


async def test_the_api_pages_through_schedules(api: aiohttp.ClientSession) -> None:
    for n in range(5):
        async with api.post("/api/schedules", json=PLAN | {"name": f"s{n}"}) as answer:
            assert answer.status == 201
    names, cursor = [], None
    while True:
        query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        async with api.get("/api/schedules", params=query) as answer:
            page = await answer.json()
        names += [item["name"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names == ["s4", "s3", "s2", "s1", "s0"]
    for bad in ("x", "!!!", "WzEsMl0", "a" * 501):
        async with api.get("/api/schedules", params={"cursor": bad}) as answer:
            assert answer.status == 400


async def test_another_organisation_sees_nothing(
    database: Database, organisation_id: OrganisationId
) -> None:
    row = await added(database, organisation_id)
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, "other")).id
    async with database.tenant_tx(other) as conn:
        for ask in (schedules.get, schedules.remove, schedules.pause):
            with pytest.raises(NotFound):
                await ask(conn, row.id)


async def test_the_command_line_does_the_same(trapline: Trapline) -> None:
    url = "http://docs.example/"
    made = await trapline("schedule", "add", "docs", url, "--cron", "@daily", "--json")
    assert made.status == 0, made.err
    assert len(made.json["next_runs"]) == 5
    planned = (
        "schedule",
        "add",
        "later",
        url,
        "--at",
        "2099-01-01T09:00",
        "--timezone",
        "Asia/Tokyo",
    )
    assert (await trapline(*planned, "--json")).json["next_at"] == "2099-01-01T00:00:00Z"
    assert (await trapline("schedule", "add", "x", url, "--every", "1fortnight")).status == 2
    job = (await trapline("schedule", "run", "docs")).out.strip()
    shown = (await trapline("schedule", "show", "docs", "--json")).json
    assert [run["job_id"] for run in shown["runs"]] == [job]
    assert (await trapline("schedule", "pause", "docs")).status == 0
    assert "paused" in (await trapline("schedule", "list")).out
    assert (await trapline("schedule", "resume", "docs")).status == 0
    assert (await trapline("schedule", "remove", "docs")).status == 0
    assert (await trapline("schedule", "show", "docs")).status == 3
