"""Lists of groups of duplicates: by age, or the largest first; each read along an index."""

from typing import Final, Literal

from trapline.db.connection import Connection
from trapline.model import SiteId
from trapline.pipeline.sql import duplicates as queries
from trapline.pipeline.sql.duplicates import GroupRow

Sort = Literal["oldest", "newest", "largest"]
Place = int | tuple[int, int]
"""A group's id, or how many pages it has and its id."""

_LAST: Final = 2**63 - 1
_MOST_PAGES: Final = 2**31 - 1


async def listed(
    conn: Connection, site_id: SiteId, sort: Sort, *, after: Place | None = None, most: int
) -> list[GroupRow]:
    """Return the next groups of a site that have more than one page, after a place."""
    if sort == "largest":
        pages, group_id = after if isinstance(after, tuple) else (_MOST_PAGES, _LAST)
        return await queries.list_groups_largest(
            conn, site_id=site_id, before_pages=pages, before=group_id, most=most
        )
    if sort == "newest":
        before = after if isinstance(after, int) else _LAST
        return await queries.list_groups_newest(conn, site_id=site_id, before=before, most=most)
    first = after if isinstance(after, int) else 0
    return await queries.list_groups(conn, site_id=site_id, after=first, most=most)


def place_of(row: GroupRow, sort: Sort) -> Place:
    """Return where a group stands in an order."""
    return (row.pages, row.group_id) if sort == "largest" else row.group_id
