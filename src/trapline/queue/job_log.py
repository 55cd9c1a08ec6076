"""The log of a job, for people; partitioned by month, as other logs are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, SiteId, TraceId
from trapline.queue.sql import job_log as queries
from trapline.queue.sql.job_log import JobLogRow, MilestonesRow

_PAGE: Final = 500
_SETTLED: Final = timedelta(seconds=30)


class Level(StrEnum):
    """The severity of a line, in rising order."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"

    @property
    def and_above(self) -> list[str]:
        names = [str(level) for level in Level]
        return names[names.index(self) :]


@dataclass(frozen=True, slots=True)
class Note:
    """One line: its step, message, severity and context."""

    step: str
    message: str
    level: Level = Level.INFO
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobNote:
    """A line with its job."""

    organisation_id: OrganisationId
    job_id: JobId
    note: Note
    site_id: SiteId | None = None
    trace_id: TraceId | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line for a reader: written by a step, or an event of the job."""

    at: datetime
    level: str
    step: str
    message: str
    context: Any = None
    trace_id: TraceId | None = None


@dataclass(slots=True)
class Reader:
    """Reads a job's log incrementally."""

    job_id: JobId
    level: Level = Level.INFO
    _after: int = 0
    _number: int = 0
    # Lines after `_after` that were returned: one with a lower id may be committed later.
    _given: set[int] = field(default_factory=set)

    async def read(self, conn: Connection) -> list[Line]:
        """Return the new lines, by time."""
        lines = await self.notes(conn)
        for event in await queries.milestones(conn, job_id=self.job_id, after=self._number):
            self._number = event.number
            if Level.INFO in self.level.and_above:
                lines.append(_milestone(event))
        return sorted(lines, key=lambda line: line.at)

    async def notes(self, conn: Connection) -> list[Line]:
        """Return the new lines of steps, in the order in which they were written."""
        return [_line(row) for row in await self._notes(conn)]

    async def _notes(self, conn: Connection) -> list[JobLogRow]:
        found: list[JobLogRow] = []
        last = self._after
        while True:
            rows = await queries.read_notes(
                conn,
                job_id=self.job_id,
                after=last,
                levels=self.level.and_above,
                step=None,
                most=_PAGE,
            )
            found += [row for row in rows if row.id not in self._given]
            if len(rows) < _PAGE:
                break
            last = rows[-1].id
        self._settle(found)
        return found

    def _settle(self, found: Sequence[JobLogRow]) -> None:
        """Move the position past lines that are so old that no lower id can still be committed."""
        self._given.update(row.id for row in found)
        if found:
            newest = found[-1].created_at
            old = [row.id for row in found if newest - row.created_at > _SETTLED]
            self._after = max([self._after, *old])
            self._given = {number for number in self._given if number > self._after}


async def write(conn: Connection, notes: Sequence[JobNote]) -> None:
    """Add lines, in the caller's transaction."""
    if not notes:
        return
    await queries.write_notes(
        conn,
        organisation_ids=[n.organisation_id for n in notes],
        job_ids=[n.job_id for n in notes],
        site_ids=[n.site_id for n in notes],
        steps=[n.note.step for n in notes],
        levels=[n.note.level for n in notes],
        messages=[n.note.message.replace("\x00", "") for n in notes],
        contexts=[_json(n.note.context) for n in notes],
        trace_ids=[n.trace_id for n in notes],
    )


def _json(context: Mapping[str, Any]) -> str:
    return msgspec.json.encode(context).decode().replace("\\u0000", "")


def _line(row: JobLogRow) -> Line:
    return Line(row.created_at, row.level, row.step, row.message, row.context, row.trace_id)


def _milestone(event: MilestonesRow) -> Line:
    word = event.type.removeprefix("job.")
    message = "The job has begun." if word == "started" else f"The job was {word}."
    if word in ("completed", "failed"):
        message = f"The job has {word}."
    return Line(event.created_at, Level.INFO, "job", message, event.data)
