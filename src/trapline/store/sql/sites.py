"""Typed functions of sites.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SiteId


class SiteRow(Struct, frozen=True, gc=False):
    id: SiteId
    organisation_id: OrganisationId
    name: str
    name_key: str
    base_url: str
    implicit: bool
    status: str
    config: Any
    config_number: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    purge: bool
    variant: bytes


class SiteConfigRow(Struct, frozen=True, gc=False):
    site_id: SiteId
    number: int
    organisation_id: OrganisationId
    config: Any
    created_by: str | None
    note: str | None
    created_at: datetime


_ENSURE_SITE: Final = """
-- name: EnsureSite
INSERT INTO store.site (organisation_id, name, base_url, variant, implicit)
VALUES (
    $1, $2, $3, $4, true
)
ON CONFLICT DO NOTHING
"""


async def ensure_site(
    conn: Connection, *, organisation_id: OrganisationId, name: str, base_url: str, variant: bytes
) -> None:
    """Create the implicit site of an organisation, host and variant on first use."""
    await conn.execute(_ENSURE_SITE, organisation_id, name, base_url, variant)


_IMPLICIT_SITE: Final = """
-- name: ImplicitSite
SELECT * FROM store.site
WHERE organisation_id = $1 AND base_url = $2
    AND variant = $3 AND implicit AND deleted_at IS NULL
"""


async def implicit_site(
    conn: Connection, *, organisation_id: OrganisationId, base_url: str, variant: bytes
) -> SiteRow | None:
    """The implicit site of an organisation, host and variant."""
    row = await conn.fetchrow(_IMPLICIT_SITE, organisation_id, base_url, variant)
    return None if row is None else SiteRow(*row)


_CREATE_SITE: Final = """
-- name: CreateSite
INSERT INTO store.site (organisation_id, name, base_url, config, created_by)
VALUES (
    $1, $2, $3, $4,
    $5
)
ON CONFLICT DO NOTHING
RETURNING *
"""


async def create_site(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    name: str,
    base_url: str,
    config: Any,
    created_by: str | None,
) -> SiteRow | None:
    """Register a site; no row if the name is taken."""
    row = await conn.fetchrow(_CREATE_SITE, organisation_id, name, base_url, config, created_by)
    return None if row is None else SiteRow(*row)


_GET_SITE: Final = """
-- name: GetSite
SELECT * FROM store.site WHERE id = $1 AND deleted_at IS NULL
"""


async def get_site(conn: Connection, *, site_id: SiteId) -> SiteRow | None:
    """A site by its id."""
    row = await conn.fetchrow(_GET_SITE, site_id)
    return None if row is None else SiteRow(*row)


_SITE_BY_NAME: Final = """
-- name: SiteByName
SELECT * FROM store.site
WHERE organisation_id = $1 AND name_key = lower($2::text)
    AND deleted_at IS NULL
"""


async def site_by_name(
    conn: Connection, *, organisation_id: OrganisationId, name: str
) -> SiteRow | None:
    """A site by its name."""
    row = await conn.fetchrow(_SITE_BY_NAME, organisation_id, name)
    return None if row is None else SiteRow(*row)


_DELETED_SITE: Final = """
-- name: DeletedSite
SELECT * FROM store.site WHERE id = $1 AND deleted_at IS NOT NULL
"""


async def deleted_site(conn: Connection, *, site_id: SiteId) -> SiteRow | None:
    """A soft-deleted site by its id."""
    row = await conn.fetchrow(_DELETED_SITE, site_id)
    return None if row is None else SiteRow(*row)


_LIST_SITES: Final = """
-- name: ListSites
SELECT * FROM store.site
WHERE organisation_id = $1 AND deleted_at IS NULL
    AND ($2::text IS NULL OR status = $2)
    AND ($3::boolean IS NULL OR implicit = $3)
    AND (created_at, id) > ($4::timestamptz, $5::uuid)
ORDER BY created_at, id
LIMIT $6::integer
"""


async def list_sites(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    status: str | None,
    implicit: bool | None,
    after_at: datetime,
    after_id: UUID,
    most: int,
) -> list[SiteRow]:
    """An organisation's sites, oldest first, after a key."""
    return [
        SiteRow(*row)
        for row in await conn.fetch(
            _LIST_SITES, organisation_id, status, implicit, after_at, after_id, most
        )
    ]


_LIST_SITES_NEWEST: Final = """
-- name: ListSitesNewest
SELECT * FROM store.site
WHERE organisation_id = $1 AND deleted_at IS NULL
    AND ($2::text IS NULL OR status = $2)
    AND ($3::boolean IS NULL OR implicit = $3)
    AND (created_at, id) < ($4::timestamptz, $5::uuid)
ORDER BY created_at DESC, id DESC
LIMIT $6::integer
"""


async def list_sites_newest(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    status: str | None,
    implicit: bool | None,
    before_at: datetime,
    before_id: UUID,
    most: int,
) -> list[SiteRow]:
    """An organisation's sites, newest first, before a key."""
    return [
        SiteRow(*row)
        for row in await conn.fetch(
            _LIST_SITES_NEWEST, organisation_id, status, implicit, before_at, before_id, most
        )
    ]


_LIST_SITES_UPDATED: Final = """
-- name: ListSitesUpdated
SELECT * FROM store.site
WHERE organisation_id = $1 AND deleted_at IS NULL
    AND ($2::text IS NULL OR status = $2)
    AND ($3::boolean IS NULL OR implicit = $3)
    AND (updated_at, id) < ($4::timestamptz, $5::uuid)
ORDER BY updated_at DESC, id DESC
LIMIT $6::integer
"""


async def list_sites_updated(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    status: str | None,
    implicit: bool | None,
    before_at: datetime,
    before_id: UUID,
    most: int,
) -> list[SiteRow]:
    """An organisation's sites, last updated first, before a key."""
    return [
        SiteRow(*row)
        for row in await conn.fetch(
            _LIST_SITES_UPDATED, organisation_id, status, implicit, before_at, before_id, most
        )
    ]


_LIST_SITES_NAMED: Final = """
-- name: ListSitesNamed
SELECT * FROM store.site
WHERE organisation_id = $1 AND deleted_at IS NULL
    AND ($2::text IS NULL OR status = $2)
    AND ($3::boolean IS NULL OR implicit = $3)
    AND name_key > lower($4::text)
ORDER BY name_key
LIMIT $5::integer
"""


async def list_sites_named(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    status: str | None,
    implicit: bool | None,
    after_name: str,
    most: int,
) -> list[SiteRow]:
    """An organisation's sites by name, after one; names are unique regardless of case."""
    return [
        SiteRow(*row)
        for row in await conn.fetch(
            _LIST_SITES_NAMED, organisation_id, status, implicit, after_name, most
        )
    ]


_COUNT_SITES: Final = """
-- name: CountSites
SELECT count(*) AS sites FROM store.site
WHERE organisation_id = $1 AND deleted_at IS NULL
    AND ($2::text IS NULL OR status = $2)
    AND ($3::boolean IS NULL OR implicit = $3)
"""


async def count_sites(
    conn: Connection, *, organisation_id: OrganisationId, status: str | None, implicit: bool | None
) -> int:
    """How many sites an organisation has."""
    value: int = await conn.fetchval(_COUNT_SITES, organisation_id, status, implicit)
    return value


_UPDATE_SITE: Final = """
-- name: UpdateSite
UPDATE store.site SET
    name = coalesce($1, name),
    base_url = coalesce($2, base_url),
    status = coalesce($3, status),
    config = coalesce($4, config),
    config_number = config_number + ($4::jsonb IS NOT NULL)::integer,
    updated_at = now()
WHERE id = $5 AND deleted_at IS NULL
    AND config_number = $6
RETURNING *
"""


async def update_site(
    conn: Connection,
    *,
    name: str | None,
    base_url: str | None,
    status: str | None,
    config: Any,
    site_id: SiteId,
    config_number: int,
) -> SiteRow | None:
    """Update the given fields of a site, unless its config changed since it was read."""
    row = await conn.fetchrow(_UPDATE_SITE, name, base_url, status, config, site_id, config_number)
    return None if row is None else SiteRow(*row)


_ADD_CONFIG: Final = """
-- name: AddConfig
INSERT INTO store.site_config (site_id, number, organisation_id, config, created_by, note)
VALUES (
    $1, $2, $3, $4,
    $5, $6
)
"""


async def add_config(
    conn: Connection,
    *,
    site_id: SiteId,
    number: int,
    organisation_id: OrganisationId,
    config: Any,
    created_by: str | None,
    note: str | None,
) -> None:
    """Add a config to a site's history."""
    await conn.execute(_ADD_CONFIG, site_id, number, organisation_id, config, created_by, note)


_CONFIG_HISTORY: Final = """
-- name: ConfigHistory
SELECT * FROM store.site_config
WHERE site_id = $1 AND number < $2::integer
ORDER BY number DESC
LIMIT $3::integer
"""


async def config_history(
    conn: Connection, *, site_id: SiteId, before: int, most: int
) -> list[SiteConfigRow]:
    """The configs that a site had, newest first, before a number."""
    return [SiteConfigRow(*row) for row in await conn.fetch(_CONFIG_HISTORY, site_id, before, most)]


_GET_CONFIG: Final = """
-- name: GetConfig
SELECT * FROM store.site_config WHERE site_id = $1 AND number = $2
"""


async def get_config(conn: Connection, *, site_id: SiteId, number: int) -> SiteConfigRow | None:
    """One config that a site had."""
    row = await conn.fetchrow(_GET_CONFIG, site_id, number)
    return None if row is None else SiteConfigRow(*row)


_DELETE_SITE: Final = """
-- name: DeleteSite
UPDATE store.site
SET deleted_at = coalesce(deleted_at, now()), purge = purge OR $1::boolean,
    updated_at = now()
WHERE id = $2
"""


async def delete_site(conn: Connection, *, purge: bool, site_id: SiteId) -> int:
    """Soft-delete a site; its rows stay until it is purged."""
    return int((await conn.execute(_DELETE_SITE, purge, site_id)).rpartition(" ")[2])


_SITES_TO_PURGE: Final = """
-- name: SitesToPurge
SELECT id AS site_id FROM store.site WHERE purge ORDER BY id LIMIT $1::integer
"""


async def sites_to_purge(conn: Connection, *, most: int) -> list[SiteId]:
    """Sites to purge."""
    return [row[0] for row in await conn.fetch(_SITES_TO_PURGE, most)]


_PURGE_PAGES: Final = """
-- name: PurgePages
WITH gone AS (
    DELETE FROM store.page WHERE id IN (
        SELECT p.id FROM store.page p WHERE p.site_id = $1
        LIMIT $2::integer FOR UPDATE SKIP LOCKED
    ) RETURNING id
)
SELECT count(*) AS pages FROM gone
"""


async def purge_pages(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete a batch of a site's pages with their versions."""
    value: int = await conn.fetchval(_PURGE_PAGES, site_id, most)
    return value


_PURGE_CHANGES: Final = """
-- name: PurgeChanges
WITH gone AS (
    DELETE FROM store.change WHERE id IN (
        SELECT c.id FROM store.change c WHERE c.site_id = $1
        LIMIT $2::integer
    ) RETURNING id
)
SELECT count(*) AS changes FROM gone
"""


async def purge_changes(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete a batch of a site's change events."""
    value: int = await conn.fetchval(_PURGE_CHANGES, site_id, most)
    return value


_PURGE_CONTENTS: Final = """
-- name: PurgeContents
WITH gone AS (
    DELETE FROM store.content_hash WHERE id IN (
        SELECT c.id FROM store.content_hash c WHERE c.site_id = $1
        LIMIT $2::integer
    ) RETURNING id
)
SELECT count(*) AS contents FROM gone
"""


async def purge_contents(conn: Connection, *, site_id: SiteId, most: int) -> int:
    """Delete a batch of a site's contents with their fingerprints."""
    value: int = await conn.fetchval(_PURGE_CONTENTS, site_id, most)
    return value


_PURGE_SITE: Final = """
-- name: PurgeSite
DELETE FROM store.site WHERE id = $1 AND purge
"""


async def purge_site(conn: Connection, *, site_id: SiteId) -> int:
    """Delete a site that is marked for purging, with its remaining rows."""
    return int((await conn.execute(_PURGE_SITE, site_id)).rpartition(" ")[2])
