"""Typed functions of page_lookup.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId


class KnownPagesRow(Struct, frozen=True, gc=False):
    position: int
    site_id: SiteId | None
    last_visit_at: datetime | None
    last_contentful_at: datetime | None
    last_etag: str | None
    last_modified: datetime | None
    looks: float
    changes: float
    seconds: float
    failures: int
    due_at: datetime | None
    version_id: int | None
    content_hash: bytes | None
    variant: bytes | None


class PreviousVersionRow(Struct, frozen=True, gc=False):
    text: str
    markdown: str
    extractor_version: int
    sha256: bytes | None


class StoredVersion(Struct, frozen=True, gc=False):
    id: int
    organisation_id: OrganisationId
    page_id: PageId
    number: int
    visit_id: int
    job_id: JobId | None
    fetched_at: datetime
    content_hash: bytes
    extractor_version: int
    status: int | None
    content_type: str | None
    title: str | None
    language: str | None
    page_type: str | None
    text: str
    markdown: str
    metadata: Any
    links: Any
    warning: str | None
    sha256: bytes | None
    variant: bytes
    site_id: SiteId
    last_seen_at: datetime
    url: str


class VersionBeforeRow(Struct, frozen=True, gc=False):
    id: int
    fetched_at: datetime
    markdown: str


class TitlesOfRow(Struct, frozen=True, gc=False):
    hash: bytes
    title: str | None
    description: str | None


_KNOWN_PAGES: Final = """
-- name: KnownPages
SELECT
    k.position AS "position!", k.site_id AS "site_id?", k.last_visit_at AS "last_visit_at?",
    k.last_contentful_at AS "last_contentful_at?", k.last_etag AS "last_etag?",
    k.last_modified AS "last_modified?", k.looks AS "looks!", k.changes AS "changes!",
    k.seconds AS "seconds!", k.failures AS "failures!", k.due_at AS "due_at?",
    k.version_id AS "version_id?", k.content_hash AS "content_hash?", k.variant AS "variant?"
FROM store.look_up_pages(
    $1::uuid[], $2::uuid[], $3::text[],
    $4::bytea[], $5::bytea[]
) k
"""


async def known_pages(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    site_ids: Sequence[SiteId | None] | None,
    origins: Sequence[str],
    variants: Sequence[bytes],
    hashes: Sequence[bytes],
) -> list[KnownPagesRow]:
    """The states of pages after earlier visits, with the version that a 304 would confirm."""
    return [
        KnownPagesRow(*row)
        for row in await conn.fetch(
            _KNOWN_PAGES, organisation_ids, site_ids, origins, variants, hashes
        )
    ]


_LINKS_OF: Final = """
-- name: LinksOf
SELECT links FROM store.version WHERE id = $1
"""


async def links_of(conn: Connection, *, version_id: int) -> Any:
    """The links of a version."""
    value: Any = await conn.fetchval(_LINKS_OF, version_id)
    return value


_PREVIOUS_VERSION: Final = """
-- name: PreviousVersion
SELECT text, markdown, extractor_version, sha256 FROM store.version WHERE id = $1
"""


async def previous_version(conn: Connection, *, version_id: int) -> PreviousVersionRow | None:
    """The content of a version, to compare with a new document."""
    row = await conn.fetchrow(_PREVIOUS_VERSION, version_id)
    return None if row is None else PreviousVersionRow(*row)


_LATEST_VERSION: Final = """
-- name: LatestVersion
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM frontier.url_text u
JOIN store.page p ON p.url_id = u.id
JOIN store.site s ON s.id = p.site_id
JOIN store.version v ON v.id = p.version_id
WHERE CASE
        WHEN $1::uuid IS NOT NULL THEN s.id = $1
        ELSE s.implicit AND s.base_url = $2 AND s.variant = $3
    END
  AND p.variant = $3 AND v.variant = $3
  AND u.organisation_id = $4
  AND u.hash = $5
  AND ($6::timestamptz IS NULL OR p.last_seen_at >= $6)
  AND ($7::timestamptz IS NULL OR p.last_seen_at <= $7)
"""


async def latest_version(
    conn: Connection,
    *,
    site_id: SiteId | None,
    origin: str,
    variant: bytes,
    organisation_id: OrganisationId,
    hash: bytes,
    seen_since: datetime | None,
    seen_until: datetime | None,
) -> StoredVersion | None:
    """The latest version of a URL in a site, of a variant and within an age."""
    row = await conn.fetchrow(
        _LATEST_VERSION, site_id, origin, variant, organisation_id, hash, seen_since, seen_until
    )
    return None if row is None else StoredVersion(*row)


_VERSION_BY_ID: Final = """
-- name: VersionById
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM store.version v
JOIN store.page p ON p.id = v.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE v.id = $1
"""


async def version_by_id(conn: Connection, *, version_id: int) -> StoredVersion | None:
    """A version with the URL of its page."""
    row = await conn.fetchrow(_VERSION_BY_ID, version_id)
    return None if row is None else StoredVersion(*row)


_VERSION_BEFORE: Final = """
-- name: VersionBefore
SELECT b.id, b.fetched_at, b.markdown
FROM store.version v
JOIN store.version b ON b.page_id = v.page_id AND b.number < v.number AND b.variant = v.variant
WHERE v.id = $1
ORDER BY b.number DESC LIMIT 1
"""


async def version_before(conn: Connection, *, version_id: int) -> VersionBeforeRow | None:
    """The previous version of the same page and variant."""
    row = await conn.fetchrow(_VERSION_BEFORE, version_id)
    return None if row is None else VersionBeforeRow(*row)


_VERSIONS_BY_IDS: Final = """
-- name: VersionsByIds
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM store.version v
JOIN store.page p ON p.id = v.page_id
JOIN frontier.url_text u ON u.id = p.url_id
WHERE v.id = ANY ($1::bigint[])
"""


async def versions_by_ids(conn: Connection, *, version_ids: Sequence[int]) -> list[StoredVersion]:
    """Versions with the URLs of their pages."""
    return [StoredVersion(*row) for row in await conn.fetch(_VERSIONS_BY_IDS, version_ids)]


_URLS_OF_DOMAIN: Final = """
-- name: UrlsOfDomain
SELECT u.url::text AS "url!"
FROM frontier.host h
JOIN frontier.url p ON p.host_id = h.id
JOIN frontier.url_text u ON u.id = p.id
WHERE h.organisation_id = $1
  AND (h.name = $2 OR h.name LIKE $3)
  AND EXISTS (
      SELECT FROM frontier.candidate c JOIN store.site s ON s.id = c.site_id
      WHERE c.url_id = p.id AND c.failures = 0 AND s.variant = ANY ($4::bytea[])
  )
ORDER BY p.id
LIMIT $5::integer
"""


async def urls_of_domain(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    host: str,
    subdomains: str | None,
    variants: Sequence[bytes],
    most: int,
) -> list[str]:
    """URLs of an organisation on a host and, with a pattern, on its subdomains, found under these variants."""
    return [
        row[0]
        for row in await conn.fetch(
            _URLS_OF_DOMAIN, organisation_id, host, subdomains, variants, most
        )
    ]


_TITLES_OF: Final = """
-- name: TitlesOf
SELECT u.hash, v.title, (v.metadata ->> 'description')::text AS "description?"
FROM frontier.url u
JOIN store.page p ON p.url_id = u.id
JOIN store.version v ON v.id = p.version_id
WHERE u.organisation_id = $1 AND u.hash = ANY ($2::bytea[])
  AND v.variant = ANY ($3::bytea[])
"""


async def titles_of(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    hashes: Sequence[bytes],
    variants: Sequence[bytes],
) -> list[TitlesOfRow]:
    """Titles and descriptions of pages of these variants, by URL hash."""
    return [
        TitlesOfRow(*row) for row in await conn.fetch(_TITLES_OF, organisation_id, hashes, variants)
    ]
