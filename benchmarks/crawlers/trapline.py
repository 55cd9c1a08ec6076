"""Trapline with everything stored, as `trapline crawl` does it: python -m … URL DSN [JOB].

With a job's id it helps with that crawl instead of starting one.
"""

import os
import sys
from uuid import UUID

# As the program itself does, before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import uvloop

from benchmarks.crawlers import AT_ONCE, Meter
from trapline import app, logs
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import JobId
from trapline.pipeline import documents, submit
from trapline.pipeline.options import CrawlOptions
from trapline.queue import jobs
from trapline.queue.waiting import Waiting
from trapline.settings import Settings


async def crawl(url: str, dsn: str, job: str | None, meter: Meter) -> None:
    settings = Settings(database_url=dsn, allow_nets="127.0.0.0/8", log_level="error")
    logs.configure(settings)
    async with Database.open(settings) as database:
        job_id = JobId(UUID(job)) if job else await start(database, url)
        print(job_id, flush=True)
        with meter:
            async with app.working(database, settings, concurrency=AT_ONCE) as work:
                waiting = Waiting(database, work.worker.ears)
                async with database.system_tx() as conn:
                    organisation = (await jobs.get(conn, job_id)).organisation_id
                row = await waiting.for_job(job_id, organisation)
        async with database.system_tx() as conn:
            meter.pages = await conn.fetchval("SELECT count(*) FROM store.version")
    assert row.status == "completed", row
    assert row.remaining == 0, row


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
    documents.load_reader()
    job = sys.argv[3] if len(sys.argv) > 3 else None
    uvloop.run(crawl(sys.argv[1], sys.argv[2], job, meter))
    meter.tell()


if __name__ == "__main__":
    main()
