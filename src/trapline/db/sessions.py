"""Sign-in sessions and share links: random tokens, stored only as SHA-256, rotated, revocable, expiring."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.db.sql import sessions as queries
from trapline.db.sql.sessions import FindSessionRow, FindShareLinkRow
from trapline.db.tenancy import Principal
from trapline.errors import InvalidInput, NotFound
from trapline.model import OrganisationId

LIFETIME: Final = timedelta(days=7)
LONGEST_SHARE: Final = timedelta(days=366)
_ROTATION: Final = timedelta(hours=1)
_TOKEN_BYTES: Final = 32
_LONGEST_TOKEN: Final = 100
_RETENTION: Final = timedelta(days=30)
_LONGEST_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class NewShareLink:
    """A new share link; `token` is never shown again."""

    id: UUID
    token: str


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


async def create(  # noqa: PLR0913 (who, from where, when)
    conn: Connection,
    principal: Principal,
    *,
    admin_key: str | None,
    client: str | None,
    user_agent: str | None,
    now: datetime,
) -> str:
    """Start a session for a principal who has shown a key; return its token."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    await queries.create_session(
        conn,
        organisation_id=principal.organisation_id,
        api_key_id=principal.api_key_id,
        admin_hash=None if admin_key is None else token_hash(admin_key),
        hash=token_hash(token),
        expires_at=now + LIFETIME,
        client=client,
        user_agent=None if user_agent is None else user_agent[:_LONGEST_TEXT],
    )
    return token


async def find(conn: Connection, token: str, *, admin_key: str | None) -> FindSessionRow | None:
    """Return the live session of a token; one of the administrator only while the key is the same."""
    if not 0 < len(token) <= _LONGEST_TOKEN:
        return None
    row = await queries.find_session(conn, hash=token_hash(token))
    if row is None or row.admin_hash is None:
        return row
    valid = admin_key is not None and hmac.compare_digest(row.admin_hash, token_hash(admin_key))
    return row if valid else None


def principal_of(row: FindSessionRow) -> Principal:
    if row.api_key_id is None:
        return Principal.administrator_of(row.organisation_id)
    return Principal(row.organisation_id, row.api_key_id, frozenset(row.scopes or ()))


def is_due(row: FindSessionRow, *, now: datetime) -> bool:
    """Tell whether the token of a session is old enough to be replaced."""
    return row.current and row.rotated_at < now - _ROTATION


async def rotate(conn: Connection, row: FindSessionRow, token: str, *, now: datetime) -> str | None:
    """Replace the token of a session; None if another request has just done it."""
    new = secrets.token_urlsafe(_TOKEN_BYTES)
    rotated = await queries.rotate_session(
        conn,
        id=row.id,
        hash=token_hash(token),
        new_hash=token_hash(new),
        expires_at=now + LIFETIME,
    )
    return new if rotated else None


async def revoke(conn: Connection, organisation_id: OrganisationId, session_id: UUID) -> None:
    if not await queries.revoke_session(conn, id=session_id, organisation_id=organisation_id):
        raise NotFound("There is no such session, or it has ended already.")


async def share(  # noqa: PLR0913 (whose, what, by whom, how long)
    conn: Connection,
    organisation_id: OrganisationId,
    path: str,
    *,
    title: str,
    by: str,
    lifetime: timedelta,
    now: datetime,
) -> NewShareLink:
    """Create a link to one view; whoever has the link may read that view."""
    if not timedelta() < lifetime <= LONGEST_SHARE:
        raise InvalidInput("A share link lives from a moment to a year.")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    link_id = await queries.create_share_link(
        conn,
        organisation_id=organisation_id,
        hash=token_hash(token),
        path=path,
        title=title[:_LONGEST_TEXT],
        created_by=by,
        expires_at=now + lifetime,
    )
    assert link_id is not None  # noqa: S101 (an insert returns its row)
    return NewShareLink(link_id, token)


async def find_shared(conn: Connection, token: str) -> FindShareLinkRow:
    row = None
    if 0 < len(token) <= _LONGEST_TOKEN:
        row = await queries.find_share_link(conn, hash=token_hash(token))
    if row is None:
        raise NotFound("This link does not exist, has expired or was revoked.")
    return row


async def revoke_share(conn: Connection, organisation_id: OrganisationId, link_id: UUID) -> None:
    if not await queries.revoke_share_link(conn, id=link_id, organisation_id=organisation_id):
        raise NotFound("There is no such link, or it has ended already.")


async def drop_old_sessions(database: Database) -> int:
    """Delete sessions and share links that ended a month ago."""
    async with database.system_tx() as conn:
        return await queries.drop_sessions(conn, keep=_RETENTION)
