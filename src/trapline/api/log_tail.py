"""Tail of a job's log: the lines that are new since the last read."""

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.queue import events
from trapline.queue.job_log import Level, Line, Reader


@dataclass(slots=True)
class LogTail:
    """Reads the lines written after an event. Lines precede the events of the same transaction, so a
    reader that resumes after an event misses none.
    """

    database: Database
    organisation_id: OrganisationId
    job_id: JobId
    level: Level
    after: int = 0
    _reader: Reader = field(init=False)
    _since: datetime | None = None

    def __post_init__(self) -> None:
        self._reader = Reader(self.job_id, self.level)

    async def lines(self) -> list[Line]:
        """Return the new lines."""
        async with self.database.tenant_tx(self.organisation_id) as conn:
            if self.after and self._since is None:
                seen = await events.list_events(conn, self.job_id, after=self.after - 1, most=1)
                self._since = seen[0].created_at if seen else None
            lines = await self._reader.notes(conn)
        since = self._since
        return [line for line in lines if since is None or line.at > since]


def encoded(line: Line) -> bytes:
    """Return a line as JSON."""
    fields = {
        "at": line.at,
        "level": line.level,
        "step": line.step,
        "message": line.message,
        "context": line.context,
    }
    return msgspec.json.encode(fields)
