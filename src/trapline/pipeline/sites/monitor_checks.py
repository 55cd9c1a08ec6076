"""The results of a monitor's checks, job by job: pages the same, changed, new, removed or failed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from trapline.db.connection import Connection
from trapline.errors import OUTCOMES, Category
from trapline.extract.diff import Diff, diff
from trapline.model import JobId
from trapline.pipeline.sql import monitor_checks as queries
from trapline.pipeline.sql.monitor_checks import CheckedPageRow

_GONE: Final = [int(code) for code, end in OUTCOMES.items() if end.category is Category.GONE]
_SKIPPED: Final = [int(code) for code, end in OUTCOMES.items() if end.category is Category.SKIPPED]


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """How many pages of a job are in each state."""

    same: int = 0
    changed: int = 0
    new: int = 0
    removed: int = 0
    error: int = 0

    @property
    def total(self) -> int:
        return self.same + self.changed + self.new + self.removed + self.error


@dataclass(frozen=True, slots=True)
class CheckedPage:
    """A page of a job, with its difference from the version before."""

    row: CheckedPageRow
    diff: Diff | None = None
    missed: bool = False
    """Whether a complete crawl did not find the page again."""

    @property
    def position(self) -> "Position":
        return Position(self.missed, self.row.place)


@dataclass(frozen=True, slots=True)
class Position:
    """The keyset of a job's list: first the visited pages, then the missed ones."""

    missed: bool = False
    after: int = 0


class _Filters(TypedDict):
    job_id: JobId
    status: str | None


async def summaries(conn: Connection, job_ids: Sequence[JobId]) -> Mapping[JobId, CheckSummary]:
    """Count the pages of jobs. This reads them all: store the counts of ended jobs."""
    rows = await queries.check_summaries(conn, job_ids=list(job_ids), gone=_GONE, skipped=_SKIPPED)
    return {
        row.job_id: CheckSummary(row.same, row.changed, row.new, row.removed, row.error)
        for row in rows
    }


async def pages(  # noqa: PLR0913 (the filters and the position)
    conn: Connection,
    job_id: JobId,
    *,
    status: str | None = None,
    after: Position | None = None,
    skip: int = 0,
    most: int = 100,
) -> list[CheckedPage]:
    """Return the next pages of a job: after a position, or, at the cost of reading them, after
    `skip` pages.
    """
    position, filters = after or Position(), _Filters(job_id=job_id, status=status)
    rows: list[CheckedPageRow] = []
    if not position.missed:
        rows = await queries.check_pages(
            conn,
            after=position.after,
            skip=skip,
            most=most,
            gone=_GONE,
            skipped=_SKIPPED,
            **filters,
        )
        if skip and not rows:
            skip -= await queries.count_check_pages(conn, gone=_GONE, skipped=_SKIPPED, **filters)
        else:
            skip = 0
    missed: list[CheckedPageRow] = []
    if len(rows) < most:
        missed = await queries.missed_pages(
            conn,
            after=position.after if position.missed else 0,
            skip=skip,
            most=most - len(rows),
            **filters,
        )
    diffs = await _differences(conn, rows)
    return [
        *(CheckedPage(row, diffs.get(row.version_id or 0)) for row in rows),
        *(CheckedPage(row, missed=True) for row in missed),
    ]


async def _differences(conn: Connection, rows: Sequence[CheckedPageRow]) -> dict[int, Diff]:
    changed = [row.version_id for row in rows if row.status == "changed" and row.version_id]
    texts = await queries.texts_before(conn, version_ids=changed)
    # A large diff takes long: not in the event loop.
    return {text.id: await asyncio.to_thread(diff, text.before, text.markdown) for text in texts}
