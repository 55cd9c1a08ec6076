"""Organisations, their members and their API keys.

A key is shown once and stored only as a SHA-256: it has 256 random bits, so a slow hash adds nothing.
"""

import functools
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID, uuid5

import asyncpg

from trapline.db.connection import Connection
from trapline.db.sql import tenancy as queries
from trapline.db.sql.tenancy import FindCallerRow, KeyRow, MemberRow, OrganisationRow
from trapline.errors import Conflict, InvalidInput, NotFound, Unauthorised
from trapline.model import ApiKeyId, MemberId, OrganisationId

SCOPES: Final = ("read", "write", "admin")
DEFAULT_ORGANISATION: Final = "default"

# Never change it: stored ids are derived from it.
_NAMESPACE: Final = UUID("0d7f6c1e-6a3c-5b1e-9d52-7c1b8f0e4a11")
_KEY_PREFIX: Final = "trp_"
_SHOWN_CHARACTERS: Final = len(_KEY_PREFIX) + 8


@dataclass(frozen=True, slots=True)
class Principal:
    """The acting party: an API key for its organisation, or an anonymous caller on an open server."""

    organisation_id: OrganisationId
    api_key_id: ApiKeyId | None
    scopes: frozenset[str]
    administrator: bool = False

    @classmethod
    def administrator_of(cls, organisation_id: OrganisationId) -> Self:
        """Return a principal with all rights on this server, in one organisation."""
        return cls(organisation_id, None, frozenset(SCOPES), administrator=True)


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A new key; `secret` is never shown again."""

    secret: str
    row: KeyRow


@functools.lru_cache(maxsize=1000)
def organisation_id_of(owner: str) -> OrganisationId:
    """Map an owner id of another system to ours: a UUID stays, anything else becomes its UUIDv5."""
    try:
        return OrganisationId(UUID(owner))
    except ValueError:
        return OrganisationId(uuid5(_NAMESPACE, owner))


async def ensure_default(conn: Connection) -> OrganisationId:
    """Return the organisation of callers without a key, created on first use."""
    organisation_id = organisation_id_of(DEFAULT_ORGANISATION)
    await queries.ensure_organisation(
        conn, organisation_id=organisation_id, name=DEFAULT_ORGANISATION
    )
    return organisation_id


async def create_organisation(
    conn: Connection,
    name: str,
    *,
    owner: str | None = None,
    max_concurrency: int | None = None,
    max_pages_per_day: int | None = None,
) -> OrganisationRow:
    """Create an organisation; `owner` is its id in another system."""
    _require_text("name", name, longest=200)
    _require_positive("max_concurrency", max_concurrency)
    _require_positive("max_pages_per_day", max_pages_per_day)
    organisation_id = organisation_id_of(owner or secrets.token_hex(16))
    row = await queries.create_organisation(
        conn,
        organisation_id=organisation_id,
        name=name,
        foreign_id=owner if owner and str(organisation_id) != owner.lower() else None,
        max_concurrency=max_concurrency,
        max_pages_per_day=max_pages_per_day,
    )
    if row is None:
        raise Conflict(f"An organisation named {name!r} or with that owner id exists already.")
    return row


async def find_organisation(conn: Connection, reference: str) -> OrganisationRow:
    """Find an organisation by its id, its name or its owner id in another system."""
    row = await queries.find_organisation(conn, reference=reference)
    if row is None:
        raise NotFound(f"There is no organisation {reference!r}.")
    return row


async def rename_organisation(
    conn: Connection, organisation_id: OrganisationId, name: str
) -> OrganisationRow:
    _require_text("name", name, longest=200)
    try:
        row = await queries.rename_organisation(conn, organisation_id=organisation_id, name=name)
    except asyncpg.UniqueViolationError:
        raise Conflict(f"An organisation named {name!r} exists already.") from None
    if row is None:
        raise NotFound("There is no such organisation.")
    return row


async def delete_organisation(conn: Connection, organisation_id: OrganisationId) -> None:
    if organisation_id == organisation_id_of(DEFAULT_ORGANISATION):
        raise Conflict("The default organisation cannot be deleted.")
    if not await queries.delete_organisation(conn, organisation_id=organisation_id):
        raise NotFound("There is no such organisation.")


async def limit_organisation(
    conn: Connection,
    organisation_id: OrganisationId,
    *,
    max_concurrency: int | None,
    max_pages_per_day: int | None,
) -> OrganisationRow:
    """Set both limits; None means no limit."""
    _require_positive("max_concurrency", max_concurrency)
    _require_positive("max_pages_per_day", max_pages_per_day)
    row = await queries.limit_organisation(
        conn,
        organisation_id=organisation_id,
        max_concurrency=max_concurrency,
        max_pages_per_day=max_pages_per_day,
    )
    if row is None:
        raise NotFound("There is no such organisation.")
    return row


async def add_member(
    conn: Connection, organisation_id: OrganisationId, email: str, full_name: str | None = None
) -> MemberRow:
    _require_text("email", email, longest=320)
    local, at, domain = email.partition("@")
    if not (local and at and domain) or "@" in domain or any(map(str.isspace, email)):
        raise InvalidInput(f"{email!r} is not an e-mail address.")
    row = await queries.create_member(
        conn, organisation_id=organisation_id, email=email, full_name=full_name
    )
    if row is None:
        raise Conflict(f"{email} is already a member of this organisation.")
    return row


async def delete_revoked_keys(conn: Connection) -> int:
    """Delete all revoked keys; Conflict while a key is in use, because the server stays keyed then."""
    if await queries.any_key(conn):
        raise Conflict("A key is in use: revoke all keys first.")
    return await queries.delete_revoked_keys(conn)


async def is_live_key(conn: Connection, api_key_id: ApiKeyId) -> bool:
    return await queries.is_live_key(conn, api_key_id=api_key_id)


async def has_member(
    conn: Connection, organisation_id: OrganisationId, member_id: MemberId
) -> bool:
    return await queries.has_member(conn, organisation_id=organisation_id, member_id=member_id)


async def remove_member(
    conn: Connection, organisation_id: OrganisationId, member_id: MemberId
) -> None:
    if not await queries.delete_member(conn, organisation_id=organisation_id, member_id=member_id):
        raise NotFound("There is no such member in this organisation.")


async def issue_key(
    conn: Connection,
    organisation_id: OrganisationId,
    name: str,
    scopes: Sequence[str] = ("read", "write"),
    created_by: MemberId | None = None,
) -> NewApiKey:
    """Create a key. Its secret is in the return value and nowhere else."""
    _require_text("name", name, longest=200)
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InvalidInput(f"Scopes are {', '.join(SCOPES)}; got {', '.join(unknown) or 'none'}.")
    secret = _KEY_PREFIX + secrets.token_hex(32)
    row = await queries.create_key(
        conn,
        organisation_id=organisation_id,
        name=name,
        prefix=secret[:_SHOWN_CHARACTERS],
        hash=_hash(secret),
        scopes=sorted(set(scopes)),
        created_by=created_by,
    )
    return NewApiKey(secret, row)


async def revoke_key(conn: Connection, organisation_id: OrganisationId, reference: str) -> KeyRow:
    row = await queries.revoke_key(conn, organisation_id=organisation_id, reference=reference)
    if row is None:
        raise NotFound(f"There is no key {reference!r} in this organisation.")
    return row


async def look_up_caller(conn: Connection, secret: str | None) -> FindCallerRow:
    """Look up in one statement what authentication needs to know.

    A key is found by its hash, so the duration reveals nothing about the secret.
    """
    row = await queries.find_caller(
        conn,
        default_id=organisation_id_of(DEFAULT_ORGANISATION),
        hash=None if secret is None else _hash(secret),
    )
    assert row is not None  # noqa: S101 (it selects from one row)
    return row


def principal_of(row: FindCallerRow) -> Principal:
    """Return the principal of the key; Unauthorised if there is no such key."""
    if row.api_key_id is None or row.organisation_id is None:
        raise Unauthorised("This API key is unknown or revoked.")
    return Principal(row.organisation_id, row.api_key_id, frozenset(row.scopes or ()))


async def touch_key(conn: Connection, api_key_id: ApiKeyId) -> None:
    """Record the use of a key, at most once a minute so that a busy key is not a hot row."""
    await queries.touch_key(conn, api_key_id=api_key_id)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _require_text(field: str, value: str, longest: int) -> None:
    if not value.strip() or len(value) > longest or "\x00" in value:
        raise InvalidInput(f"{field} must have 1 to {longest} characters.")


def _require_positive(field: str, value: int | None) -> None:
    if value is not None and value <= 0:
        raise InvalidInput(f"{field} must be greater than 0.")
