"""Bytes that come in pieces: hashed and compressed as they come, on disk once they are many."""

import hashlib
import tempfile
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Final

import zstandard

from trapline.errors import TooLarge

# A file up to here never touches the disk.
IN_MEMORY: Final = 256 * 1024
_LEVEL: Final = 3


@dataclass(slots=True)
class Spool:
    """Takes pieces until there are too many bytes; what is held of them is compressed."""

    most: int
    size: int = 0
    head: bytes = b""
    """The first bytes, as they came: what tells a file's type."""
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _file: SpooledTemporaryFile[bytes] = field(
        default_factory=lambda: tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by close)
    )
    _compressor: "zstandard.ZstdCompressionObj" = field(
        default_factory=lambda: zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    )

    def write(self, piece: bytes) -> None:
        """Add a piece; TooLarge once there are more bytes than may be."""
        self.size += len(piece)
        if self.size > self.most:
            raise TooLarge(f"It has more than {self.most:,} bytes.")
        if len(self.head) < _HEAD:
            self.head += piece[: _HEAD - len(self.head)]
        self._hash.update(piece)
        self._file.write(self._compressor.compress(piece))

    def finish(self) -> None:
        """Say that all pieces are there."""
        self._file.write(self._compressor.flush())

    @property
    def sha256(self) -> bytes:
        return self._hash.digest()

    @property
    def held(self) -> int:
        """How many compressed bytes there are."""
        return self._file.tell()

    def data(self) -> bytes:
        """Return all of it, compressed."""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        self._file.close()


_HEAD: Final = 4096
