"""Trapline with everything stored, as `trapline crawl` does it: python -m … URL DSN [JOB].

With a job's id it helps with that crawl instead of starting one.
"""

import asyncio
import os
import sys
from contextlib import suppress
from uuid import UUID

# As the program itself does, before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import uvloop

from benchmarks.crawlers import AT_ONCE, Meter
from trapline import app, logs
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import JobId
from trapline.pipeline import document_formats, submit
from trapline.pipeline.options import CrawlOptions
from trapline.queue import jobs
from trapline.queue.notify import Listener
from trapline.queue.sql.jobs import JobRow
from trapline.settings import Settings


async def crawl(url: str, dsn: str, job: str | None, meter: Meter) -> None:
    settings = Settings.load(
        {"DATABASE_URL": dsn, "TRAPLINE_ALLOW_NETS": "127.0.0.0/8", "TRAPLINE_LOG_LEVEL": "error"}
    )
    logs.configure(settings.logs)
    async with Database.open(settings) as database:
        job_id = JobId(UUID(job)) if job else await start(database, url)
        print(job_id, flush=True)
        with meter:
            async with app.run_worker(database, settings, concurrency=AT_ONCE) as work:
                row = await ended(database, job_id, work.worker.listener)
        async with database.system_tx() as conn:
            meter.pages = await conn.fetchval("SELECT count(*) FROM store.version")
    assert row.status == "completed", row
    assert row.remaining == 0, row


async def ended(database: Database, job_id: JobId, listener: Listener) -> JobRow:
    """Wait for the end of a job: its notifications wake this, so polling does not slow the crawl."""
    news = asyncio.Event()
    listener.on_jobs(lambda job_ids: news.set() if str(job_id) in job_ids else None)
    while True:
        news.clear()
        async with database.system_tx() as conn:
            row = await jobs.get(conn, job_id)
        if row.status in jobs.ENDED:
            return row
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await news.wait()


async def start(database: Database, url: str) -> JobId:
    # The worker has AT_ONCE runners, so no more requests are made at once; but a page counts for the
    # job until it is stored, and that is not what is bounded here.
    options = CrawlOptions.parse(
        url=url, limit=1_000_000, delay=0, max_concurrency=4 * AT_ONCE, sitemap="skip"
    )
    async with database.system_tx() as conn:
        organisation = await tenancy.ensure_default(conn)
        return await submit.crawl(conn, organisation, options)


def main() -> None:
    meter = Meter()
    # As for everybody else, to load what reads pages is no part of the crawl.
    document_formats.load_extractor()
    job = sys.argv[3] if len(sys.argv) > 3 else None
    uvloop.run(crawl(sys.argv[1], sys.argv[2], job, meter))
    meter.tell()


if __name__ == "__main__":
    main()
