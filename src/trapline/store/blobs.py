"""Bytes by their SHA-256: compressed, stored once, verified when they are read.

They lie in PostgreSQL, or in a directory (`TRAPLINE_BLOBS=file:/path`). A file is on disk before
the transaction that names it commits; if that fails, the file is an orphan and harmless.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard

from trapline.db.connection import Connection
from trapline.errors import NotFound, SettingsError, Unavailable
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
    """Where bytes are put and found. Without a directory that is the database."""

    directory: Path | None = None

    @classmethod
    def at(cls, place: str) -> "Blobs":
        """Read the setting: `db:` or `file:/path`."""
        scheme, _, path = place.partition(":")
        if scheme == "db" and not path:
            return cls()
        if scheme == "file" and path:
            return cls(Path(path))
        raise SettingsError("TRAPLINE_BLOBS must be db: or file:/a/directory.")

    async def put(self, conn: Connection, packed: Iterable[Packed]) -> None:
        """Store what is not there yet."""
        new = {blob.sha256: blob for blob in packed}
        if not new:
            return
        if self.directory is not None:
            await asyncio.to_thread(self._write, new)
        blobs = sorted(new.values(), key=lambda blob: blob.sha256)
        await queries.add_blobs(
            conn,
            hashes=[blob.sha256 for blob in blobs],
            sizes=[blob.size for blob in blobs],
            places=[DATABASE if self.directory is None else "file" for _ in blobs],
            compresseds=[blob.compressed for blob in blobs],
            datas=[blob.data if self.directory is None else None for blob in blobs],
        )

    async def get(self, conn: Connection, sha256: bytes) -> bytes:
        """Return bytes by their hash, wherever they lie; damaged ones are never returned."""
        row = await queries.get_blob(conn, hash=sha256)
        if row is None:
            raise NotFound(f"There are no bytes with the hash {sha256.hex()}.")
        data = row.data
        if data is None:
            data = await asyncio.to_thread(self._read, sha256)
        body = zstandard.decompress(data, max_output_size=row.size) if row.compressed else data
        if hashlib.sha256(body).digest() != sha256:
            raise Unavailable(f"The stored bytes of {sha256.hex()} are damaged.")
        return body

    def path(self, sha256: bytes) -> Path:
        if self.directory is None:
            raise Unavailable("The bytes lie in a directory, but TRAPLINE_BLOBS names none.")
        name = sha256.hex()
        return self.directory / name[:2] / name[2:]

    def _write(self, new: Mapping[bytes, Packed]) -> None:
        for sha256, blob in new.items():
            path = self.path(sha256)
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(blob.data)
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).rename(path)

    def _read(self, sha256: bytes) -> bytes:
        try:
            return self.path(sha256).read_bytes()
        except FileNotFoundError:
            raise Unavailable(f"The file of {sha256.hex()} is missing.") from None


def pack(body: bytes) -> Packed:
    """Hash and compress; what does not get smaller is kept as it is."""
    compressed = zstandard.compress(body, _LEVEL)
    smaller = len(compressed) < len(body)
    return Packed(
        hashlib.sha256(body).digest(), len(body), compressed if smaller else body, smaller
    )
