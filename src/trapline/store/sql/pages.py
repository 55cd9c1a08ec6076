"""Typed functions of pages.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId


class SeePagesRow(Struct, frozen=True, gc=False):
    page_id: PageId
    site_id: SiteId
    url_id: UrlId
    version_id: int | None
    version_number: int
    content_hash: bytes | None
    extractor_version: int | None
    returned_at: datetime | None


class AddVersionsRow(Struct, frozen=True, gc=False):
    version_id: int
    page_id: PageId
    number: int


class PagesGoneRow(Struct, frozen=True, gc=False):
    page_id: PageId
    organisation_id: OrganisationId
    site_id: SiteId
    url_id: UrlId
    version_id: int | None
    at: datetime


_SEE_PAGES: Final = """
-- name: SeePages
INSERT INTO store.page AS p (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
SELECT id, organisation_id, site_id, url_id, seen_at, seen_at
FROM unnest(
    $1::uuid[],
    $2::uuid[],
    $3::uuid[],
    $4::bigint[],
    $5::timestamptz[]
) AS new (id, organisation_id, site_id, url_id, seen_at)
ORDER BY site_id, url_id
ON CONFLICT (site_id, url_id) DO UPDATE SET
    last_seen_at = greatest(p.last_seen_at, excluded.last_seen_at),
    returned_at = CASE WHEN p.gone_at IS NULL THEN p.returned_at ELSE excluded.last_seen_at END,
    gone_at = NULL
RETURNING
    id AS page_id, site_id, url_id, version_id, version_number, content_hash, extractor_version,
    returned_at
"""


async def see_pages(
    conn: Connection,
    *,
    ids: Sequence[UUID],
    organisation_ids: Sequence[OrganisationId],
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    seen_ats: Sequence[datetime],
) -> list[SeePagesRow]:
    """Note pages as seen now; what comes back is what their latest version was before."""
    return [
        SeePagesRow(*row)
        for row in await conn.fetch(_SEE_PAGES, ids, organisation_ids, site_ids, url_ids, seen_ats)
    ]


_ADD_VERSIONS: Final = """
-- name: AddVersions
WITH added AS (
    INSERT INTO store.version (
        organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown, metadata, links,
        warning, sha256
    )
    SELECT
        organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown,
        metadata::jsonb, links::jsonb, warning, sha256
    FROM unnest(
        $1::uuid[],
        $2::uuid[],
        $3::integer[],
        $4::bigint[],
        $5::uuid[],
        $6::timestamptz[],
        $7::bytea[],
        $8::smallint[],
        $9::smallint[],
        $10::text[],
        $11::text[],
        $12::text[],
        $13::text[],
        $14::text[],
        $15::text[],
        $16::text[],
        $17::text[],
        $18::text[],
        $19::bytea[]
    ) AS new (
        organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown, metadata, links,
        warning, sha256
    )
    RETURNING id, page_id, number, content_hash, extractor_version, fetched_at
),
latest AS (
    UPDATE store.page p
    SET version_id = added.id,
        version_number = added.number,
        content_hash = added.content_hash,
        extractor_version = added.extractor_version,
        changed_at = added.fetched_at
    FROM added
    WHERE p.id = added.page_id
)
SELECT id AS version_id, page_id, number FROM added
"""


async def add_versions(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    page_ids: Sequence[PageId],
    numbers: Sequence[int],
    visit_ids: Sequence[int],
    job_ids: Sequence[JobId | None] | None,
    fetched_ats: Sequence[datetime],
    content_hashes: Sequence[bytes],
    extractor_versions: Sequence[int],
    statuses: Sequence[int | None] | None,
    content_types: Sequence[str | None] | None,
    titles: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    page_types: Sequence[str | None] | None,
    texts: Sequence[str],
    markdowns: Sequence[str],
    metadatas: Sequence[str],
    links: Sequence[str],
    warnings: Sequence[str | None] | None,
    sha256s: Sequence[bytes | None] | None,
) -> list[AddVersionsRow]:
    """Write new versions and make each the latest of its page."""
    return [
        AddVersionsRow(*row)
        for row in await conn.fetch(
            _ADD_VERSIONS,
            organisation_ids,
            page_ids,
            numbers,
            visit_ids,
            job_ids,
            fetched_ats,
            content_hashes,
            extractor_versions,
            statuses,
            content_types,
            titles,
            languages,
            page_types,
            texts,
            markdowns,
            metadatas,
            links,
            warnings,
            sha256s,
        )
    ]


_PAGES_GONE: Final = """
-- name: PagesGone
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


async def pages_gone(
    conn: Connection,
    *,
    site_ids: Sequence[SiteId],
    url_ids: Sequence[UrlId],
    ats: Sequence[datetime],
) -> list[PagesGoneRow]:
    """Note pages that are gone; those come back that were there until now."""
    return [PagesGoneRow(*row) for row in await conn.fetch(_PAGES_GONE, site_ids, url_ids, ats)]
