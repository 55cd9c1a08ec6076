"""Typed functions of sessions.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApiKeyId, OrganisationId


class FindSessionRow(Struct, frozen=True, gc=False):
    id: UUID
    organisation_id: OrganisationId
    api_key_id: ApiKeyId | None
    admin_hash: bytes | None
    rotated_at: datetime
    expires_at: datetime
    current: bool
    key_name: str | None
    scopes: list[str] | None
    organisation: str


class ListSessionsRow(Struct, frozen=True, gc=False):
    id: UUID
    created_at: datetime
    rotated_at: datetime
    expires_at: datetime
    client: str | None
    user_agent: str | None
    actor: str


class FindShareLinkRow(Struct, frozen=True, gc=False):
    id: UUID
    organisation_id: OrganisationId
    path: str
    title: str
    expires_at: datetime


class ListShareLinksRow(Struct, frozen=True, gc=False):
    id: UUID
    path: str
    title: str
    created_by: str
    created_at: datetime
    expires_at: datetime


_CREATE_SESSION: Final = """
-- name: CreateSession
INSERT INTO tenancy.session (
    organisation_id, api_key_id, admin_hash, hash, expires_at, client, user_agent
) VALUES (
    $1, $2, $3, $4,
    $5, $6, $7
)
RETURNING id
"""


async def create_session(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    api_key_id: ApiKeyId | None,
    admin_hash: bytes | None,
    hash: bytes,
    expires_at: datetime,
    client: str | None,
    user_agent: str | None,
) -> UUID:
    """Store the hash of a new session's token."""
    value: UUID = await conn.fetchval(
        _CREATE_SESSION,
        organisation_id,
        api_key_id,
        admin_hash,
        hash,
        expires_at,
        client,
        user_agent,
    )
    return value


_FIND_SESSION: Final = """
-- name: FindSession
SELECT
    s.id, s.organisation_id, s.api_key_id, s.admin_hash, s.rotated_at, s.expires_at,
    s.hash = $1::bytea AS "current!",
    k.name AS "key_name?", k.scopes AS "scopes?", o.name AS organisation
FROM tenancy.session s
JOIN tenancy.organisation o ON o.id = s.organisation_id
LEFT JOIN tenancy.api_key k ON k.id = s.api_key_id
WHERE (s.hash = $1::bytea
        OR (s.previous_hash = $1::bytea AND s.rotated_at > now() - interval '1 minute'))
    AND s.revoked_at IS NULL AND s.expires_at > now() AND k.revoked_at IS NULL
"""


async def find_session(conn: Connection, *, hash: bytes) -> FindSessionRow | None:
    """The live session of a token, with the rights of its key as they are now."""
    row = await conn.fetchrow(_FIND_SESSION, hash)
    return None if row is None else FindSessionRow(*row)


_ROTATE_SESSION: Final = """
-- name: RotateSession
UPDATE tenancy.session
SET previous_hash = hash, hash = $1, rotated_at = now(),
    expires_at = $2
WHERE id = $3 AND hash = $4 AND revoked_at IS NULL
"""


async def rotate_session(
    conn: Connection, *, new_hash: bytes, expires_at: datetime, id: UUID, hash: bytes
) -> int:
    """Give a session a new token; a minute long the old one still counts."""
    return int(
        (await conn.execute(_ROTATE_SESSION, new_hash, expires_at, id, hash)).rpartition(" ")[2]
    )


_LIVE_SESSIONS: Final = """
-- name: LiveSessions
SELECT s.id FROM tenancy.session s LEFT JOIN tenancy.api_key k ON k.id = s.api_key_id
WHERE s.id = ANY ($1::uuid[])
    AND s.revoked_at IS NULL AND s.expires_at > now() AND k.revoked_at IS NULL
"""


async def live_sessions(conn: Connection, *, ids: Sequence[UUID]) -> list[UUID]:
    """Which of these sessions are still live."""
    return [row[0] for row in await conn.fetch(_LIVE_SESSIONS, ids)]


_LIST_SESSIONS: Final = """
-- name: ListSessions
SELECT
    s.id, s.created_at, s.rotated_at, s.expires_at, s.client, s.user_agent,
    coalesce(k.name, 'administrator') AS "actor!"
FROM tenancy.session s LEFT JOIN tenancy.api_key k ON k.id = s.api_key_id
WHERE s.organisation_id = $1
    AND s.revoked_at IS NULL AND s.expires_at > now() AND k.revoked_at IS NULL
ORDER BY s.created_at DESC, s.id LIMIT $2::integer
"""


async def list_sessions(
    conn: Connection, *, organisation_id: OrganisationId, most: int
) -> list[ListSessionsRow]:
    """The live sessions of an organisation, newest first."""
    return [
        ListSessionsRow(*row) for row in await conn.fetch(_LIST_SESSIONS, organisation_id, most)
    ]


_REVOKE_SESSION: Final = """
-- name: RevokeSession
UPDATE tenancy.session SET revoked_at = now()
WHERE id = $1 AND organisation_id = $2 AND revoked_at IS NULL
"""


async def revoke_session(conn: Connection, *, id: UUID, organisation_id: OrganisationId) -> int:
    """End a session."""
    return int((await conn.execute(_REVOKE_SESSION, id, organisation_id)).rpartition(" ")[2])


_DROP_SESSIONS: Final = """
-- name: DropSessions
WITH links AS (
    DELETE FROM tenancy.share_link WHERE expires_at < now() - $1::interval
)
DELETE FROM tenancy.session WHERE expires_at < now() - $1::interval
"""


async def drop_sessions(conn: Connection, *, keep: timedelta) -> int:
    """Delete sessions and share links that ended some time ago."""
    return int((await conn.execute(_DROP_SESSIONS, keep)).rpartition(" ")[2])


_CREATE_SHARE_LINK: Final = """
-- name: CreateShareLink
INSERT INTO tenancy.share_link (organisation_id, hash, path, title, created_by, expires_at)
VALUES (
    $1, $2, $3, $4,
    $5, $6
)
RETURNING id
"""


async def create_share_link(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    hash: bytes,
    path: str,
    title: str,
    created_by: str,
    expires_at: datetime,
) -> UUID:
    """Store the hash of a new link's token."""
    value: UUID = await conn.fetchval(
        _CREATE_SHARE_LINK, organisation_id, hash, path, title, created_by, expires_at
    )
    return value


_FIND_SHARE_LINK: Final = """
-- name: FindShareLink
SELECT id, organisation_id, path, title, expires_at FROM tenancy.share_link
WHERE hash = $1 AND revoked_at IS NULL AND expires_at > now()
"""


async def find_share_link(conn: Connection, *, hash: bytes) -> FindShareLinkRow | None:
    """The live link of a token."""
    row = await conn.fetchrow(_FIND_SHARE_LINK, hash)
    return None if row is None else FindShareLinkRow(*row)


_LIST_SHARE_LINKS: Final = """
-- name: ListShareLinks
SELECT id, path, title, created_by, created_at, expires_at FROM tenancy.share_link
WHERE organisation_id = $1 AND revoked_at IS NULL AND expires_at > now()
ORDER BY created_at DESC, id LIMIT $2::integer
"""


async def list_share_links(
    conn: Connection, *, organisation_id: OrganisationId, most: int
) -> list[ListShareLinksRow]:
    """The live links of an organisation, newest first."""
    return [
        ListShareLinksRow(*row)
        for row in await conn.fetch(_LIST_SHARE_LINKS, organisation_id, most)
    ]


_REVOKE_SHARE_LINK: Final = """
-- name: RevokeShareLink
UPDATE tenancy.share_link SET revoked_at = now()
WHERE id = $1 AND organisation_id = $2 AND revoked_at IS NULL
"""


async def revoke_share_link(conn: Connection, *, id: UUID, organisation_id: OrganisationId) -> int:
    """End a link."""
    return int((await conn.execute(_REVOKE_SHARE_LINK, id, organisation_id)).rpartition(" ")[2])
