"""The list of pages of an organisation, a site or a URL: keyset pagination in three orders."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, Final, Literal

from trapline.db.connection import Connection
from trapline.db.keyset import (
    FIRST_ID,
    FIRST_NUMBER,
    LAST_ID,
    LAST_NUMBER,
    LAST_TIME,
    KeysetList,
    Order,
)
from trapline.errors import InvalidInput, NotFound, VisitFailed
from trapline.frontier.canonical_url import typed_url, url_hash
from trapline.model import OrganisationId, PageId, SiteId
from trapline.pipeline.sql import pages as queries
from trapline.pipeline.sql.pages import PageRow

Sort = Literal["oldest", "newest", "changed"]
"""By when they were found, or by when their content changed last."""


async def _shown(
    query: Callable[..., Awaitable[list[PageId]]], conn: Connection, **parameters: Any
) -> list[PageRow]:
    """Run a query of page ids, and return these pages in its order."""
    ids = await query(conn, **parameters)
    rows = {row.page_id: row for row in await queries.show_pages(conn, page_ids=ids)}
    return [rows[page_id] for page_id in ids if page_id in rows]


async def _of_url(
    conn: Connection,
    *,
    key: Callable[[PageRow], Any],
    most: int,
    after: Any = None,
    before: Any = None,
    **filters: Any,
) -> list[PageRow]:
    """Return the pages of one URL: at most one in each site, so they are sorted here."""
    ids = await queries.pages_of_url(conn, **filters)
    rows = await queries.show_pages(conn, page_ids=ids)
    if before is None:
        return sorted((row for row in rows if key(row) > after), key=key)[:most]
    return sorted((row for row in rows if key(row) < before), key=key, reverse=True)[:most]


_PAGE_ID: Final = attrgetter("page_id")
_URL_ID: Final = attrgetter("url_id")
_CHANGED_PARAMETERS: Final = ("before_at", "before")


def _changed(row: PageRow) -> tuple[datetime, PageId]:
    return row.changed_at or row.first_seen_at, row.page_id


_OF_ORGANISATION: Final[Mapping[Sort, Order[PageRow]]] = {
    "oldest": Order(partial(_shown, queries.pages_of_organisation), ("after",), _PAGE_ID, FIRST_ID),
    "newest": Order(
        partial(_shown, queries.pages_of_organisation_newest), ("before",), _PAGE_ID, LAST_ID
    ),
    "changed": Order(
        partial(_shown, queries.pages_of_organisation_changed),
        _CHANGED_PARAMETERS,
        _changed,
        LAST_TIME,
    ),
}
_OF_SITE: Final[Mapping[Sort, Order[PageRow]]] = {
    "oldest": Order(partial(_shown, queries.pages_of_site), ("after",), _URL_ID, FIRST_NUMBER),
    "newest": Order(
        partial(_shown, queries.pages_of_site_newest), ("before",), _URL_ID, LAST_NUMBER
    ),
    "changed": Order(
        partial(_shown, queries.pages_of_site_changed), _CHANGED_PARAMETERS, _changed, LAST_TIME
    ),
}
_OF_URL: Final[Mapping[Sort, Order[PageRow]]] = {
    "oldest": Order(partial(_of_url, key=_PAGE_ID), ("after",), _PAGE_ID, FIRST_ID),
    "newest": Order(partial(_of_url, key=_PAGE_ID), ("before",), _PAGE_ID, LAST_ID),
    "changed": Order(partial(_of_url, key=_changed), ("before",), _changed, LAST_TIME),
}


def pages_of(  # noqa: PLR0913 (one argument for each filter)
    organisation_id: OrganisationId,
    *,
    site_id: SiteId | None = None,
    url: str | None = None,
    seen_since: datetime | None = None,
    seen_until: datetime | None = None,
    gone: bool | None = None,
    duplicate: bool | None = None,
) -> KeysetList[Sort, PageRow]:
    filters: dict[str, Any] = {
        "seen_since": seen_since,
        "seen_until": seen_until,
        "gone": gone,
        "duplicate": duplicate,
    }
    if url is not None:
        filters |= {"organisation_id": organisation_id, "site_id": site_id}
        return KeysetList(_OF_URL, filters | {"url_hash": _hash_of(url)})
    if site_id is not None:
        return KeysetList(_OF_SITE, filters | {"site_id": site_id})
    return KeysetList(_OF_ORGANISATION, filters | {"organisation_id": organisation_id})


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
