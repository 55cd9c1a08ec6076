"""Lists of changes: of an organisation, a site or a page, newest or oldest first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId
from trapline.pipeline.sql import changes as queries
from trapline.pipeline.sql.changes import ChangeRow
from trapline.store.changes import Status

Sort = Literal["newest", "oldest"]
Source = Literal["visit", "sweep", "changedetection"]
_LAST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes a list is of; None leaves a filter out. A page is looked for in its site."""

    organisation_id: OrganisationId
    site_id: SiteId | None = None
    page_id: PageId | None = None
    job_id: JobId | None = None
    status: Status | None = None
    source: Source | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def filters(self) -> dict[str, Any]:
        names = ("job_id", "status", "source", "since", "until")
        return {name: getattr(self, name) for name in names}


async def listed(
    conn: Connection, wanted: Wanted, sort: Sort, *, after: int | None = None, most: int
) -> list[ChangeRow]:
    """Return the next changes after one; each order has its own query."""
    which: dict[str, Any] = wanted.filters | {"most": most}
    if wanted.site_id is not None:
        which |= {"site_id": wanted.site_id, "page_id": wanted.page_id}
        if sort == "oldest":
            return await queries.list_site_changes_oldest(conn, after=after or 0, **which)
        before = _LAST if after is None else after
        return await queries.list_site_changes(conn, before=before, **which)
    which |= {"organisation_id": wanted.organisation_id}
    if sort == "oldest":
        return await queries.list_changes_oldest(conn, after=after or 0, **which)
    return await queries.list_changes(conn, before=_LAST if after is None else after, **which)
