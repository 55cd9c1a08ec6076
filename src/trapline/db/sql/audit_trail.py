"""Typed functions of audit_trail.sql, made by `make sql`: edit that file instead."""

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApiKeyId, OrganisationId


class AuditEntryRow(Struct, frozen=True, gc=False):
    id: int
    created_at: datetime
    actor: str
    api_key_id: ApiKeyId | None
    channel: str
    action: str
    target: str | None
    detail: Any
    client: str | None


_ADD_AUDIT_ENTRY: Final = """
-- name: AddAuditEntry
INSERT INTO tenancy.audit_entry (
    organisation_id, actor, api_key_id, channel, action, target, detail, client
) VALUES (
    $1,
    coalesce(
        (SELECT k.name FROM tenancy.api_key k WHERE k.id = $2::uuid),
        'administrator'),
    $2, $3, $4, $5,
    $6, $7
)
"""


async def add_audit_entry(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    api_key_id: ApiKeyId | None,
    channel: str,
    action: str,
    target: str | None,
    detail: Any,
    client: str | None,
) -> None:
    """Note who changed what; the actor is the key's name."""
    await conn.execute(
        _ADD_AUDIT_ENTRY, organisation_id, api_key_id, channel, action, target, detail, client
    )


_AUDIT_ENTRIES: Final = """
-- name: AuditEntries
SELECT id, created_at, actor, api_key_id, channel, action, target, detail, client
FROM tenancy.audit_entry
WHERE organisation_id = $1 AND id < $2::bigint
    AND ($3::text IS NULL OR action = $3)
    AND ($4::text IS NULL OR actor = $4)
    AND ($5::text IS NULL OR target = $5)
ORDER BY id DESC LIMIT $6::integer
"""


async def audit_entries(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    before: int,
    action: str | None,
    actor: str | None,
    target: str | None,
    most: int,
) -> list[AuditEntryRow]:
    """An organisation's audit trail, newest first, from a position on."""
    return [
        AuditEntryRow(*row)
        for row in await conn.fetch(
            _AUDIT_ENTRIES, organisation_id, before, action, actor, target, most
        )
    ]


_DROP_AUDIT_ENTRIES: Final = """
-- name: DropAuditEntries
DELETE FROM tenancy.audit_entry WHERE created_at < now() - $1::interval
"""


async def drop_audit_entries(conn: Connection, *, keep: timedelta) -> int:
    """Delete entries that are past their time."""
    return int((await conn.execute(_DROP_AUDIT_ENTRIES, keep)).rpartition(" ")[2])
