"""Lists of pages: by organisation, by site or by URL, each read by an index of its own."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, NotFound, VisitFailed
from trapline.frontier.url import typed_url, url_hash
from trapline.model import OrganisationId, PageId, SiteId
from trapline.pipeline.sql import pages as queries
from trapline.pipeline.sql.pages import PageRow


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pages a list is of; None leaves a filter out."""

    organisation_id: OrganisationId
    site_id: SiteId | None = None
    url: str | None = None
    seen_since: datetime | None = None
    seen_until: datetime | None = None
    gone: bool | None = None
    duplicate: bool | None = None

    @property
    def filters(self) -> dict[str, Any]:
        names = ("seen_since", "seen_until", "gone", "duplicate")
        return {name: getattr(self, name) for name in names}


async def pages(
    conn: Connection, wanted: Wanted, *, after: UUID | int | None = None, most: int
) -> list[PageRow]:
    """List pages, after the place of another: its URL's id in a site, its own id elsewhere."""
    if wanted.url is not None:
        ids = await queries.pages_of_url(
            conn,
            organisation_id=wanted.organisation_id,
            url_hash=_hash_of(wanted.url),
            site_id=wanted.site_id,
            **wanted.filters,
        )
        ids = [page_id for page_id in ids if not isinstance(after, UUID) or page_id > after]
        ids = ids[:most]
    elif wanted.site_id is not None:
        ids = await queries.pages_of_site(
            conn,
            site_id=wanted.site_id,
            after=after if isinstance(after, int) else 0,
            most=most,
            **wanted.filters,
        )
    else:
        ids = await queries.pages_of_organisation(
            conn,
            organisation_id=wanted.organisation_id,
            after=PageId(after if isinstance(after, UUID) else UUID(int=0)),
            most=most,
            **wanted.filters,
        )
    found = {row.page_id: row for row in await queries.show_pages(conn, page_ids=ids)}
    return [found[page_id] for page_id in ids if page_id in found]


def place(wanted: Wanted, row: PageRow) -> UUID | int:
    """Return the place of a page in such a list."""
    return row.url_id if wanted.url is None and wanted.site_id is not None else row.page_id


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
