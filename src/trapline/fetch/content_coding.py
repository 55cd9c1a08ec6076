"""Content codings: streaming decoders with a bound on their output."""

import zlib
from collections.abc import Callable
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # it has no annotations
import zstandard

from trapline.errors import ExitCode, VisitFailed

# More than one coding is legal and rare; more than this is a trick.
_MOST_CODINGS = 3
_ZSTD_SLICE = 256
# The largest window that RFC 9659 allows.
_ZSTD_WINDOW = 8 * 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_ZLIB_METHOD = 8


class Decoder(Protocol):
    """Decodes one coding. `finished` after the end of a stream."""

    @property
    def finished(self) -> bool: ...

    def decode(self, data: bytes, room: int) -> bytes:
        """Return at most a little more than `room` bytes; more than `room` means too much."""


class BodyDecoder:
    """Decodes one body: its codings in the reverse of the order in which they were applied."""

    def __init__(self, names: list[str], limit: int) -> None:
        if len(names) > _MOST_CODINGS:
            raise VisitFailed(ExitCode.MALFORMED_RESPONSE, f"{len(names)} content codings")
        self._names = names
        self._decoders = [_DECODERS[name]() for name in reversed(names)]
        self._limit = limit
        self._produced = 0
        self._begun = False

    def decode(self, data: bytes) -> bytes:
        self._begun = True
        for decoder in self._decoders:
            try:
                data = decoder.decode(data, self._limit - self._produced)
            except (zlib.error, brotli.error, zstandard.ZstdError) as error:
                detail = f"the body is not valid {'+'.join(self._names)}: {error}"
                raise VisitFailed(ExitCode.MALFORMED_RESPONSE, detail) from error
            if self._produced + len(data) > self._limit:
                raise VisitFailed(ExitCode.DECOMPRESSED_TOO_LARGE, f"over {self._limit:,} bytes")
        self._produced += len(data)
        return data

    def finish(self) -> None:
        """Raise unless every stream has ended; an empty body has none."""
        if self._begun and not all(decoder.finished for decoder in self._decoders):
            detail = f"the {'+'.join(self._names)} stream has no end"
            raise VisitFailed(ExitCode.TRUNCATED, detail)


def decoder_for(header: str | None, limit: int) -> BodyDecoder | None:
    """The decoder for a Content-Encoding header. As in browsers, unknown codings pass through."""
    if not header:
        return None
    names = [name.strip().lower() for name in header.split(",")]
    known = [name for name in names if name in _DECODERS]
    return BodyDecoder(known, limit) if known else None


class _Zlib:
    """gzip with any number of members, or zlib. What follows the last member is ignored."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self.finished = False

    def decode(self, data: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        while data and room >= 0:
            if self.finished and not self._begin_member(data):
                break
            part = self._stream.decompress(data, room + 1)
            parts.append(part)
            room -= len(part)
            self.finished = self._stream.eof
            data = self._stream.unused_data if self.finished else self._stream.unconsumed_tail
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def _begin_member(self, data: bytes) -> bool:
        if self._window != _GZIP_WINDOW or not data.startswith(_GZIP_MAGIC):
            return False
        self._stream = zlib.decompressobj(self._window)
        self.finished = False
        return True


class _Deflate:
    """`deflate` should mean zlib, but some servers send the bare stream."""

    def __init__(self) -> None:
        self._inner: _Zlib | None = None
        self._head = b""

    @property
    def finished(self) -> bool:
        return self._inner is not None and self._inner.finished

    def decode(self, data: bytes, room: int) -> bytes:
        if self._inner is None:
            self._head += data
            if len(self._head) < len(_GZIP_MAGIC):
                return b""
            self._inner = _Zlib(zlib.MAX_WBITS if _is_zlib(self._head) else -zlib.MAX_WBITS)
            data = self._head
        return self._inner.decode(data, room)


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    @property
    def finished(self) -> bool:
        return bool(self._stream.is_finished())

    def decode(self, data: bytes, room: int) -> bytes:
        if self.finished:
            return b""
        parts = [self._stream.process(data, output_buffer_limit=room + 1)]
        room -= len(parts[0])
        while room >= 0 and not self._stream.can_accept_more_data():
            parts.append(self._stream.process(b"", output_buffer_limit=room + 1))
            room -= len(parts[-1])
        return b"".join(parts)


class _Zstd:
    """Fed in small slices, because the library bounds its input but not its output.

    A slice makes at most 8 MB: 64 blocks of 128 KB, each said in four bytes.
    """

    def __init__(self) -> None:
        self._stream = _zstd_stream()

    @property
    def finished(self) -> bool:
        return bool(self._stream.eof)

    def decode(self, data: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        while data and room >= 0:
            if self.finished:
                self._stream = _zstd_stream()
            parts.append(self._stream.decompress(data[:_ZSTD_SLICE]))
            room -= len(parts[-1])
            data = self._stream.unused_data + data[_ZSTD_SLICE:]
        return b"".join(parts)


def _zstd_stream() -> "zstandard.ZstdDecompressionObj":
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


def _is_zlib(head: bytes) -> bool:
    return head[0] & 0x0F == _ZLIB_METHOD and int.from_bytes(head[:2]) % 31 == 0


_GZIP_WINDOW = zlib.MAX_WBITS + 16


def _gzip() -> Decoder:
    return _Zlib(_GZIP_WINDOW)


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
