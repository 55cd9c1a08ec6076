"""The closing report of a crawl: pages by exit code, slow, broken and blocked ones, redirects."""

from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.errors import ExitCode
from trapline.model import JobId
from trapline.pipeline.crawl import job_log_messages
from trapline.pipeline.sql import crawl_report as queries
from trapline.pipeline.sql.crawl_report import FailedPagesRow, SlowestVisitsRow
from trapline.queue.sql import job_log
from trapline.queue.sql.job_log import NotedUrlsRow

_FAILED = 1


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """The report of a crawl; long lists hold their first rows, beside the count of all."""

    ends: dict[str, int]
    slowest: list[SlowestVisitsRow]
    broken: list[FailedPagesRow]
    blocked: list[NotedUrlsRow]
    blocked_count: int
    traps: list[NotedUrlsRow]
    traps_count: int
    redirects: int


async def read_report(conn: Connection, job_id: JobId, *, most: int = 10) -> CrawlReport:
    ends = await queries.count_exit_codes(conn, job_id=job_id)
    return CrawlReport(
        ends={ExitCode(row.exit_code).name.lower(): row.pages for row in ends},
        slowest=await queries.slowest_visits(conn, job_id=job_id, most=3),
        broken=await queries.failed_pages(conn, job_id=job_id, status=_FAILED, most=most),
        blocked=await blocked_urls(conn, job_id, most=most),
        blocked_count=await job_log.count_noted_urls(
            conn, job_id=job_id, step=job_log_messages.ROBOTS
        ),
        traps=await job_log.noted_urls(conn, job_id=job_id, step=job_log_messages.TRAP, most=most),
        traps_count=await job_log.count_noted_urls(conn, job_id=job_id, step=job_log_messages.TRAP),
        redirects=await queries.count_redirects(conn, job_id=job_id),
    )


async def blocked_urls(conn: Connection, job_id: JobId, *, most: int = 1000) -> list[NotedUrlsRow]:
    """Return the URLs that robots.txt forbids: of links that were not queued, and of skipped visits."""
    return await job_log.noted_urls(conn, job_id=job_id, step=job_log_messages.ROBOTS, most=most)
