"""Typed functions of known.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, PageId, SiteId, UrlId


class KnownPageRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    url_id: UrlId
    organisation_id: OrganisationId
    discovered_at: datetime
    last_visit_at: datetime | None
    last_exit_code: int | None
    last_contentful_at: datetime | None
    last_etag: str | None
    last_modified: datetime | None
    looks: float
    changes: float
    seconds: float
    failures: int
    declared: str | None
    due_at: datetime | None
    version_id: int | None


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
    site_id: SiteId
    last_seen_at: datetime
    url: str


class VersionBeforeRow(Struct, frozen=True, gc=False):
    id: int
    fetched_at: datetime
    markdown: str


_KNOWN_PAGE: Final = """
-- name: KnownPage
SELECT c.*, p.version_id
FROM frontier.url u
JOIN frontier.candidate c ON c.url_id = u.id
LEFT JOIN store.page p ON p.site_id = c.site_id AND p.url_id = c.url_id
WHERE u.organisation_id = $1
  AND u.hash = $2
  AND c.site_id = $3
"""


async def known_page(
    conn: Connection, *, organisation_id: OrganisationId, hash: bytes, site_id: SiteId
) -> KnownPageRow | None:
    """What is known of a URL in a site, and the version that a 304 would confirm, if it is still there."""
    row = await conn.fetchrow(_KNOWN_PAGE, organisation_id, hash, site_id)
    return None if row is None else KnownPageRow(*row)


_LINKS_OF: Final = """
-- name: LinksOf
SELECT links FROM store.version WHERE id = $1
"""


async def links_of(conn: Connection, *, version_id: int) -> Any:
    """The links of a version, for a page that has not changed since."""
    value: Any = await conn.fetchval(_LINKS_OF, version_id)
    return value


_LATEST_VERSION: Final = """
-- name: LatestVersion
SELECT v.*, p.site_id, p.last_seen_at, u.url::text AS "url!"
FROM frontier.url_text u
JOIN store.page p ON p.url_id = u.id
JOIN store.site s ON s.id = p.site_id
JOIN store.version v ON v.id = p.version_id
WHERE CASE
        WHEN $1::uuid IS NOT NULL THEN s.id = $1
        ELSE s.implicit AND s.base_url = $2
    END
  AND u.organisation_id = $3
  AND u.hash = $4
  AND ($5::timestamptz IS NULL OR p.last_seen_at >= $5)
  AND ($6::timestamptz IS NULL OR p.last_seen_at <= $6)
"""


async def latest_version(
    conn: Connection,
    *,
    site_id: SiteId | None,
    origin: str,
    organisation_id: OrganisationId,
    hash: bytes,
    seen_since: datetime | None,
    seen_until: datetime | None,
) -> StoredVersion | None:
    """The latest version of a URL in a site, if it was confirmed lately enough and is old enough."""
    row = await conn.fetchrow(
        _LATEST_VERSION, site_id, origin, organisation_id, hash, seen_since, seen_until
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
    """A version, with the URL of its page."""
    row = await conn.fetchrow(_VERSION_BY_ID, version_id)
    return None if row is None else StoredVersion(*row)


_VERSION_BEFORE: Final = """
-- name: VersionBefore
SELECT b.id, b.fetched_at, b.markdown
FROM store.version v JOIN store.version b ON b.page_id = v.page_id AND b.number = v.number - 1
WHERE v.id = $1
"""


async def version_before(conn: Connection, *, version_id: int) -> VersionBeforeRow | None:
    """The version of the same page before this one."""
    row = await conn.fetchrow(_VERSION_BEFORE, version_id)
    return None if row is None else VersionBeforeRow(*row)
