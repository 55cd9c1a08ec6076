"""Lists of pages: by organisation, by site or by URL, in each order read by an index of its own."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import UUID

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, NotFound, VisitFailed
from trapline.frontier.url import typed_url, url_hash
from trapline.model import OrganisationId, PageId, SiteId
from trapline.pipeline.sql import pages as queries
from trapline.pipeline.sql.pages import PageRow

Sort = Literal["oldest", "newest", "changed"]
"""By when they were found, or those first whose content changed last."""
Place = UUID | int | tuple[datetime, UUID]
"""Where a page stands in such a list: its own id, in a site its URL's, or its last change."""

_FIRST: Final = PageId(UUID(int=0))
_LAST: Final = PageId(UUID(int=2**128 - 1))
_LAST_URL: Final = 2**63 - 1
_NEVER: Final = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pages a list is of, in which order; None leaves a filter out."""

    organisation_id: OrganisationId
    site_id: SiteId | None = None
    url: str | None = None
    seen_since: datetime | None = None
    seen_until: datetime | None = None
    gone: bool | None = None
    duplicate: bool | None = None
    sort: Sort = "oldest"

    @property
    def filters(self) -> dict[str, Any]:
        names = ("seen_since", "seen_until", "gone", "duplicate")
        return {name: getattr(self, name) for name in names}

    @property
    def by_url(self) -> bool:
        """Whether pages stand in the order of their URLs' ids."""
        return self.url is None and self.site_id is not None and self.sort != "changed"


async def pages(
    conn: Connection, wanted: Wanted, *, after: Place | None = None, most: int
) -> list[PageRow]:
    """List pages, after the place of another."""
    if wanted.url is not None:
        return await _of_url(conn, wanted, wanted.url, after, most)
    if wanted.site_id is not None:
        ids = await _of_site(conn, wanted, wanted.site_id, after, most)
    else:
        ids = await _of_organisation(conn, wanted, after, most)
    found = {row.page_id: row for row in await queries.show_pages(conn, page_ids=ids)}
    return [found[page_id] for page_id in ids if page_id in found]


async def _of_site(
    conn: Connection, wanted: Wanted, site_id: SiteId, after: Place | None, most: int
) -> list[PageId]:
    which: dict[str, Any] = {"site_id": site_id, "most": most} | wanted.filters
    if wanted.sort == "changed":
        at, page_id = _changed(after)
        return await queries.pages_of_site_changed(conn, before_at=at, before=page_id, **which)
    if wanted.sort == "newest":
        before = after if isinstance(after, int) else _LAST_URL
        return await queries.pages_of_site_newest(conn, before=before, **which)
    return await queries.pages_of_site(conn, after=after if isinstance(after, int) else 0, **which)


async def _of_organisation(
    conn: Connection, wanted: Wanted, after: Place | None, most: int
) -> list[PageId]:
    which: dict[str, Any] = {"organisation_id": wanted.organisation_id, "most": most}
    which |= wanted.filters
    if wanted.sort == "changed":
        at, page_id = _changed(after)
        return await queries.pages_of_organisation_changed(
            conn, before_at=at, before=page_id, **which
        )
    if wanted.sort == "newest":
        before = PageId(after) if isinstance(after, UUID) else _LAST
        return await queries.pages_of_organisation_newest(conn, before=before, **which)
    first = PageId(after) if isinstance(after, UUID) else _FIRST
    return await queries.pages_of_organisation(conn, after=first, **which)


def _changed(after: Place | None) -> tuple[datetime, PageId]:
    at, page_id = after if isinstance(after, tuple) else (_NEVER, _LAST)
    return at, PageId(page_id)


async def _of_url(
    conn: Connection, wanted: Wanted, url: str, after: Place | None, most: int
) -> list[PageRow]:
    """List the pages of one URL: at most one in each site, so they are sorted here."""
    ids = await queries.pages_of_url(
        conn,
        organisation_id=wanted.organisation_id,
        url_hash=_hash_of(url),
        site_id=wanted.site_id,
        **wanted.filters,
    )
    descending = wanted.sort != "oldest"
    placed: list[tuple[Any, PageRow]] = sorted(
        ((place(wanted, row), row) for row in await queries.show_pages(conn, page_ids=ids)),
        key=lambda pair: pair[0],
        reverse=descending,
    )
    if after is not None:
        placed = [p for p in placed if (p[0] < after if descending else p[0] > after)]
    return [row for _, row in placed[:most]]


def place(wanted: Wanted, row: PageRow) -> Place:
    """Return the place of a page in such a list."""
    if wanted.sort == "changed":
        return (row.changed_at or row.first_seen_at, row.page_id)
    return row.url_id if wanted.by_url else row.page_id


async def page(conn: Connection, page_id: PageId) -> PageRow:
    """Return one page."""
    rows = await queries.show_pages(conn, page_ids=[page_id])
    if not rows:
        raise NotFound(f"There is no page {page_id}.")
    return rows[0]


def _hash_of(url: str) -> bytes:
    try:
        return url_hash(typed_url(url))
    except VisitFailed as error:
        raise InvalidInput(error.message) from None
