"""What became of the pages of a watched site, job by job: the same, changed, new, removed, or failed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from trapline.db.connection import Connection
from trapline.errors import OUTCOMES, Category
from trapline.extract.diff import Diff, diff
from trapline.model import JobId
from trapline.pipeline.sql import monitoring as queries
from trapline.pipeline.sql.monitoring import WatchedRow

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

    row: WatchedRow
    diff: Diff | None = None
    missed: bool = False
    """No visit told of it: a whole crawl did not find it again."""

    @property
    def place(self) -> "Place":
        return Place(self.missed, self.row.place)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page stands in a job's list: those that visits told of, then those that were missed."""

    missed: bool = False
    after: int = 0


class _Which(TypedDict):
    job_id: JobId
    status: str | None


async def summaries(conn: Connection, job_ids: Sequence[JobId]) -> Mapping[JobId, Summary]:
    """Count the pages of jobs. That reads them all: keep what does not change any more."""
    rows = await queries.check_summaries(conn, job_ids=list(job_ids), gone=_GONE, skipped=_SKIPPED)
    return {
        row.job_id: Summary(row.same, row.changed, row.new, row.removed, row.error) for row in rows
    }


async def pages(  # noqa: PLR0913 (of what, which of them, from where)
    conn: Connection,
    job_id: JobId,
    *,
    status: str | None = None,
    after: Place | None = None,
    skip: int = 0,
    most: int = 100,
) -> list[WatchedPage]:
    """Return a part of a job's pages, in the order in which they were found: after a place, which
    costs what it gives, or after so many.
    """
    place, which = after or Place(), _Which(job_id=job_id, status=status)
    rows: list[WatchedRow] = []
    if not place.missed:
        rows = await queries.check_pages(
            conn,
            after=place.after,
            skip=skip,
            most=most,
            gone=_GONE,
            skipped=_SKIPPED,
            **which,
        )
        if skip and not rows:
            skip -= await queries.count_check_pages(conn, gone=_GONE, skipped=_SKIPPED, **which)
        else:
            skip = 0
    missed: list[WatchedRow] = []
    if len(rows) < most:
        missed = await queries.missed_pages(
            conn,
            after=place.after if place.missed else 0,
            skip=skip,
            most=most - len(rows),
            **which,
        )
    found = await _differences(conn, rows)
    return [
        *(WatchedPage(row, found.get(row.version_id or 0)) for row in rows),
        *(WatchedPage(row, missed=True) for row in missed),
    ]


async def _differences(conn: Connection, rows: Sequence[WatchedRow]) -> dict[int, Diff]:
    changed = [row.version_id for row in rows if row.status == "changed" and row.version_id]
    texts = await queries.texts_before(conn, version_ids=changed)
    # A large diff takes its time, and the loop has others to answer.
    return {text.id: await asyncio.to_thread(diff, text.before, text.markdown) for text in texts}
