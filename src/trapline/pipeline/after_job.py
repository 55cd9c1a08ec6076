"""Follow-up of ended jobs: vanished pages, change reports and sources are brought up to date, and
sightings are rolled up into counts and duplicates.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import NotFound
from trapline.pipeline.crawl.vanished_pages import remove_vanished
from trapline.pipeline.ingest import source_operations
from trapline.pipeline.kinds import CRAWL
from trapline.pipeline.sql import changes as queries
from trapline.pipeline.sql import sources as reads
from trapline.queue import events, jobs
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql.events import EventsSinceRow
from trapline.queue.sql.jobs import JobRow
from trapline.store import duplicates
from trapline.store.sql import changes

CONSUMER: Final = "followups"
_JOBS_AT_ONCE: Final = 20


async def follow_up(database: Database) -> int:
    """Follow up the jobs that ended since the last call, each once."""
    agent = database.settings.fetch.user_agent

    async def handle(conn: Connection, rows: Sequence[EventsSinceRow]) -> None:
        kinds = {row.job_id: row.data.get("kind") for row in rows}
        ended = list(kinds)
        reported = set(await changes.awaited_reports(conn, job_ids=ended))
        indexed = set(await reads.jobs_with_items(conn, job_ids=ended))
        for job_id, kind in kinds.items():
            # Most jobs are scrapes, which need no follow-up.
            if job_id not in reported | indexed and kind != CRAWL:
                continue
            try:
                job = await jobs.get(conn, job_id)
            except NotFound:
                continue
            if job_id in reported:
                await _settle_report(conn, job)
            if job_id in indexed and job.status in jobs.ENDED:
                await source_operations.note_job_end(conn, job)
            if job.kind == CRAWL and job.status == "completed":
                await remove_vanished(conn, job, agent)

    return await events.consume(
        database, CONSUMER, handle, types=events.TERMINAL_EVENTS, most=_JOBS_AT_ONCE
    )


async def roll_up_sightings(database: Database) -> int:
    """Roll up all present sightings into counts and duplicates; later ones wait for the next call."""
    rolled_up = 0
    while True:
        async with database.system_tx() as conn:
            batch = await duplicates.group_sightings(conn)
        rolled_up += batch
        if batch < duplicates.BATCH_SIZE:
            return rolled_up


async def catch_up(database: Database) -> None:
    """Do all follow-up now, in a process that ends with its job."""
    while await follow_up(database):
        pass
    await roll_up_sightings(database)


def duties() -> list[Duty]:
    return [
        Duty("after jobs", follow_up, timedelta(seconds=1)),
        Duty("duplicates", roll_up_sightings, timedelta(seconds=5), timedelta(hours=1)),
    ]


async def _settle_report(conn: Connection, job: JobRow) -> None:
    """Store the result of the job that visited a page which changedetection.io reported."""
    page = await queries.first_page_of_job(conn, job_id=job.id)
    done = job.status == "completed" and job.failed == 0
    indexed = done and bool(job.options.get("index"))
    await changes.settle_reports(
        conn,
        job_ids=[job.id],
        statuses=[job.status if job.status == "cancelled" else "completed" if done else "failed"],
        # Indexing tasks belong to the job, so they ended with it.
        indexed_ats=[job.finished_at if indexed else None],
        site_ids=[None if page is None else page.site_id],
        page_ids=[None if page is None else page.page_id],
        url_ids=[None if page is None else page.url_id],
        version_ids=[None if page is None else page.version_id],
    )
