"""Typed functions of tenancy.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApiKeyId, MemberId, OrganisationId


class OrganisationRow(Struct, frozen=True, gc=False):
    id: OrganisationId
    name: str
    foreign_id: str | None
    max_concurrency: int | None
    max_pages_per_day: int | None
    created_at: datetime
    updated_at: datetime


class MemberRow(Struct, frozen=True, gc=False):
    id: MemberId
    organisation_id: OrganisationId
    email: str
    full_name: str | None
    created_at: datetime
    updated_at: datetime


class KeyRow(Struct, frozen=True, gc=False):
    id: ApiKeyId
    organisation_id: OrganisationId
    name: str
    prefix: str
    scopes: list[str]
    created_by: MemberId | None
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class FindCallerRow(Struct, frozen=True, gc=False):
    any_key: bool
    has_default: bool
    api_key_id: ApiKeyId | None
    organisation_id: OrganisationId | None
    scopes: list[str] | None
    is_noted: bool


_ENSURE_ORGANISATION: Final = """
-- name: EnsureOrganisation
INSERT INTO tenancy.organisation (id, name)
VALUES ($1, $2)
ON CONFLICT DO NOTHING
"""


async def ensure_organisation(
    conn: Connection, *, organisation_id: OrganisationId, name: str
) -> None:
    """Create the organisation of callers without a key."""
    await conn.execute(_ENSURE_ORGANISATION, organisation_id, name)


_CREATE_ORGANISATION: Final = """
-- name: CreateOrganisation
INSERT INTO tenancy.organisation (id, name, foreign_id, max_concurrency, max_pages_per_day)
VALUES (
    $1,
    $2,
    $3,
    $4,
    $5
)
ON CONFLICT DO NOTHING
RETURNING *
"""


async def create_organisation(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    name: str,
    foreign_id: str | None,
    max_concurrency: int | None,
    max_pages_per_day: int | None,
) -> OrganisationRow | None:
    """Create an organisation; no row if the name or the id is taken."""
    row = await conn.fetchrow(
        _CREATE_ORGANISATION, organisation_id, name, foreign_id, max_concurrency, max_pages_per_day
    )
    return None if row is None else OrganisationRow(*row)


_LIST_ORGANISATIONS: Final = """
-- name: ListOrganisations
SELECT * FROM tenancy.organisation
ORDER BY created_at, id
"""


async def list_organisations(conn: Connection) -> list[OrganisationRow]:
    """All organisations that the caller may see, oldest first."""
    return [OrganisationRow(*row) for row in await conn.fetch(_LIST_ORGANISATIONS)]


_FIND_ORGANISATION: Final = """
-- name: FindOrganisation
SELECT * FROM tenancy.organisation
WHERE id::text = lower($1::text)
   OR lower(name) = lower($1::text)
   OR foreign_id = $1::text
LIMIT 1
"""


async def find_organisation(conn: Connection, *, reference: str) -> OrganisationRow | None:
    """One organisation by its id, its name or its id in another system."""
    row = await conn.fetchrow(_FIND_ORGANISATION, reference)
    return None if row is None else OrganisationRow(*row)


_RENAME_ORGANISATION: Final = """
-- name: RenameOrganisation
UPDATE tenancy.organisation
SET name = $1, updated_at = now()
WHERE id = $2
RETURNING *
"""


async def rename_organisation(
    conn: Connection, *, name: str, organisation_id: OrganisationId
) -> OrganisationRow | None:
    """Change the name of an organisation."""
    row = await conn.fetchrow(_RENAME_ORGANISATION, name, organisation_id)
    return None if row is None else OrganisationRow(*row)


_LIMIT_ORGANISATION: Final = """
-- name: LimitOrganisation
UPDATE tenancy.organisation
SET max_concurrency = $1,
    max_pages_per_day = $2,
    updated_at = now()
WHERE id = $3
RETURNING *
"""


async def limit_organisation(
    conn: Connection,
    *,
    max_concurrency: int | None,
    max_pages_per_day: int | None,
    organisation_id: OrganisationId,
) -> OrganisationRow | None:
    """Set both limits of an organisation; null means none."""
    row = await conn.fetchrow(
        _LIMIT_ORGANISATION, max_concurrency, max_pages_per_day, organisation_id
    )
    return None if row is None else OrganisationRow(*row)


_DELETE_ORGANISATION: Final = """
-- name: DeleteOrganisation
DELETE FROM tenancy.organisation
WHERE id = $1
"""


async def delete_organisation(conn: Connection, *, organisation_id: OrganisationId) -> int:
    """Delete an organisation with its members and keys."""
    return int((await conn.execute(_DELETE_ORGANISATION, organisation_id)).rpartition(" ")[2])


_CREATE_MEMBER: Final = """
-- name: CreateMember
INSERT INTO tenancy.member (organisation_id, email, full_name)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
RETURNING *
"""


async def create_member(
    conn: Connection, *, organisation_id: OrganisationId, email: str, full_name: str | None
) -> MemberRow | None:
    """Add a member; no row if the organisation has one with that address."""
    row = await conn.fetchrow(_CREATE_MEMBER, organisation_id, email, full_name)
    return None if row is None else MemberRow(*row)


_LIST_MEMBERS: Final = """
-- name: ListMembers
SELECT * FROM tenancy.member
WHERE organisation_id = $1
ORDER BY created_at, id
"""


async def list_members(conn: Connection, *, organisation_id: OrganisationId) -> list[MemberRow]:
    """The members that the caller may see, oldest first."""
    return [MemberRow(*row) for row in await conn.fetch(_LIST_MEMBERS, organisation_id)]


_HAS_MEMBER: Final = """
-- name: HasMember
SELECT EXISTS (
    SELECT FROM tenancy.member
    WHERE id = $1 AND organisation_id = $2
) AS "has!"
"""


async def has_member(
    conn: Connection, *, member_id: MemberId, organisation_id: OrganisationId
) -> bool:
    """Whether an organisation has a member."""
    value: bool = await conn.fetchval(_HAS_MEMBER, member_id, organisation_id)
    return value


_DELETE_MEMBER: Final = """
-- name: DeleteMember
DELETE FROM tenancy.member
WHERE id = $1 AND organisation_id = $2
"""


async def delete_member(
    conn: Connection, *, member_id: MemberId, organisation_id: OrganisationId
) -> int:
    """Remove a member."""
    return int((await conn.execute(_DELETE_MEMBER, member_id, organisation_id)).rpartition(" ")[2])


_CREATE_KEY: Final = """
-- name: CreateKey
INSERT INTO tenancy.api_key (organisation_id, name, prefix, hash, scopes, created_by)
VALUES (
    $1,
    $2,
    $3,
    $4,
    $5::text[],
    $6
)
RETURNING id, organisation_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at
"""


async def create_key(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    name: str,
    prefix: str,
    hash: bytes,
    scopes: Sequence[str],
    created_by: UUID | None,
) -> KeyRow:
    """Store the hash of a new key."""
    (row,) = await conn.fetch(_CREATE_KEY, organisation_id, name, prefix, hash, scopes, created_by)
    return KeyRow(*row)


_LIST_KEYS: Final = """
-- name: ListKeys
SELECT id, organisation_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at
FROM tenancy.api_key
WHERE organisation_id = $1
ORDER BY created_at, id
"""


async def list_keys(conn: Connection, *, organisation_id: OrganisationId) -> list[KeyRow]:
    """The keys of an organisation, revoked ones too, oldest first."""
    return [KeyRow(*row) for row in await conn.fetch(_LIST_KEYS, organisation_id)]


_REVOKE_KEY: Final = """
-- name: RevokeKey
UPDATE tenancy.api_key
SET revoked_at = coalesce(revoked_at, now())
WHERE organisation_id = $1
  AND (id::text = lower($2::text) OR prefix = $2::text)
RETURNING id, organisation_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at
"""


async def revoke_key(
    conn: Connection, *, organisation_id: OrganisationId, reference: str
) -> KeyRow | None:
    """Revoke a key by its id or prefix; a second call keeps the first time."""
    row = await conn.fetchrow(_REVOKE_KEY, organisation_id, reference)
    return None if row is None else KeyRow(*row)


_FIND_CALLER: Final = """
-- name: FindCaller
SELECT
    EXISTS (SELECT FROM tenancy.api_key) AS "any_key!",
    EXISTS (SELECT FROM tenancy.organisation o WHERE o.id = $1::uuid) AS "has_default!",
    k.id AS "api_key_id?", k.organisation_id AS "organisation_id?", k.scopes AS "scopes?",
    coalesce(k.last_used_at >= now() - interval '1 minute', false) AS "is_noted!"
FROM (SELECT $2::bytea AS hash) AS given
LEFT JOIN tenancy.api_key k ON k.hash = given.hash AND k.revoked_at IS NULL
"""


async def find_caller(
    conn: Connection, *, default_id: UUID, hash: bytes | None
) -> FindCallerRow | None:
    """What authentication needs: whether a key was ever created, the live key with this hash, and whether the organisation of callers without a key exists. Revoked keys count: revoking the last key does not open the server."""
    row = await conn.fetchrow(_FIND_CALLER, default_id, hash)
    return None if row is None else FindCallerRow(*row)


_IS_LIVE_KEY: Final = """
-- name: IsLiveKey
SELECT EXISTS (
    SELECT FROM tenancy.api_key WHERE id = $1 AND revoked_at IS NULL
) AS "live!"
"""


async def is_live_key(conn: Connection, *, api_key_id: ApiKeyId) -> bool:
    """Whether a key is not revoked."""
    value: bool = await conn.fetchval(_IS_LIVE_KEY, api_key_id)
    return value


_TOUCH_KEY: Final = """
-- name: TouchKey
UPDATE tenancy.api_key
SET last_used_at = now()
WHERE id = $1
  AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
"""


async def touch_key(conn: Connection, *, api_key_id: ApiKeyId) -> None:
    """Record the use of a key, at most once a minute so that a busy key is not a hot row."""
    await conn.execute(_TOUCH_KEY, api_key_id)


_ANY_KEY: Final = """
-- name: AnyKey
SELECT EXISTS (SELECT FROM tenancy.api_key WHERE revoked_at IS NULL) AS any_key
"""


async def any_key(conn: Connection) -> bool:
    """Whether any live key exists."""
    value: bool = await conn.fetchval(_ANY_KEY)
    return value


_DELETE_REVOKED_KEYS: Final = """
-- name: DeleteRevokedKeys
DELETE FROM tenancy.api_key WHERE revoked_at IS NOT NULL
"""


async def delete_revoked_keys(conn: Connection) -> int:
    """Delete the revoked keys of all organisations."""
    return int((await conn.execute(_DELETE_REVOKED_KEYS)).rpartition(" ")[2])
