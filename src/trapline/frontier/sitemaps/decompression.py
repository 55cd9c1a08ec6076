"""Streaming decompression and decoding of sitemaps: gzip and charset, both bounded."""

import codecs
import re
import zlib
from collections.abc import Iterator

_GZIP = b"\x1f\x8b"
_PIECE = 65_536
_HEAD = 256
_DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0?\0", "utf-16-le"),
    (b"\0<\0?", "utf-16-be"),
)
# Python has codecs that are no charsets (zlib, idna, unicode_escape): a file may not choose them.
_CHARSETS = re.compile(
    r"us-ascii|ascii|utf-?8|iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]"
    r"|gb2312|gbk|gb18030|big5|shift[_-]jis|euc-(?:jp|kr)",
    re.IGNORECASE,
)


class TextStream:
    """Takes chunks of a file and returns text; `problems` has a sentence for each fault."""

    def __init__(self, max_bytes: int) -> None:
        self.problems: list[str] = []
        self.done = False
        self._left = max_bytes
        self._head: bytes | None = b""
        self._gzip: zlib._Decompress | None = None
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, chunk: bytes) -> Iterator[str]:
        if self._head is not None:
            self._head += chunk
            if len(self._head) < len(_GZIP):
                return
            chunk, self._head = self._head, None
            if chunk.startswith(_GZIP):
                self._gzip = zlib.decompressobj(wbits=31)
        for piece in self._pieces(chunk):
            yield self._decoded(piece)

    def close(self) -> Iterator[str]:
        if self._head:
            yield self._decoded(self._head)
        if self._gzip is not None and not self._gzip.eof and not self.done:
            self._stop("The gzip file ends too early.")
        if isinstance(self._decoder, _CharsetDecoder):
            yield self._decoder.decode(b"", final=True)

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and not self.done:
            piece, chunk = self._next_piece(chunk)
            if len(piece) > self._left:
                piece = piece[: self._left]
                self._stop("The file is larger than the limit; its beginning was read.")
            self._left -= len(piece)
            yield piece

    def _next_piece(self, chunk: bytes) -> tuple[bytes, bytes]:
        if self._gzip is None:
            return chunk[:_PIECE], chunk[_PIECE:]
        if self._gzip.eof:
            if not chunk.startswith(_GZIP):
                return b"", b""
            self._gzip = zlib.decompressobj(wbits=31)
        try:
            piece = self._gzip.decompress(chunk, _PIECE)
        except zlib.error:
            self._stop("The gzip file is damaged; what came before the damage was read.")
            return b"", b""
        return piece, self._gzip.unconsumed_tail or self._gzip.unused_data

    def _decoded(self, piece: bytes) -> str:
        if self._decoder is None:
            self._decoder = _CharsetDecoder(errors="replace")
        return self._decoder.decode(piece)

    def _stop(self, problem: str) -> None:
        self.problems.append(problem)
        self.done = True


class _CharsetDecoder(codecs.IncrementalDecoder):
    """Waits for the head of the file, then decodes as it says."""

    def __init__(self, errors: str = "replace") -> None:
        super().__init__(errors)
        self._waiting: bytes | None = b""
        self._chosen: codecs.IncrementalDecoder | None = None

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        if self._chosen is None:
            self._waiting = (self._waiting or b"") + data
            if len(self._waiting) < _HEAD and not final:
                return ""
            data, self._waiting = self._waiting, None
            self._chosen = codecs.getincrementaldecoder(_charset(data))(self.errors)
        return self._chosen.decode(data, final)


def _charset(head: bytes) -> str:
    for mark, charset in _MARKS:
        if head.startswith(mark):
            return charset
    declared = _DECLARED.search(head[:_HEAD])
    name = declared[1].decode("ascii") if declared else "utf-8"
    return name if _CHARSETS.fullmatch(name) else "utf-8"
