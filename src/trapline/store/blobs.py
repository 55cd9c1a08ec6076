"""Blobs: bytes by their SHA-256, compressed, stored once, verified on read.

They are in PostgreSQL or in a backend outside it. A backend's bytes are written after their row and
before its transaction commits, so garbage collection, which deletes bytes with their row, either sees
the row or waits for it. If the transaction fails, the bytes are orphans until they are swept.
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
from trapline.settings import BlobSettings
from trapline.store.blob_backends import BlobBackend, DirectoryBackend
from trapline.store.s3 import S3Backend
from trapline.store.sql import blobs as queries
from trapline.store.sql.blobs import BlobRow
from trapline.store.upload_spool import UploadSpool

DATABASE: Final = "db"
_LEVEL: Final = 3
_SMALL: Final = 1 << 19


class PackedBlob(Struct, frozen=True, gc=False):
    """Bytes, hashed and compressed."""

    sha256: bytes
    size: int
    data: bytes
    compressed: bool


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Stores and reads blobs. Without a backend they are in the database."""

    backend: BlobBackend | None = None
    # Backends that may still hold older blobs.
    previous: tuple[BlobBackend, ...] = ()

    @classmethod
    def of(cls, settings: BlobSettings) -> "BlobStore":
        """Read the settings: `db:`, `file:/path` or `s3://bucket/prefix`, now and before."""
        older = (
            None
            if settings.previous_location is None
            else _backend(settings.previous_location, settings)
        )
        return cls(_backend(settings.location, settings), () if older is None else (older,))

    @property
    def place(self) -> str:
        """The value of `store.blob.place` for new blobs."""
        return DATABASE if self.backend is None else self.backend.name

    async def put(self, conn: Connection, packed: Iterable[PackedBlob]) -> None:
        """Store the blobs that are missing, sorted so that two workers cannot deadlock."""
        blobs = sorted({blob.sha256: blob for blob in packed}.values(), key=lambda b: b.sha256)
        if not blobs:
            return
        backend = self.backend
        await queries.add_blobs(
            conn,
            hashes=[blob.sha256 for blob in blobs],
            sizes=[blob.size for blob in blobs],
            places=[self.place for _ in blobs],
            compresseds=[blob.compressed for blob in blobs],
            datas=[blob.data if backend is None else None for blob in blobs],
        )
        if backend is not None:
            await backend.write({blob.sha256: blob.data for blob in blobs})

    async def put_spooled(self, conn: Connection, spools: Sequence[UploadSpool]) -> None:
        """Store uploads. Their compressed bytes are in memory while they are written."""
        await self.put(
            conn, (PackedBlob(one.sha256, one.size, one.data(), compressed=True) for one in spools)
        )

    async def get(self, conn: Connection, sha256: bytes) -> bytes:
        """Return the bytes of a hash from any backend; raise Unavailable if they are damaged."""
        row = await queries.get_blob(conn, hash=sha256)
        if row is None:
            raise NotFound(f"There is no blob with the hash {sha256.hex()}.")
        data = await self._data(row)
        body = unpack(data, row.size) if row.compressed else data
        if hashlib.sha256(body).digest() != sha256:
            raise Unavailable(
                f"The blob {sha256.hex()} is damaged: its bytes do not match its hash."
            )
        return body

    async def packed(self, conn: Connection, sha256: bytes) -> bytes:
        """Return bytes as stored, possibly compressed."""
        row = await queries.get_blob(conn, hash=sha256)
        if row is None:
            raise NotFound(f"There is no blob with the hash {sha256.hex()}.")
        return await self._data(row)

    async def _data(self, row: BlobRow) -> bytes:
        return (
            row.data if row.data is not None else await self.backend_at(row.place).read(row.sha256)
        )

    def backend_at(self, place: str) -> BlobBackend:
        """Return the backend of a row's place."""
        for backend in (self.backend, *self.previous):
            if backend is not None and backend.name == place:
                return backend
        raise Unavailable(
            f"The blob is at {place}:, but neither TRAPLINE_BLOBS nor TRAPLINE_BLOBS_BEFORE names it."
        )


def _backend(place: str, settings: BlobSettings) -> BlobBackend | None:
    scheme, _, path = place.partition(":")
    if scheme == DATABASE and not path:
        return None
    if scheme == DirectoryBackend.name and path:
        return DirectoryBackend(Path(path))
    if scheme == S3Backend.name:
        return S3Backend.at(place, settings)
    raise SettingsError("TRAPLINE_BLOBS must be db:, file:/a/directory or s3://bucket/prefix.")


class _Compressors(threading.local):
    """Compressors, one of each for a thread: they are not thread-safe."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        # With tables that fit into the L1 cache (decision 038): half the time for a page, for 1 % more
        # bytes. Large bodies would compress too badly.
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


_compressors: Final = _Compressors()


def pack(body: bytes) -> PackedBlob:
    """Hash and compress; keep the bytes as they are if that makes them no smaller."""
    compressor = _compressors.quick if len(body) <= _SMALL else _compressors.compressor
    compressed = compressor.compress(body)
    smaller = len(compressed) < len(body)
    return PackedBlob(
        hashlib.sha256(body).digest(), len(body), compressed if smaller else body, smaller
    )


def unpack(data: bytes, size: int = 0) -> bytes:
    """Decompress the data of `pack`; empty if it is damaged."""
    try:
        return zstandard.decompress(data, max_output_size=size)
    except zstandard.ZstdError:
        return b""
