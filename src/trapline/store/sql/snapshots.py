"""Typed functions of snapshots.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId


class LastSnapshotRow(Struct, frozen=True, gc=False):
    scraped_at: datetime
    markdown: str
    extracted: Any
    gone: bool


_LAST_SNAPSHOT: Final = """
-- name: LastSnapshot
SELECT scraped_at, markdown, extracted, gone FROM store.snapshot
WHERE organisation_id = $1 AND url_hash = $2
    AND tag = $3 AND variant = $4
FOR UPDATE
"""


async def last_snapshot(
    conn: Connection, *, organisation_id: OrganisationId, url_hash: bytes, tag: str, variant: bytes
) -> LastSnapshotRow | None:
    """The last snapshot of a URL, tag and variant; locked, so that two scrapes are serialised."""
    row = await conn.fetchrow(_LAST_SNAPSHOT, organisation_id, url_hash, tag, variant)
    return None if row is None else LastSnapshotRow(*row)


_KEEP_SNAPSHOT: Final = """
-- name: KeepSnapshot
INSERT INTO store.snapshot AS s
    (organisation_id, url_hash, tag, variant, scraped_at, markdown, extracted, gone)
VALUES (
    $1, $2, $3, $4,
    $5, $6, $7, $8
)
ON CONFLICT (organisation_id, url_hash, tag, variant) DO UPDATE SET
    scraped_at = excluded.scraped_at, markdown = excluded.markdown,
    extracted = excluded.extracted, gone = excluded.gone
WHERE s.scraped_at <= excluded.scraped_at
"""


async def keep_snapshot(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    url_hash: bytes,
    tag: str,
    variant: bytes,
    scraped_at: datetime,
    markdown: str,
    extracted: Any,
    gone: bool,
) -> None:
    """Store the snapshot of a scrape for the next one; an older scrape changes nothing."""
    await conn.execute(
        _KEEP_SNAPSHOT,
        organisation_id,
        url_hash,
        tag,
        variant,
        scraped_at,
        markdown,
        extracted,
        gone,
    )
