"""Blob backends: bytes outside the database, by their SHA-256."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Protocol

from trapline.errors import Unavailable

_HASH_BYTES = 32


class BlobBackend(Protocol):
    """Stores bytes by their hash. `name` is the value of `store.blob.place`."""

    @property
    def name(self) -> str: ...

    async def write(self, new: Mapping[bytes, bytes]) -> None:
        """Write data by hash; existing data may stay. Durable when this returns."""

    async def read(self, sha256: bytes) -> bytes:
        """Return the data of a hash; Unavailable if it is missing."""

    async def remove(self, hashes: Sequence[bytes]) -> None:
        """Delete data; missing data is no error."""

    def list_hashes(self) -> AsyncIterator[list[tuple[bytes, datetime]]]:
        """Yield all hashes with their write time, in bounded batches."""


@dataclass(frozen=True, slots=True)
class DirectoryBackend:
    """A directory with one file for each blob, in 256 subdirectories."""

    name: ClassVar[str] = "file"
    root: Path

    async def write(self, new: Mapping[bytes, bytes]) -> None:
        await asyncio.to_thread(self._write, new)

    async def read(self, sha256: bytes) -> bytes:
        try:
            return await asyncio.to_thread(self.path(sha256).read_bytes)
        except FileNotFoundError:
            raise Unavailable(f"The file of {sha256.hex()} is missing.") from None

    async def remove(self, hashes: Sequence[bytes]) -> None:
        await asyncio.to_thread(self._remove, hashes)

    async def list_hashes(self) -> AsyncIterator[list[tuple[bytes, datetime]]]:
        for number in range(256):
            yield await asyncio.to_thread(_files, self.root / f"{number:02x}")

    def path(self, sha256: bytes) -> Path:
        name = sha256.hex()
        return self.root / name[:2] / name[2:]

    def _write(self, new: Mapping[bytes, bytes]) -> None:
        for sha256, data in new.items():
            path = self.path(sha256)
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).rename(path)

    def _remove(self, hashes: Sequence[bytes]) -> None:
        for sha256 in hashes:
            self.path(sha256).unlink(missing_ok=True)


def _files(folder: Path) -> list[tuple[bytes, datetime]]:
    """List the blobs of a folder; temporary files of a killed writer have other names."""
    found = []
    for entry in os.scandir(folder) if folder.is_dir() else ():
        try:
            sha256 = bytes.fromhex(folder.name + entry.name)
        except ValueError:
            sha256 = b""
        if len(sha256) == _HASH_BYTES:
            found.append((sha256, datetime.fromtimestamp(entry.stat().st_mtime, UTC)))
    return found
