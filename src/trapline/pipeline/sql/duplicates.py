"""Typed functions of duplicates.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import PageId, SiteId


class GroupRow(Struct, frozen=True, gc=False):
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
    g.group_id, g.site_id, g.pages, c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT d.group_id, d.site_id, d.pages
    FROM store.duplicate_group d
    WHERE d.site_id = $1 AND d.pages > 1
        AND d.group_id > $2::bigint
    ORDER BY d.group_id
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
) -> list[GroupRow]:
    """Groups of similar pages after an id, oldest first."""
    return [GroupRow(*row) for row in await conn.fetch(_LIST_GROUPS, site_id, after, most)]


_LIST_GROUPS_NEWEST: Final = """
-- name: ListGroupsNewest
SELECT
    g.group_id, g.site_id, g.pages, c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT d.group_id, d.site_id, d.pages
    FROM store.duplicate_group d
    WHERE d.site_id = $1 AND d.pages > 1
        AND d.group_id < $2::bigint
    ORDER BY d.group_id DESC
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
ORDER BY g.group_id DESC
"""


async def list_groups_newest(
    conn: Connection, *, site_id: SiteId, before: int, most: int
) -> list[GroupRow]:
    """As ListGroups, before an id, newest first."""
    return [GroupRow(*row) for row in await conn.fetch(_LIST_GROUPS_NEWEST, site_id, before, most)]


_LIST_GROUPS_LARGEST: Final = """
-- name: ListGroupsLargest
SELECT
    g.group_id, g.site_id, g.pages, c.content_hash, c.occurrence_count,
    c.created_at AS first_seen_at, c.last_seen_at, first.page_id AS original_id,
    u.url::text AS "original_url!"
FROM (
    SELECT d.group_id, d.site_id, d.pages
    FROM store.duplicate_group d
    WHERE d.site_id = $1 AND d.pages > 1
        AND (d.pages, d.group_id) < ($2::integer, $3::bigint)
    ORDER BY d.pages DESC, d.group_id DESC
    LIMIT $4::integer
) g
JOIN store.content_hash c ON c.id = g.group_id
CROSS JOIN LATERAL (
    SELECT l.page_id FROM store.likeness l
    WHERE l.site_id = g.site_id AND l.group_id = g.group_id
    ORDER BY l.by_hand, l.page_id LIMIT 1
) first
JOIN store.page p ON p.id = first.page_id
JOIN frontier.url_text u ON u.id = p.url_id
ORDER BY g.pages DESC, g.group_id DESC
"""


async def list_groups_largest(
    conn: Connection, *, site_id: SiteId, before_pages: int, before: int, most: int
) -> list[GroupRow]:
    """As ListGroups, before a key, largest first."""
    return [
        GroupRow(*row)
        for row in await conn.fetch(_LIST_GROUPS_LARGEST, site_id, before_pages, before, most)
    ]


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
    """The pages of a group, the original first."""
    return [MembersOfRow(*row) for row in await conn.fetch(_MEMBERS_OF, site_id, group_id, most)]
