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


class MarkBlobsRow(Struct, frozen=True, gc=False):
    sha256: bytes
    used: bool


class DropBlobsRow(Struct, frozen=True, gc=False):
    sha256: bytes
    place: str


class CountByPlaceRow(Struct, frozen=True, gc=False):
    place: str
    blobs: int
    bytes: int


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
    """Insert blobs, sorted by hash so that two workers cannot deadlock. Existing ones are locked until the end of the transaction, so that garbage collection cannot delete them under a new reference."""
    await conn.execute(_ADD_BLOBS, hashes, sizes, places, compresseds, datas)


_GET_BLOB: Final = """
-- name: GetBlob
SELECT * FROM store.blob WHERE sha256 = $1
"""


async def get_blob(conn: Connection, *, hash: bytes) -> BlobRow | None:
    """A blob by its hash."""
    row = await conn.fetchrow(_GET_BLOB, hash)
    return None if row is None else BlobRow(*row)


_MARK_BLOBS: Final = """
-- name: MarkBlobs
WITH old AS (
    SELECT b.sha256, EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256) AS used
    FROM store.blob b
    WHERE b.used_at < $1
    ORDER BY b.used_at
    LIMIT $2::integer
    FOR UPDATE OF b SKIP LOCKED
),
marked AS (
    UPDATE store.blob b SET used_at = now() FROM old WHERE b.sha256 = old.sha256 AND old.used
)
SELECT sha256, used FROM old
"""


async def mark_blobs(conn: Connection, *, before: datetime, most: int) -> list[MarkBlobsRow]:
    """Of blobs neither stored nor marked since a time, mark the referenced ones and return which are not. A locked one is being stored right now."""
    return [MarkBlobsRow(*row) for row in await conn.fetch(_MARK_BLOBS, before, most)]


_DROP_BLOBS: Final = """
-- name: DropBlobs
DELETE FROM store.blob b
WHERE b.sha256 = ANY ($1::bytea[])
  AND b.used_at < $2
  AND NOT EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256)
RETURNING b.sha256, b.place
"""


async def drop_blobs(
    conn: Connection, *, hashes: Sequence[bytes], before: datetime
) -> list[DropBlobsRow]:
    """Delete blobs that are still unreferenced; the caller removes bytes outside the database."""
    return [DropBlobsRow(*row) for row in await conn.fetch(_DROP_BLOBS, hashes, before)]


_RESERVE_HASHES: Final = """
-- name: ReserveHashes
INSERT INTO store.blob (sha256, size, place, compressed)
SELECT hash, 0, $1, false FROM unnest($2::bytea[]) AS hash
ORDER BY hash
ON CONFLICT DO NOTHING
RETURNING sha256
"""


async def reserve_hashes(conn: Connection, *, place: str, hashes: Sequence[bytes]) -> list[bytes]:
    """Insert placeholder rows for hashes, so that nobody can store them meanwhile."""
    return [row[0] for row in await conn.fetch(_RESERVE_HASHES, place, hashes)]


_RELEASE_HASHES: Final = """
-- name: ReleaseHashes
DELETE FROM store.blob WHERE sha256 = ANY ($1::bytea[])
"""


async def release_hashes(conn: Connection, *, hashes: Sequence[bytes]) -> None:
    """Delete placeholder rows."""
    await conn.execute(_RELEASE_HASHES, hashes)


_EXISTING_HASHES: Final = """
-- name: ExistingHashes
SELECT sha256 FROM store.blob WHERE sha256 = ANY ($1::bytea[])
"""


async def existing_hashes(conn: Connection, *, hashes: Sequence[bytes]) -> list[bytes]:
    """Which of these hashes have a row."""
    return [row[0] for row in await conn.fetch(_EXISTING_HASHES, hashes)]


_HASHES_IN_PLACE: Final = """
-- name: HashesInPlace
SELECT sha256 FROM store.blob
WHERE place = $1 AND sha256 > $2::bytea
ORDER BY sha256
LIMIT $3::integer
"""


async def hashes_in_place(conn: Connection, *, place: str, after: bytes, most: int) -> list[bytes]:
    """Hashes of blobs at a place, in order, after one."""
    return [row[0] for row in await conn.fetch(_HASHES_IN_PLACE, place, after, most)]


_MISSING_BLOBS: Final = """
-- name: MissingBlobs
SELECT DISTINCT u.sha256::bytea AS "sha256!"
FROM store.blob_use u
WHERE NOT EXISTS (SELECT FROM store.blob b WHERE b.sha256 = u.sha256)
LIMIT $1::integer
"""


async def missing_blobs(conn: Connection, *, most: int) -> list[bytes]:
    """Referenced blobs without a row."""
    return [row[0] for row in await conn.fetch(_MISSING_BLOBS, most)]


_UNUSED_BLOBS: Final = """
-- name: UnusedBlobs
SELECT b.sha256
FROM store.blob b
WHERE b.used_at < $1
  AND NOT EXISTS (SELECT FROM store.blob_use u WHERE u.sha256 = b.sha256)
LIMIT $2::integer
"""


async def unused_blobs(conn: Connection, *, before: datetime, most: int) -> list[bytes]:
    """Blobs unreferenced for longer than the grace period."""
    return [row[0] for row in await conn.fetch(_UNUSED_BLOBS, before, most)]


_BLOBS_OUTSIDE_PLACE: Final = """
-- name: BlobsOutsidePlace
SELECT sha256 FROM store.blob
WHERE place <> $1 AND sha256 > $2::bytea
ORDER BY sha256 LIMIT $3::integer
FOR UPDATE
"""


async def blobs_outside_place(
    conn: Connection, *, place: str, after: bytes, most: int
) -> list[bytes]:
    """Hashes of blobs that are not at a place, in order, after one; locked until the end of the transaction."""
    return [row[0] for row in await conn.fetch(_BLOBS_OUTSIDE_PLACE, place, after, most)]


_PLACE_BLOB: Final = """
-- name: PlaceBlob
UPDATE store.blob SET place = $1, data = $2 WHERE sha256 = $3
"""


async def place_blob(conn: Connection, *, place: str, data: bytes | None, hash: bytes) -> None:
    """Set the place of a blob."""
    await conn.execute(_PLACE_BLOB, place, data, hash)


_HASHES_AT: Final = """
-- name: HashesAt
SELECT sha256 FROM store.blob
WHERE place = $1 AND sha256 = ANY ($2::bytea[])
"""


async def hashes_at(conn: Connection, *, place: str, hashes: Sequence[bytes]) -> list[bytes]:
    """Which of these hashes are at a place."""
    return [row[0] for row in await conn.fetch(_HASHES_AT, place, hashes)]


_COUNT_BY_PLACE: Final = """
-- name: CountByPlace
SELECT place, count(*) AS blobs, sum(size)::bigint AS "bytes!"
FROM store.blob GROUP BY place ORDER BY place
"""


async def count_by_place(conn: Connection) -> list[CountByPlaceRow]:
    """The number and the size of blobs by place."""
    return [CountByPlaceRow(*row) for row in await conn.fetch(_COUNT_BY_PLACE)]
