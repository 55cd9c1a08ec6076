"""The list of an organisation's schedules: keyset pagination by age, by name, or by the next tick."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final, Literal
from uuid import UUID

from trapline.db.keyset import FIRST_NAME, FIRST_TIME, LAST_TIME, LATEST, KeysetList, Order
from trapline.model import OrganisationId
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow

Sort = Literal["newest", "oldest", "name", "next"]

_BEFORE: Final = ("before_at", "before_id")
_AFTER: Final = ("after_at", "after_id")
_BY_AGE: Final = attrgetter("created_at", "id")
_ORDERS: Final[Mapping[Sort, Order[ScheduleRow]]] = {
    "newest": Order(queries.list_schedules, _BEFORE, _BY_AGE, LAST_TIME),
    "oldest": Order(queries.list_schedules_oldest, _AFTER, _BY_AGE, FIRST_TIME),
    "name": Order(queries.list_schedules_named, ("after_name",), attrgetter("name"), FIRST_NAME),
    # As in the index of next ticks: a schedule that does not tick any more stands at the end.
    "next": Order(
        queries.list_schedules_next,
        _AFTER,
        lambda row: (row.next_at or LATEST, row.id),
        FIRST_TIME,
    ),
}


def schedules_of(
    organisation_id: OrganisationId,
    *,
    site_id: UUID | None = None,
    application_id: UUID | None = None,
) -> KeysetList[Sort, ScheduleRow]:
    filters = {"site": site_id, "application": application_id}
    return KeysetList(_ORDERS, {"organisation_id": organisation_id} | filters)
