"""What is done after a job: what a whole crawl did not see again is removed, reports are settled,
and sightings become counts and duplicates.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import NotFound
from trapline.pipeline import ingestion
from trapline.pipeline.kinds import CRAWL
from trapline.pipeline.sql import changes as queries
from trapline.pipeline.sql import ingestion as reads
from trapline.pipeline.sweeping import sweep
from trapline.queue import events, jobs
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql.events import EventsSinceRow
from trapline.queue.sql.jobs import JobRow
from trapline.store import duplicates
from trapline.store.sql import changes

CONSUMER: Final = "followups"
_JOBS_AT_ONCE: Final = 20


async def after_jobs(database: Database) -> int:
    """Look after the jobs that ended since the last time; each is looked after once."""
    agent = database.settings.user_agent

    async def handle(conn: Connection, rows: Sequence[EventsSinceRow]) -> None:
        kinds = {row.job_id: row.data.get("kind") for row in rows}
        ended = list(kinds)
        awaited = set(await changes.awaited_reports(conn, job_ids=ended))
        filling = set(await reads.jobs_with_items(conn, job_ids=ended))
        for job_id, kind in kinds.items():
            # Most jobs are scrapes, after which nothing is to be done.
            if job_id not in awaited | filling and kind != CRAWL:
                continue
            try:
                job = await jobs.get(conn, job_id)
            except NotFound:
                continue
            if job_id in awaited:
                await _settle_report(conn, job)
            if job_id in filling and job.status in jobs.ENDED:
                await ingestion.settle(conn, job)
            if job.kind == CRAWL and job.status == "completed":
                await sweep(conn, job, agent)

    return await events.consume(
        database, CONSUMER, handle, types=events.ENDINGS, most=_JOBS_AT_ONCE
    )


async def fold_sightings(database: Database) -> int:
    """Count and compare all sightings that there are; what comes meanwhile is left for the next time."""
    folded = 0
    while True:
        async with database.system_tx() as conn:
            some = await duplicates.fold(conn)
        folded += some
        if some < duplicates.MOST_FOLDED:
            return folded


async def catch_up(database: Database) -> None:
    """Do at once what is due; for a process that ends with its job."""
    while await after_jobs(database):
        pass
    await fold_sightings(database)


def duties() -> list[Duty]:
    return [
        Duty("after jobs", after_jobs, timedelta(seconds=1)),
        Duty("duplicates", fold_sightings, timedelta(seconds=5), timedelta(hours=1)),
    ]


async def _settle_report(conn: Connection, job: JobRow) -> None:
    """Note what came of looking again at a page that a watcher reported."""
    found = await queries.first_page_of_job(conn, job_id=job.id)
    done = job.status == "completed" and job.failed == 0
    indexed = done and bool(job.options.get("index"))
    await changes.settle_reports(
        conn,
        job_ids=[job.id],
        statuses=[job.status if job.status == "cancelled" else "completed" if done else "failed"],
        # Indexing is part of the job: when that ended, it was done.
        indexed_ats=[job.finished_at if indexed else None],
        site_ids=[None if found is None else found.site_id],
        page_ids=[None if found is None else found.page_id],
        url_ids=[None if found is None else found.url_id],
        version_ids=[None if found is None else found.version_id],
    )
