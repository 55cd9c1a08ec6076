"""Typed functions of known.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SiteId, UrlId


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
    content_hash: bytes | None


class PreviousVersionRow(Struct, frozen=True, gc=False):
    text: str
    markdown: str
    extractor_version: int
    sha256: bytes | None


_KNOWN_PAGE: Final = """
-- name: KnownPage
SELECT c.*, p.version_id, p.content_hash
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


_PREVIOUS_VERSION: Final = """
-- name: PreviousVersion
SELECT text, markdown, extractor_version, sha256 FROM store.version WHERE id = $1
"""


async def previous_version(conn: Connection, *, version_id: int) -> PreviousVersionRow | None:
    """What the version before says, to be compared with what was found."""
    row = await conn.fetchrow(_PREVIOUS_VERSION, version_id)
    return None if row is None else PreviousVersionRow(*row)
