"""Typed functions of pages.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, PageId, SiteId, UrlId


class RecordPagesRow(Struct, frozen=True, gc=False):
    page_id: PageId
    version_id: int | None
    number: int
    change: int


class MarkPagesGoneRow(Struct, frozen=True, gc=False):
    page_id: PageId
    organisation_id: OrganisationId
    site_id: SiteId
    url_id: UrlId
    version_id: int | None
    at: datetime


_RECORD_PAGES: Final = """
-- name: RecordPages
SELECT page_id AS "page_id!", version_id, number AS "number!", change AS "change!"
FROM store.record_pages($1::store.new_sighting[])
"""


async def record_pages(
    conn: Connection,
    *,
    sightings: Sequence[
        tuple[
            UUID | None,
            UUID | None,
            UUID | None,
            int | None,
            int | None,
            UUID | None,
            datetime | None,
            int | None,
            int | None,
            bool | None,
            int | None,
            int | None,
            int | None,
            int | None,
            int | None,
            bytes | None,
            int | None,
            str | None,
            str | None,
            str | None,
            str | None,
            str | None,
            str | None,
            str | None,
            str | None,
            str | None,
            bytes | None,
            bytes | None,
        ]
    ],
) -> list[RecordPagesRow]:
    """Record pages as seen; return the result of each, in order."""
    return [RecordPagesRow(*row) for row in await conn.fetch(_RECORD_PAGES, sightings)]


_MARK_PAGES_GONE: Final = """
-- name: MarkPagesGone
UPDATE store.page p
SET gone_at = gone.at
FROM (
    SELECT p.id, new.at
    FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[])
        AS new (site_id, url_id, at)
    JOIN store.page p USING (site_id, url_id)
    WHERE p.gone_at IS NULL AND p.version_id IS NOT NULL
    ORDER BY new.site_id, new.url_id
    FOR NO KEY UPDATE OF p
) AS gone
WHERE p.id = gone.id
RETURNING p.id AS page_id, p.organisation_id, p.site_id, p.url_id, p.version_id, gone.at
"""


async def mark_pages_gone(
    conn: Connection,
    *,
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    ats: Sequence[datetime],
) -> list[MarkPagesGoneRow]:
    """Mark pages as gone; return those that were not gone before."""
    return [
        MarkPagesGoneRow(*row) for row in await conn.fetch(_MARK_PAGES_GONE, site_ids, url_ids, ats)
    ]
