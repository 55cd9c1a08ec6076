"""Job expiry: ended jobs are deleted with all their rows after their time to live."""

from datetime import timedelta
from typing import Final

from trapline.db.pool import Database
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import jobs
from trapline.settings import Settings

_JOBS_AT_ONCE: Final = 500
_TASKS_AT_ONCE: Final = 10_000


async def expire(database: Database) -> int:
    """Delete expired jobs, a bounded number of rows in each transaction."""
    async with database.system_tx() as conn:
        expired = await jobs.expired_jobs(conn, most=_JOBS_AT_ONCE)
    for job_id in expired:
        rows = _TASKS_AT_ONCE
        while rows >= _TASKS_AT_ONCE:
            async with database.system_tx() as conn:
                rows = await jobs.forget_job(conn, job_id=job_id, most=_TASKS_AT_ONCE)
    return len(expired)


def duties(settings: Settings) -> list[Duty]:
    return [Duty("job expiry", expire, timedelta(seconds=settings.retention.expiry_seconds))]
