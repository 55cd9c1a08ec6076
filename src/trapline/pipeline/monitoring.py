"""What became of the pages of a watched site, job by job: the same, changed, new, removed, or failed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from trapline.db.connection import Connection
from trapline.errors import OUTCOMES, Category
from trapline.extract.diff import Diff, diff
from trapline.model import JobId, OrganisationId
from trapline.pipeline.sql import monitoring as queries
from trapline.pipeline.sql.monitoring import CheckPagesRow

_GONE: Final = [int(code) for code, end in OUTCOMES.items() if end.category is Category.GONE]
_SKIPPED: Final = [int(code) for code, end in OUTCOMES.items() if end.category is Category.SKIPPED]


@dataclass(frozen=True, slots=True)
class Summary:
    """How many pages of a job are what."""

    same: int = 0
    changed: int = 0
    new: int = 0
    removed: int = 0
    error: int = 0

    @property
    def total(self) -> int:
        return self.same + self.changed + self.new + self.removed + self.error


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """A page of a job, with what differs from the version before."""

    row: CheckPagesRow
    diff: Diff | None = None


async def summaries(
    conn: Connection, organisation_id: OrganisationId, job_ids: Sequence[JobId], *, since: datetime
) -> Mapping[JobId, Summary]:
    """Count the pages of jobs, none of which began before `since`."""
    rows = await queries.check_summaries(
        conn,
        organisation_id=organisation_id,
        job_ids=list(job_ids),
        since=since,
        gone=_GONE,
        skipped=_SKIPPED,
    )
    return {
        row.job_id: Summary(row.same, row.changed, row.new, row.removed, row.error) for row in rows
    }


async def pages(  # noqa: PLR0913 (whose, of what, and which of them)
    conn: Connection,
    organisation_id: OrganisationId,
    job_id: JobId,
    *,
    since: datetime,
    status: str | None = None,
    skip: int = 0,
    most: int = 100,
) -> list[WatchedPage]:
    """Return a part of a job's pages, in the order in which they were found."""
    rows = await queries.check_pages(
        conn,
        organisation_id=organisation_id,
        job_id=job_id,
        since=since,
        gone=_GONE,
        skipped=_SKIPPED,
        status=status,
        skip=skip,
        most=most,
    )
    changed = [row.version_id for row in rows if row.status == "changed" and row.version_id]
    texts = await queries.texts_before(conn, version_ids=changed)
    # A large diff takes its time, and the loop has others to answer.
    found = {text.id: await asyncio.to_thread(diff, text.before, text.markdown) for text in texts}
    return [WatchedPage(row, found.get(row.version_id or 0)) for row in rows]
