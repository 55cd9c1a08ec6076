"""What a crawl came to: by how its pages ended, what was slow, what was broken and where from."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode
from trapline.model import JobId, OrganisationId, TaskId
from trapline.pipeline.sql import report as queries
from trapline.pipeline.sql.report import FailedPagesRow, PagesOfRow, SlowestVisitsRow

_FAILED, _SKIPPED = 1, 2
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Report:
    """The closing summary of a crawl."""

    ends: dict[str, int]
    slowest: list[SlowestVisitsRow]
    broken: list[FailedPagesRow]
    blocked: list[FailedPagesRow]
    redirects: int


async def report(conn: Connection, job_id: JobId, *, most: int = 10) -> Report:
    ends = await queries.count_ends(conn, job_id=job_id)
    skipped = await queries.failed_pages(conn, job_id=job_id, status=_SKIPPED, most=1000)
    return Report(
        ends={ExitCode(row.exit_code).name.lower(): row.pages for row in ends},
        slowest=await queries.slowest_visits(conn, job_id=job_id, most=3),
        broken=await queries.failed_pages(conn, job_id=job_id, status=_FAILED, most=most),
        blocked=[row for row in skipped if row.code == ExitCode.ROBOTS_DISALLOWED][:most],
        redirects=(await queries.count_redirects(conn, job_id=job_id)),
    )


async def pages(
    database: Database, organisation_id: OrganisationId, job_id: JobId
) -> AsyncIterator[PagesOfRow]:
    """Give all pages of a crawl, a few at a time, so that a large one needs no large memory."""
    after = TaskId(0)
    while True:
        async with database.tenant_tx(organisation_id) as conn:
            rows = await queries.pages_of(conn, job_id=job_id, after=after, most=_PAGE)
        for row in rows:
            yield row
        if len(rows) < _PAGE:
            return
        after = rows[-1].task_id
