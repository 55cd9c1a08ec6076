"""Typed functions of blobs.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class BlobRow(Struct, frozen=True, gc=False):
    sha256: bytes
    size: int
    place: str
    compressed: bool
    data: bytes | None
    created_at: datetime
    used_at: datetime


_ADD_BLOBS: Final = """
-- name: AddBlobs
INSERT INTO store.blob AS b (sha256, size, place, compressed, data)
SELECT sha256, size, place, compressed, data
FROM unnest(
    $1::bytea[],
    $2::bigint[],
    $3::text[],
    $4::boolean[],
    $5::bytea[]
) AS new (sha256, size, place, compressed, data)
ORDER BY sha256
ON CONFLICT (sha256) DO UPDATE SET used_at = now()
WHERE b.used_at < now() - interval '1 hour'
"""


async def add_blobs(
    conn: Connection,
    *,
    hashes: Sequence[bytes],
    sizes: Sequence[int],
    places: Sequence[str],
    compresseds: Sequence[bool],
    datas: Sequence[bytes | None] | None,
) -> None:
    """Store bytes, sorted by hash so that two workers cannot deadlock. Known ones are locked until the end of the transaction, so that the sweeper cannot take them from under a new use."""
    await conn.execute(_ADD_BLOBS, hashes, sizes, places, compresseds, datas)


_GET_BLOB: Final = """
-- name: GetBlob
SELECT * FROM store.blob WHERE sha256 = $1
"""


async def get_blob(conn: Connection, *, hash: bytes) -> BlobRow | None:
    """Bytes by their hash."""
    row = await conn.fetchrow(_GET_BLOB, hash)
    return None if row is None else BlobRow(*row)
