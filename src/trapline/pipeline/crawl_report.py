"""What a crawl came to: by how its pages ended, what was slow, what was broken and where from."""

from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.errors import ExitCode
from trapline.model import JobId
from trapline.pipeline import noting
from trapline.pipeline.sql import report as queries
from trapline.pipeline.sql.report import FailedPagesRow, SlowestVisitsRow
from trapline.queue.sql import logbook
from trapline.queue.sql.logbook import NotedUrlsRow

_FAILED = 1


@dataclass(frozen=True, slots=True)
class Report:
    """The closing summary of a crawl. Of what is many, the first few are named and all counted."""

    ends: dict[str, int]
    slowest: list[SlowestVisitsRow]
    broken: list[FailedPagesRow]
    blocked: list[NotedUrlsRow]
    blocked_count: int
    traps: list[NotedUrlsRow]
    traps_count: int
    redirects: int


async def report(conn: Connection, job_id: JobId, *, most: int = 10) -> Report:
    ends = await queries.count_ends(conn, job_id=job_id)
    return Report(
        ends={ExitCode(row.exit_code).name.lower(): row.pages for row in ends},
        slowest=await queries.slowest_visits(conn, job_id=job_id, most=3),
        broken=await queries.failed_pages(conn, job_id=job_id, status=_FAILED, most=most),
        blocked=await blocked(conn, job_id, most=most),
        blocked_count=await logbook.count_noted_urls(conn, job_id=job_id, step=noting.ROBOTS),
        traps=await logbook.noted_urls(conn, job_id=job_id, step=noting.TRAP, most=most),
        traps_count=await logbook.count_noted_urls(conn, job_id=job_id, step=noting.TRAP),
        redirects=await queries.count_redirects(conn, job_id=job_id),
    )


async def blocked(conn: Connection, job_id: JobId, *, most: int = 1000) -> list[NotedUrlsRow]:
    """Return the URLs that robots.txt forbids: links that were not queued, and refused visits."""
    return await logbook.noted_urls(conn, job_id=job_id, step=noting.ROBOTS, most=most)
