"""Typed functions of known.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SiteId, UrlId


class KnownPagesRow(Struct, frozen=True, gc=False):
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
    hash: bytes
    version_id: int | None


_KNOWN_PAGES: Final = """
-- name: KnownPages
SELECT c.*, u.hash, p.version_id
FROM unnest(
    $1::uuid[], $2::uuid[], $3::bytea[]
) AS wanted (organisation_id, site_id, hash)
JOIN frontier.url u USING (organisation_id, hash)
JOIN frontier.candidate c ON c.site_id = wanted.site_id AND c.url_id = u.id
LEFT JOIN store.page p ON p.site_id = c.site_id AND p.url_id = c.url_id
WHERE c.last_visit_at IS NOT NULL
"""


async def known_pages(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    site_ids: Sequence[SiteId],
    hashes: Sequence[bytes],
) -> list[KnownPagesRow]:
    """What earlier visits left of URLs in sites, and the version that a 304 would confirm, if it is there."""
    return [
        KnownPagesRow(*row)
        for row in await conn.fetch(_KNOWN_PAGES, organisation_ids, site_ids, hashes)
    ]


_LINKS_OF: Final = """
-- name: LinksOf
SELECT links FROM store.version WHERE id = $1
"""


async def links_of(conn: Connection, *, version_id: int) -> Any:
    """The links of a version, for a page that has not changed since."""
    value: Any = await conn.fetchval(_LINKS_OF, version_id)
    return value
