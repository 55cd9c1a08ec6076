"""What the documents' INSERT, UPDATE, DELETE and claim statements do is done by functions of ours.

Each test names them, does it, and looks at the effect through the views.
"""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.queue_jobs import Number, ended, kinds_of, working
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs, tasks
from trapline.queue.finish import TaskResult
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.maintenance import dead_workers, deadlines, job_expiry
from trapline.queue.tasks import NewTask, Task

URL = "https://example.com/"


def pages(count: int, **options: Any) -> list[NewTask]:
    return [NewTask("single_urls", {"url": f"{URL}{n}"}, **options) for n in range(count)]


def page_kinds(handler: Any = None) -> Kinds:
    return Kinds([Kind("single_urls", dict, handler)])


async def submit(
    database: Database, organisation_id: OrganisationId, new: list[NewTask], **options: Any
) -> JobId:
    job = NewJob(options.pop("kind", "crawl"), organisation_id, **options)
    async with database.tenant_tx(organisation_id) as conn:
        await jobs.submit(conn, page_kinds(), job, new, now=datetime.now(UTC))
    return job.id


async def statuses(conn: Connection, view: str = "nuq.queue_scrape") -> Counter[str]:
    rows = await conn.fetch(f"SELECT status::text FROM {view}")
    return Counter(row["status"] for row in rows)


async def die_with_all(database: Database) -> None:
    """A worker claims all that is ready, and is not heard of again."""
    async with database.system_tx() as conn:
        await conn.execute(
            "WITH lease AS (INSERT INTO queue.lease (agent_id, expires_at)"
            " VALUES (0, now() - interval '1 second') RETURNING id),"
            " gone AS (DELETE FROM queue.ready RETURNING *)"
            " INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls)"
            " SELECT lease.id, task_id, lane_id, priority, attempts + 1, stalls FROM gone, lease"
        )


class Holder:
    """A handler that holds its tasks until it is let go."""

    def __init__(self) -> None:
        self.held = 0
        self.free = asyncio.Event()

    async def __call__(self, _: Task) -> TaskResult:
        self.held += 1
        await self.free.wait()
        return TaskResult()


async def until_held(holder: Holder, count: int) -> None:
    async with asyncio.timeout(100):
        while holder.held < count:  # noqa: ASYNC110 (it is the worker's own loop)
            await asyncio.sleep(0.01)


async def test_claims_by_two_workers_take_each_task_once(
    database: Database, organisation_id: OrganisationId
) -> None:
    """UPDATE … WHERE id IN (SELECT … FOR UPDATE SKIP LOCKED): `queue.finish_and_claim`, by Claimer."""
    await submit(database, organisation_id, pages(10))
    first, second = Holder(), Holder()
    async with (
        working(database, page_kinds(first), concurrency=5),
        working(database, page_kinds(second), concurrency=5),
    ):
        async with asyncio.timeout(100):
            while first.held + second.held < 10:  # noqa: ASYNC110 (two workers' own loops)
                await asyncio.sleep(0.01)
        async with database.system_tx() as conn:
            assert await statuses(conn) == {"active": 10}
            assert await statuses(conn, "bee.tasks") == {"running": 10}
            locks = await conn.fetch("SELECT DISTINCT lock FROM nuq.queue_scrape")
        assert len(locks) >= 2
        first.free.set()
        second.free.set()


async def test_stale_locks_are_taken_back_and_counted(
    database: Database, organisation_id: OrganisationId
) -> None:
    """UPDATE … SET status = 'queued', stalls = stalls + 1: `stale.sweep`, `queue.settle`."""
    job = await submit(database, organisation_id, pages(1))
    for stall in range(1, 11):
        await die_with_all(database)
        assert await dead_workers.sweep(database) == 1
        async with database.system_tx() as conn:
            row = await conn.fetchrow("SELECT * FROM nuq.queue_scrape WHERE group_id = $1", job)
        assert row is not None
        if stall <= 9:
            assert (row["status"], row["stalls"], row["lock"]) == ("queued", stall, None)
    # After nine it fails; unlike there, with a reason and a finish time.
    assert (row["status"], row["lock"]) == ("failed", None)
    assert row["failedreason"]
    assert row["finished_at"] is not None


async def test_a_heartbeat_keeps_a_task(
    database: Database, organisation_id: OrganisationId
) -> None:
    """UPDATE … SET heartbeat_at = NOW(): `leases.renew`, for all tasks of a lease at once."""
    await submit(database, organisation_id, pages(1))
    holder = Holder()
    async with working(database, page_kinds(holder), lease_time=timedelta(seconds=2)):
        await until_held(holder, 1)
        async with database.system_tx() as conn:
            before = await conn.fetchval("SELECT expires_at FROM queue.lease")
        async with asyncio.timeout(100):
            while True:
                async with database.system_tx() as conn:
                    if await conn.fetchval("SELECT max(expires_at) FROM queue.lease") > before:
                        break
                await asyncio.sleep(0.05)
        assert await dead_workers.sweep(database) == 0
        holder.free.set()


async def test_backlog_expires(database: Database, organisation_id: OrganisationId) -> None:
    """DELETE FROM queue_scrape_backlog WHERE times_out_at < NOW(): `deadlines.expire`."""
    soon = datetime.now(UTC) + timedelta(seconds=2)
    job = await submit(
        database, organisation_id, [*pages(1), *pages(2, deadline=soon)[1:]], max_active=1
    )
    holder = Holder()
    async with working(database, page_kinds(holder)):
        await until_held(holder, 1)
        async with database.system_tx() as conn:
            (row,) = await conn.fetch(
                "SELECT times_out_at FROM nuq.queue_scrape_backlog WHERE group_id = $1", job
            )
        assert row["times_out_at"] == soon
        await asyncio.sleep((soon - datetime.now(UTC)).total_seconds() + 0.1)
        assert await deadlines.expire(database) == 1
        async with database.system_tx() as conn:
            assert await conn.fetch("SELECT * FROM nuq.queue_scrape_backlog") == []
            assert await statuses(conn) == {"active": 1, "failed": 1}
        holder.free.set()
        await ended(database, job)


async def test_what_has_ended_goes_when_its_time_is_over(
    database: Database, organisation_id: OrganisationId
) -> None:
    """DELETE FROM queue_scrape, DELETE FROM group_crawl: `expiry.expire`, `queue.forget_job`."""

    async def end(task: Task) -> TaskResult:
        if task.payload["url"].endswith("1"):
            raise ValueError("no")
        return TaskResult()

    single = await submit(database, organisation_id, pages(1), kind="scrape")
    group = await submit(database, organisation_id, pages(2, max_attempts=1))
    running = await submit(
        database, organisation_id, pages(1, run_at=datetime.now(UTC) + timedelta(days=1))
    )
    async with working(database, page_kinds(end)):
        await ended(database, single)
        await ended(database, group)
    assert await job_expiry.expire(database) == 0
    async with database.system_tx() as conn:
        assert await statuses(conn) == {"completed": 2, "failed": 1, "queued": 1}
        await conn.execute(
            "UPDATE queue.job SET expires_at = now() - interval '1 second' WHERE id = ANY ($1)",
            [single, group],
        )
    assert await job_expiry.expire(database) == 2
    async with database.system_tx() as conn:
        assert await statuses(conn) == {"queued": 1}
        groups = await conn.fetch("SELECT id FROM nuq.group_crawl")
        sessions = await conn.fetch("SELECT job_id FROM webhook.crawl_sessions")
    assert [row["id"] for row in groups] == [running]
    # What was done is still told.
    assert {row["job_id"] for row in sessions} == {str(single), str(group), str(running)}


async def test_no_open_job_is_too_old(database: Database, organisation_id: OrganisationId) -> None:
    """A hard limit of ten minutes for everything: there is none. Only what has ended expires."""
    job = await submit(database, organisation_id, pages(2))
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE queue.job SET created_at = now() - interval '40 days',"
            " started_at = now() - interval '40 days'"
        )
    assert await job_expiry.expire(database) == 0
    assert await deadlines.expire(database) == 0
    assert await dead_workers.sweep(database) == 0
    async with working(database, page_kinds(_end)):
        await ended(database, job)
    async with database.system_tx() as conn:
        assert await statuses(conn) == {"completed": 2}


async def test_tasks_are_added_counted_and_end_their_job(
    database: Database, organisation_id: OrganisationId
) -> None:
    """INSERT INTO tasks, UPDATE tasks, UPDATE jobs: `tasks.enqueue`, `queue.finish`."""
    held = pages(1, run_at=datetime.now(UTC) + timedelta(days=1))
    job = await submit(database, organisation_id, held)
    async with database.system_tx() as conn:
        await tasks.enqueue(
            conn, page_kinds(), job, organisation_id, pages(3), now=datetime.now(UTC)
        )

    async def progress() -> tuple[Any, ...]:
        async with database.system_tx() as conn:
            row = await conn.fetchrow("SELECT * FROM bee.jobs WHERE id = $1", str(job))
        assert row is not None
        return (row["status"], row["total_tasks"], row["completed_tasks"], row["progress"])

    assert await progress() == ("pending", 4, 0, 0.0)
    async with working(database, page_kinds(_end)):
        async with asyncio.timeout(100):
            while (await progress())[2] < 3:  # noqa: ASYNC110 (it is the worker's own loop)
                await asyncio.sleep(0.02)
        assert await progress() == ("running", 4, 3, 75.0)
        async with database.system_tx() as conn:
            assert await statuses(conn, "bee.tasks") == {"completed": 3, "pending": 1}
            await conn.execute("UPDATE queue.waiting SET run_at = now()")
        await ended(database, job)
    assert await progress() == ("completed", 4, 4, 100.0)


async def _end(_: Task) -> TaskResult:
    return TaskResult()


async def test_jobs_that_visit_nothing_are_in_no_queue_of_pages(
    database: Database, organisation_id: OrganisationId
) -> None:
    job = NewJob("test", organisation_id)
    async with database.tenant_tx(organisation_id) as conn:
        await jobs.submit(
            conn, kinds_of(), job, [NewTask("number", Number(1))], now=datetime.now(UTC)
        )
    async with database.system_tx() as conn:
        assert await statuses(conn) == {}
        assert await conn.fetch("SELECT * FROM nuq.group_crawl") == []
        assert await conn.fetchval("SELECT count(*) FROM bee.jobs") == 1
