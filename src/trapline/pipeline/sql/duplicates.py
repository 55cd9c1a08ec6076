"""Typed functions of duplicates.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import PageId, SiteId


class ListGroupsRow(Struct, frozen=True, gc=False):
    group_id: int
    site_id: SiteId
    pages: int
    content_hash: bytes
    occurrence_count: int
    first_seen_at: datetime
    last_seen_at: datetime
    original_id: PageId
    original_url: str


class MembersOfRow(Struct, frozen=True, gc=False):
    page_id: PageId
    url: str
    url_hash: bytes
    similarity: int | None
    by_hand: bool
    content_hash: bytes | None
    first_seen_at: datetime
    last_seen_at: datetime


_LIST_GROUPS: Final = """
-- name: ListGroups
SELECT
    g.group_id AS "group_id!", g.site_id, g.pages AS "pages!", c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT l.site_id, l.group_id, count(*) AS pages
    FROM store.likeness l
    WHERE l.site_id = $1 AND l.group_id > $2::bigint
    GROUP BY l.site_id, l.group_id
    HAVING count(*) > 1
    ORDER BY l.group_id
    LIMIT $3::integer
) g
JOIN store.content_hash c ON c.id = g.group_id
CROSS JOIN LATERAL (
    SELECT l.page_id FROM store.likeness l
    WHERE l.site_id = g.site_id AND l.group_id = g.group_id
    ORDER BY l.by_hand, l.page_id LIMIT 1
) first
JOIN store.page p ON p.id = first.page_id
JOIN frontier.url_text u ON u.id = p.url_id
ORDER BY g.group_id
"""


async def list_groups(
    conn: Connection, *, site_id: SiteId, after: int, most: int
) -> list[ListGroupsRow]:
    """Groups of pages that are alike, after one."""
    return [ListGroupsRow(*row) for row in await conn.fetch(_LIST_GROUPS, site_id, after, most)]


_MEMBERS_OF: Final = """
-- name: MembersOf
SELECT
    l.page_id, u.url::text AS "url!", u.hash AS "url_hash!", l.similarity, l.by_hand,
    p.content_hash, p.first_seen_at, p.last_seen_at
FROM store.likeness l
JOIN store.page p ON p.id = l.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE l.site_id = $1 AND l.group_id = $2
ORDER BY l.by_hand, l.page_id
LIMIT $3::integer
"""


async def members_of(
    conn: Connection, *, site_id: SiteId, group_id: int, most: int
) -> list[MembersOfRow]:
    """The pages of a group, the original first, after a place in that order."""
    return [MembersOfRow(*row) for row in await conn.fetch(_MEMBERS_OF, site_id, group_id, most)]
