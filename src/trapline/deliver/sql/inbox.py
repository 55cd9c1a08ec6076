"""Typed functions of inbox.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.model import OrganisationId

_RECEIVE: Final = """
-- name: Receive
INSERT INTO deliver.inbox (organisation_id, message_id, sender, type, subject, sha256)
SELECT $1, message_id, $2, type, subject, sha256
FROM unnest(
    $3::uuid[], $4::text[], $5::text[],
    $6::bytea[]
) AS new (message_id, type, subject, sha256)
ORDER BY message_id
ON CONFLICT DO NOTHING
RETURNING message_id
"""


async def receive(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    sender: str,
    message_ids: Sequence[UUID],
    types: Sequence[str],
    subjects: Sequence[str],
    hashes: Sequence[bytes | None] | None,
) -> list[UUID]:
    """Record messages; return only those that are new."""
    return [
        row[0]
        for row in await conn.fetch(
            _RECEIVE, organisation_id, sender, message_ids, types, subjects, hashes
        )
    ]


_DROP_RECEIVED: Final = """
-- name: DropReceived
DELETE FROM deliver.inbox WHERE received_at < $1
"""


async def drop_received(conn: Connection, *, before: datetime) -> int:
    """Delete old messages, which no sender repeats."""
    return int((await conn.execute(_DROP_RECEIVED, before)).rpartition(" ")[2])
