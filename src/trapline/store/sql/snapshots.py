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
    AND tag = $3
FOR UPDATE
"""


async def last_snapshot(
    conn: Connection, *, organisation_id: OrganisationId, url_hash: bytes, tag: str
) -> LastSnapshotRow | None:
    """What the last scrape of a URL found, for a tag; locked, so that two scrapes come one by one."""
    row = await conn.fetchrow(_LAST_SNAPSHOT, organisation_id, url_hash, tag)
    return None if row is None else LastSnapshotRow(*row)


_KEEP_SNAPSHOT: Final = """
-- name: KeepSnapshot
INSERT INTO store.snapshot AS s
    (organisation_id, url_hash, tag, scraped_at, markdown, extracted, gone)
VALUES (
    $1, $2, $3, $4,
    $5, $6, $7
)
ON CONFLICT (organisation_id, url_hash, tag) DO UPDATE SET
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
    scraped_at: datetime,
    markdown: str,
    extracted: Any,
    gone: bool,
) -> None:
    """Keep what a scrape found, for the next one; an older one changes nothing."""
    await conn.execute(
        _KEEP_SNAPSHOT, organisation_id, url_hash, tag, scraped_at, markdown, extracted, gone
    )
