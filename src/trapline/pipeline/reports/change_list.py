"""The list of changes of an organisation, a site or a page: keyset pagination by age."""

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Literal

from trapline.db.keyset import FIRST_NUMBER, LAST_NUMBER, KeysetList, Order
from trapline.model import JobId, OrganisationId, PageId, SiteId
from trapline.pipeline.sql import changes as queries
from trapline.pipeline.sql.changes import ChangeRow
from trapline.store.changes import ChangeSource, ChangeStatus

Sort = Literal["newest", "oldest"]

_ID: Final = attrgetter("id")
_OF_ORGANISATION: Final[Mapping[Sort, Order[ChangeRow]]] = {
    "newest": Order(queries.list_changes, ("before",), _ID, LAST_NUMBER),
    "oldest": Order(queries.list_changes_oldest, ("after",), _ID, FIRST_NUMBER),
}
_OF_SITE: Final[Mapping[Sort, Order[ChangeRow]]] = {
    "newest": Order(queries.list_site_changes, ("before",), _ID, LAST_NUMBER),
    "oldest": Order(queries.list_site_changes_oldest, ("after",), _ID, FIRST_NUMBER),
}


def changes_of(  # noqa: PLR0913 (one argument for each filter)
    organisation_id: OrganisationId,
    *,
    site_id: SiteId | None = None,
    page_id: PageId | None = None,
    job_id: JobId | None = None,
    status: ChangeStatus | None = None,
    source: ChangeSource | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> KeysetList[Sort, ChangeRow]:
    """Select changes; `page_id` counts only with the site of that page."""
    filters: dict[str, Any] = {
        "job_id": job_id,
        "status": status,
        "source": source,
        "since": since,
        "until": until,
    }
    if site_id is None:
        return KeysetList(_OF_ORGANISATION, filters | {"organisation_id": organisation_id})
    return KeysetList(_OF_SITE, filters | {"site_id": site_id, "page_id": page_id})
