"""Bytes by their SHA-256: compressed, stored once, verified when they are read.

They lie in PostgreSQL, or on a shelf outside it. What is on a shelf is written after its row, and
before the transaction of that row commits: so whoever takes bytes away, with their row, is either
seen or waited for. If the transaction fails, they are orphans, harmless until they are swept.
"""

import hashlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard
from msgspec import Struct

from trapline.db.connection import Connection
from trapline.errors import NotFound, SettingsError, Unavailable
from trapline.settings import Settings
from trapline.store.objects import Objects
from trapline.store.shelf import Directory, Shelf
from trapline.store.spooling import Spool
from trapline.store.sql import blobs as queries
from trapline.store.sql.blobs import BlobRow

DATABASE: Final = "db"
_LEVEL: Final = 3
_SMALL: Final = 1 << 19


class Packed(Struct, frozen=True, gc=False):
    """Bytes, ready to be stored."""

    sha256: bytes
    size: int
    data: bytes
    compressed: bool


@dataclass(frozen=True, slots=True)
class Blobs:
    """Where bytes are put and found. Without a shelf that is the database."""

    shelf: Shelf | None = None
    # Where older ones may still lie.
    before: tuple[Shelf, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "Blobs":
        """Read the settings: `db:`, `file:/path` or `s3://bucket/prefix`, now and before."""
        older = None if settings.blobs_before is None else _shelf(settings.blobs_before, settings)
        return cls(_shelf(settings.blobs, settings), () if older is None else (older,))

    @property
    def place(self) -> str:
        """What the row of a new blob names as its place."""
        return DATABASE if self.shelf is None else self.shelf.name

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
            places=[self.place for _ in blobs],
            compresseds=[blob.compressed for blob in blobs],
            datas=[blob.data if shelf is None else None for blob in blobs],
        )
        if shelf is not None:
            await shelf.write({blob.sha256: blob.data for blob in blobs})

    async def put_spooled(self, conn: Connection, spools: Sequence[Spool]) -> None:
        """Store what came in pieces. Its compressed bytes are in memory while they are written."""
        await self.put(
            conn, (Packed(one.sha256, one.size, one.data(), compressed=True) for one in spools)
        )

    async def get(self, conn: Connection, sha256: bytes) -> bytes:
        """Return bytes by their hash, wherever they lie; damaged ones are never returned."""
        row = await queries.get_blob(conn, hash=sha256)
        if row is None:
            raise NotFound(f"There are no bytes with the hash {sha256.hex()}.")
        data = await self._data(row)
        body = unpack(data, row.size) if row.compressed else data
        if hashlib.sha256(body).digest() != sha256:
            raise Unavailable(f"The stored bytes of {sha256.hex()} are damaged.")
        return body

    async def packed(self, conn: Connection, sha256: bytes) -> bytes:
        """Return bytes as they are stored."""
        row = await queries.get_blob(conn, hash=sha256)
        if row is None:
            raise NotFound(f"There are no bytes with the hash {sha256.hex()}.")
        return await self._data(row)

    async def _data(self, row: BlobRow) -> bytes:
        return row.data if row.data is not None else await self.shelf_of(row.place).read(row.sha256)

    def shelf_of(self, place: str) -> Shelf:
        """Return the shelf that a row names."""
        for shelf in (self.shelf, *self.before):
            if shelf is not None and shelf.name == place:
                return shelf
        raise Unavailable(f"The bytes lie at {place}:, but TRAPLINE_BLOBS does not say where.")


def _shelf(place: str, settings: Settings) -> Shelf | None:
    scheme, _, path = place.partition(":")
    if scheme == DATABASE and not path:
        return None
    if scheme == Directory.name and path:
        return Directory(Path(path))
    if scheme == Objects.name:
        return Objects.at(place, settings)
    raise SettingsError("TRAPLINE_BLOBS must be db:, file:/a/directory or s3://bucket/prefix.")


class _Tools(threading.local):
    """What compresses may not be shared by threads: one for each that asks."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        # The same, with tables that a core's nearest memory holds (decision 038): half the time for
        # a page, and one byte in a hundred more. In what is large they would find too little again.
        self.quick = zstandard.ZstdCompressor(
            compression_params=zstandard.ZstdCompressionParameters(
                window_log=19,
                hash_log=13,
                chain_log=13,
                search_log=1,
                min_match=5,
                strategy=zstandard.STRATEGY_DFAST,
            )
        )


_tools: Final = _Tools()


def pack(body: bytes) -> Packed:
    """Hash and compress; what does not get smaller is kept as it is."""
    compressor = _tools.quick if len(body) <= _SMALL else _tools.compressor
    compressed = compressor.compress(body)
    smaller = len(compressed) < len(body)
    return Packed(
        hashlib.sha256(body).digest(), len(body), compressed if smaller else body, smaller
    )


def unpack(data: bytes, size: int = 0) -> bytes:
    """Decompress what `pack` made; damaged bytes are as good as none."""
    try:
        return zstandard.decompress(data, max_output_size=size)
    except zstandard.ZstdError:
        return b""
