"""An organisation visits its pages of a day and not one more, however many workers there are."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.queue_jobs import (
    assert_sound,
    ended,
    kinds_of,
    numbers,
    status,
    submit,
    until,
    working,
)
from trapline import app
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import ExitCode, LimitReached, VisitFailed
from trapline.model import OrganisationId
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scrape.scraper import Caller
from trapline.queue import daily_quota, why
from trapline.queue.tasks import Task

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
async def limited(database: Database) -> OrganisationId:
    """An organisation of ten pages a day."""
    async with database.system_tx() as conn:
        made = await tenancy.create_organisation(conn, "limited", max_pages_per_day=10)
    return made.id


async def visited(database: Database, organisation_id: OrganisationId) -> int | None:
    async with database.system_tx() as conn:
        return await conn.fetchval(
            "SELECT pages FROM queue.quota WHERE organisation_id = $1", organisation_id
        )


async def test_workers_together_stop_at_the_limit(
    database: Database, limited: OrganisationId
) -> None:
    ran: list[int] = []

    async def handler(task: Task) -> int:
        ran.append(task.payload.n)
        return 1

    kinds = kinds_of(handler)
    jobs_of = [await submit(database, kinds, limited, numbers(8)) for _ in range(3)]
    async with working(database, kinds), working(database, kinds), working(database, kinds):
        await until(lambda: len(ran) >= 10)
        await asyncio.sleep(1.5)
    assert len(ran) == 10
    assert await visited(database, limited) == 10
    left = [(await status(database, job_id)).remaining for job_id, _ in jobs_of]
    assert sum(left) == 14
    await assert_sound(database)


async def test_the_next_day_goes_on(database: Database, limited: OrganisationId) -> None:
    ran: list[int] = []

    async def handler(task: Task) -> int:
        ran.append(task.payload.n)
        return 1

    kinds = kinds_of(handler)
    job_id, _ = await submit(database, kinds, limited, numbers(15))
    async with working(database, kinds):
        await until(lambda: len(ran) == 10)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.quota SET day = day - 1")
    async with working(database, kinds):
        await ended(database, job_id)
    assert await visited(database, limited) == 5


async def test_skipped_and_retried_pages_are_given_back(
    database: Database, limited: OrganisationId
) -> None:
    async def handler(task: Task) -> int:
        if task.payload.n % 2:
            raise VisitFailed(ExitCode.ROBOTS_DISALLOWED)
        if task.attempt == 1 and task.payload.n == 0:
            raise VisitFailed(ExitCode.CONNECTION_RESET)
        return 1

    kinds = kinds_of(handler)
    job_id, _ = await submit(database, kinds, limited, numbers(18))
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert (job.completed, job.skipped) == (9, 9)
    assert await visited(database, limited) == 9
    await assert_sound(database)


async def test_what_is_no_page_is_not_counted(database: Database, limited: OrganisationId) -> None:
    async def handler(task: Task) -> int:
        return 1

    kinds = kinds_of(handler)
    job_id, _ = await submit(database, kinds, limited, numbers(25, counted=False))
    async with working(database, kinds):
        await ended(database, job_id)
    assert await visited(database, limited) == 0


async def test_others_are_not_limited(
    database: Database, limited: OrganisationId, organisation_id: OrganisationId
) -> None:
    async def handler(task: Task) -> int:
        return 1

    kinds = kinds_of(handler)
    await submit(database, kinds, limited, numbers(20))
    job_id, _ = await submit(database, kinds, organisation_id, numbers(40))
    async with working(database, kinds):
        await ended(database, job_id)
    assert await visited(database, organisation_id) is None


async def test_why_and_what_is_left_say_so(database: Database, limited: OrganisationId) -> None:
    _, (first, *_) = await submit(database, kinds_of(), limited, numbers(3))
    async with database.system_tx() as conn:
        await conn.execute("INSERT INTO queue.quota (organisation_id) VALUES ($1)", limited)
        assert await daily_quota.pages_left(conn, limited, now=NOW) == 10
        await conn.execute("UPDATE queue.quota SET day = queue.day_of(now()), pages = 10")
        # Someone must be there to run it, or that is the reason.
        await conn.execute(
            "INSERT INTO queue.agent (uuid, name, host, pid, capacity, kinds)"
            " VALUES (gen_random_uuid(), 'a', 'h', 1, 1, '{number}')"
        )
        assert "10 pages of today" in await why.why(conn, first.task_id, now=NOW)
        with pytest.raises(LimitReached) as refused:
            await daily_quota.require_pages(conn, limited, now=NOW)
    assert refused.value.retry_after is not None
    assert 0 < refused.value.retry_after <= 86400
    assert daily_quota.tomorrow(NOW) - NOW <= timedelta(days=1)


async def test_a_scrape_beyond_the_limit_is_refused_at_once(
    database: Database, limited: OrganisationId
) -> None:
    gate = ("host:a.example", None, None, None, None)
    async with database.system_tx() as conn:
        places = [
            await conn.fetchval(
                "SELECT blocked_by FROM queue.take_slots($1, $2, $3)", limited, gate, NOW + HOUR
            )
            for _ in range(12)
        ]
    assert places == [None] * 10 + ["pages"] * 2
    options = PageOptions.parse(url="http://b.example/")
    async with app.open_scraper(database, database.settings) as scraper:
        with pytest.raises(LimitReached):
            await scraper.scrape(Caller(limited), options)
    assert await visited(database, limited) == 10
