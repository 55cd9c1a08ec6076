"""Typed functions of retention.sql, made by `make sql`: edit that file instead."""

from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class DropVersionsRow(Struct, frozen=True, gc=False):
    last: int | None
    gone: int


_DROP_VERSIONS: Final = """
-- name: DropVersions
WITH part AS MATERIALIZED (
    SELECT v.id, v.page_id, v.number FROM store.version v
    WHERE v.id > $1::bigint ORDER BY v.id LIMIT $2::integer
),
past AS MATERIALIZED (
    SELECT p.id FROM part p
    JOIN store.page g ON g.id = p.page_id
    JOIN store.site s ON s.id = g.site_id
    LEFT JOIN LATERAL (
        SELECT n.fetched_at FROM store.version n
        WHERE n.page_id = p.page_id AND n.number > p.number
        ORDER BY n.number LIMIT 1) n ON true
    WHERE p.id <> g.version_id AND (
        g.version_number - p.number >= coalesce(
            (s.config -> 'retention' ->> 'versions')::integer, $3::integer)
        OR n.fetched_at < now() - interval '1 day' * coalesce(
            (s.config -> 'retention' ->> 'days')::integer, $4::integer))
),
gone AS (
    DELETE FROM store.version v WHERE v.id IN (SELECT p.id FROM past p) RETURNING 1
)
SELECT (SELECT max(id) FROM part) AS "last?", (SELECT count(*) FROM gone) AS "gone!"
"""


async def drop_versions(
    conn: Connection, *, after: int, most: int, versions: int | None, days: int | None
) -> DropVersionsRow:
    """Delete, among the next versions, those past their retention: beyond the number of versions to keep, or replaced longer ago than the days to keep. A site's config takes precedence over the settings, and the latest version of a page always stays."""
    (row,) = await conn.fetch(_DROP_VERSIONS, after, most, versions, days)
    return DropVersionsRow(*row)
