"""Typed functions of sites.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SiteId


class SiteRow(Struct, frozen=True, gc=False):
    id: SiteId
    organisation_id: OrganisationId
    name: str
    base_url: str
    implicit: bool
    created_at: datetime
    updated_at: datetime


_ENSURE_SITE: Final = """
-- name: EnsureSite
INSERT INTO store.site (organisation_id, name, base_url, implicit)
VALUES ($1, $2, $3, true)
ON CONFLICT DO NOTHING
"""


async def ensure_site(
    conn: Connection, *, organisation_id: OrganisationId, name: str, base_url: str
) -> None:
    """Create the implicit site of an organisation and host on first use."""
    await conn.execute(_ENSURE_SITE, organisation_id, name, base_url)


_IMPLICIT_SITE: Final = """
-- name: ImplicitSite
SELECT * FROM store.site
WHERE organisation_id = $1 AND base_url = $2 AND implicit
"""


async def implicit_site(
    conn: Connection, *, organisation_id: OrganisationId, base_url: str
) -> SiteRow | None:
    """The implicit site of an organisation and host."""
    row = await conn.fetchrow(_IMPLICIT_SITE, organisation_id, base_url)
    return None if row is None else SiteRow(*row)
