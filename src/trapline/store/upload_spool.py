"""The spool of an upload: hashed and compressed as its pieces arrive, on disk once it is large."""

import hashlib
import tempfile
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Final

import zstandard

from trapline.errors import TooLarge

# Compressed bytes up to which a file stays in memory.
IN_MEMORY: Final = 256 * 1024
_LEVEL: Final = 3


@dataclass(slots=True)
class UploadSpool:
    """Takes pieces up to a maximum size and holds them compressed."""

    most: int
    size: int = 0
    head: bytes = b""
    """The first bytes, uncompressed, from which the file type is detected."""
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _file: SpooledTemporaryFile[bytes] = field(
        default_factory=lambda: tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by close)
    )
    _compressor: "zstandard.ZstdCompressionObj" = field(
        default_factory=lambda: zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    )

    def write(self, piece: bytes) -> None:
        """Add a piece; raise TooLarge beyond the maximum."""
        self.size += len(piece)
        if self.size > self.most:
            raise TooLarge(f"The file has more than {self.most:,} bytes.")
        if len(self.head) < _HEAD:
            self.head += piece[: _HEAD - len(self.head)]
        self._hash.update(piece)
        self._file.write(self._compressor.compress(piece))

    def finish(self) -> None:
        """Flush the compressor after the last piece."""
        self._file.write(self._compressor.flush())

    @property
    def sha256(self) -> bytes:
        return self._hash.digest()

    @property
    def compressed_size(self) -> int:
        """The number of compressed bytes."""
        return self._file.tell()

    def data(self) -> bytes:
        """Return all bytes, compressed."""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        self._file.close()


_HEAD: Final = 4096
