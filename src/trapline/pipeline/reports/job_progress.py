"""Progress of a job as people watch it: latest pages, outcomes, pace, estimated end, what it waits for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from trapline.db.connection import Connection
from trapline.model import JobId
from trapline.pipeline.sql import crawl_report as report_queries
from trapline.pipeline.sql import job_results as queries
from trapline.pipeline.sql.crawl_report import RecentExitCodesRow
from trapline.pipeline.sql.job_results import LatestPagesRow
from trapline.queue import jobs, why
from trapline.queue.jobs import Progress
from trapline.queue.sql.jobs import JobRow

RECENT_VISITS: Final = 5000
_PACE_PAGES: Final = 50
_SHOWN_PAGES: Final = 20
_STALE_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A job at one moment. `pages_per_minute` and `seconds_left` are None while nothing can be said."""

    job: JobRow
    progress: Progress
    ends: list[RecentExitCodesRow]
    pages: Sequence[LatestPagesRow]
    pages_per_minute: float | None
    seconds_left: float | None
    why: str
    pace: str


async def read_progress(conn: Connection, job_id: JobId, *, now: datetime) -> JobProgress:
    """Read it with queries whose cost does not grow with the job."""
    job = await jobs.get(conn, job_id)
    ended = job.status in jobs.ENDED
    pages = await queries.latest_pages(conn, job_id=job_id, most=_PACE_PAGES)
    rate = None if ended else pages_per_minute([page.created_at for page in pages], now)
    return JobProgress(
        job,
        await jobs.progress(conn, job),
        await report_queries.recent_exit_codes(conn, job_id=job_id, most=RECENT_VISITS),
        pages[:_SHOWN_PAGES],
        rate,
        job.remaining / rate * 60 if rate else None,
        await why.why_job(conn, job_id, now=now),
        "" if ended else await why.pace_of(conn, job_id, now=now),
    )


def pages_per_minute(times: Sequence[datetime], now: datetime) -> float | None:
    """Return the pace of the latest pages, newest first; None if they are too few or too old."""
    if len(times) < 2 or (now - times[0]).total_seconds() > _STALE_SECONDS:  # noqa: PLR2004 (a span has two ends)
        return None
    span = (now - times[-1]).total_seconds()
    return len(times) / span * 60 if span > 0 else None
