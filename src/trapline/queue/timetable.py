"""Lists of schedules: by age, by name, or what ticks next first; each read along an index."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import UUID

from trapline.db.connection import Connection
from trapline.model import OrganisationId, ScheduleId
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow

Sort = Literal["newest", "oldest", "name", "next"]
Place = tuple[datetime, UUID] | str

_EVER: Final = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))
# As in the index of next ticks: what does not tick any more stands there.
_NEVER: Final = datetime(9000, 1, 1, tzinfo=UTC)
_END: Final = (_NEVER, UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which schedules a list is of, in which order; None leaves a filter out."""

    organisation_id: OrganisationId
    site: UUID | None = None
    application: UUID | None = None
    sort: Sort = "newest"


async def listed(
    conn: Connection, wanted: Wanted, *, after: Place | None = None, most: int
) -> list[ScheduleRow]:
    """Return the next schedules after a place."""
    which: dict[str, Any] = {
        "organisation_id": wanted.organisation_id,
        "site": wanted.site,
        "application": wanted.application,
        "most": most,
    }
    if wanted.sort == "name":
        name = after if isinstance(after, str) else ""
        return await queries.list_schedules_named(conn, after_name=name, **which)
    ends = _END if wanted.sort == "newest" else _EVER
    at, found = after if isinstance(after, tuple) else ends
    schedule_id = ScheduleId(found)
    if wanted.sort == "newest":
        return await queries.list_schedules(conn, before_at=at, before_id=schedule_id, **which)
    ascending = {
        "oldest": queries.list_schedules_oldest,
        "next": queries.list_schedules_next,
    }[wanted.sort]
    return await ascending(conn, after_at=at, after_id=schedule_id, **which)


def place_of(row: ScheduleRow, sort: Sort) -> Place:
    """Return where a schedule stands in an order."""
    if sort == "name":
        return row.name
    if sort == "next":
        return (_NEVER if row.next_at is None else row.next_at, row.id)
    return (row.created_at, row.id)
