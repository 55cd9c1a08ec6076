"""Bytes by their SHA-256: compressed, stored once, verified when they are read.

They lie in PostgreSQL, or on a shelf outside it. What is on a shelf is written after its row, and
before the transaction of that row commits: so whoever takes bytes away, with their row, is either
seen or waited for. If the transaction fails, they are orphans, harmless until they are swept.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard

from trapline.db.connection import Connection
from trapline.errors import NotFound, SettingsError, Unavailable
from trapline.store.shelf import Directory, Shelf
from trapline.store.sql import blobs as queries

DATABASE: Final = "db"
_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Packed:
    """Bytes, ready to be stored."""

    sha256: bytes
    size: int
    data: bytes
    compressed: bool


@dataclass(frozen=True, slots=True)
class Blobs:
    """Where bytes are put and found. Without a shelf that is the database."""

    shelf: Shelf | None = None

    @classmethod
    def at(cls, place: str) -> "Blobs":
        """Read the setting: `db:` or `file:/path`."""
        scheme, _, path = place.partition(":")
        if scheme == DATABASE and not path:
            return cls()
        if scheme == Directory.name and path:
            return cls(Directory(Path(path)))
        raise SettingsError("TRAPLINE_BLOBS must be db: or file:/a/directory.")

    async def put(self, conn: Connection, packed: Iterable[Packed]) -> None:
        """Store what is not there yet, sorted so that two workers cannot deadlock."""
        blobs = sorted({blob.sha256: blob for blob in packed}.values(), key=lambda b: b.sha256)
        if not blobs:
            return
        shelf = self.shelf
        await queries.add_blobs(
            conn,
            hashes=[blob.sha256 for blob in blobs],
            sizes=[blob.size for blob in blobs],
            places=[DATABASE if shelf is None else shelf.name for _ in blobs],
            compresseds=[blob.compressed for blob in blobs],
            datas=[blob.data if shelf is None else None for blob in blobs],
        )
        if shelf is not None:
            await shelf.write({blob.sha256: blob.data for blob in blobs})

    async def get(self, conn: Connection, sha256: bytes) -> bytes:
        """Return bytes by their hash, wherever they lie; damaged ones are never returned."""
        row = await queries.get_blob(conn, hash=sha256)
        if row is None:
            raise NotFound(f"There are no bytes with the hash {sha256.hex()}.")
        data = row.data
        if data is None:
            data = await self.shelf_of(row.place).read(sha256)
        body = unpack(data, row.size) if row.compressed else data
        if hashlib.sha256(body).digest() != sha256:
            raise Unavailable(f"The stored bytes of {sha256.hex()} are damaged.")
        return body

    def shelf_of(self, place: str) -> Shelf:
        """Return the shelf that a row names."""
        if self.shelf is None or self.shelf.name != place:
            raise Unavailable(f"The bytes lie at {place}:, but TRAPLINE_BLOBS does not say where.")
        return self.shelf


def pack(body: bytes) -> Packed:
    """Hash and compress; what does not get smaller is kept as it is."""
    compressed = zstandard.compress(body, _LEVEL)
    smaller = len(compressed) < len(body)
    return Packed(
        hashlib.sha256(body).digest(), len(body), compressed if smaller else body, smaller
    )


def unpack(data: bytes, size: int) -> bytes:
    """Decompress what `pack` made; damaged bytes are as good as none."""
    try:
        return zstandard.decompress(data, max_output_size=size)
    except zstandard.ZstdError:
        return b""
