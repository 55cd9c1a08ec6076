"""WARC files on their way in: plain or gzip, one record at a time, never more than a bound in memory.

What is wrong is an InvalidInput that says where. Records before that have been given out.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Final

from trapline.errors import InvalidInput

# The drafts 0.17 and 0.18, which Heritrix wrote for years, have the same records.
_VERSIONS: Final = (b"WARC/1.", b"WARC/0.1")
_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 16
_DIGESTS: Final = frozenset({"sha1", "sha256", "sha512", "md5"})
_LONGEST_LINE: Final = 1 << 14
_MOST_HEADER_BYTES: Final = 1 << 16
# Records of these types carry what a page was; of others the head is all that is read.
CONTENT: Final = frozenset({"response", "resource"})


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One record. `block` is None where it was skipped: it is no content, or larger than the bound."""

    number: int
    type: str
    headers: dict[str, str]
    length: int
    block: bytes | None

    @property
    def url(self) -> str | None:
        uri = self.headers.get("warc-target-uri")
        return None if uri is None else uri.removeprefix("<").removesuffix(">")

    @property
    def date(self) -> datetime:
        text = self.headers.get("warc-date", "")
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            found = None
        if found is None or found.tzinfo is None:
            raise InvalidInput(f"Record {self.number} has no date: {text[:40]!r}.")
        return found


def read_records(file: BinaryIO, most_bytes: int) -> Iterator[WarcRecord]:
    """Give the records of a file; those whose block is larger than the bound come without it."""
    stream = _WarcStream(file)
    number = 0
    while version := _first_line(stream):
        number += 1
        if not version.startswith(_VERSIONS):
            raise InvalidInput(f"Record {number} does not begin as a WARC record does.")
        headers = _headers(stream, number)
        length = _length(headers, number)
        kind = headers.get("warc-type", "").lower()
        keep = kind in CONTENT and length <= most_bytes
        block = stream.read(length) if keep else stream.skip(length)
        if block is None:
            raise InvalidInput(f"The file ends in the middle of record {number}.")
        yield WarcRecord(number, kind, headers, length, block if keep else None)
    if number == 0:
        raise InvalidInput("There is no WARC record in the file.")


def check_digest(record: WarcRecord) -> None:
    """Raise InvalidInput if the block is not what its digest says; one that we do not know passes."""
    algorithm, _, said = record.headers.get("warc-block-digest", "").partition(":")
    if record.block is None or algorithm.lower().replace("-", "") not in _DIGESTS:
        return
    found = hashlib.new(algorithm.lower().replace("-", ""), record.block).digest()
    if said.upper() not in (base64.b32encode(found).decode(), found.hex().upper()):
        raise InvalidInput("It is damaged: its digest is another.")


def _first_line(stream: "_WarcStream") -> bytes:
    """Return the line that a record begins with, after the blank lines that end the one before."""
    while (line := stream.line()) in (b"\r\n", b"\n"):
        pass
    return line


def _headers(stream: "_WarcStream", number: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    name, size = "", 0
    while (line := stream.line()) not in (b"\r\n", b"\n"):
        size += len(line)
        if not line.endswith(b"\n"):
            raise InvalidInput(f"The file ends in the head of record {number}.")
        if size > _MOST_HEADER_BYTES:
            raise InvalidInput(f"The head of record {number} is too large.")
        text = line.decode("utf-8", "replace")
        if text[0] in " \t" and name:
            headers[name] += " " + text.strip()
            continue
        name, colon, value = text.partition(":")
        if not colon:
            raise InvalidInput(f"Record {number} has a line without a name: {text[:40]!r}.")
        name = name.strip().lower()
        headers.setdefault(name, value.strip())
    return headers


def _length(headers: dict[str, str], number: int) -> int:
    text = headers.get("content-length", "")
    if not text.isascii() or not text.isdigit() or len(text) > len(str(2**63)):
        raise InvalidInput(f"Record {number} does not say how long it is: {text[:40]!r}.")
    return int(text)


class _WarcStream:
    """A file as plain bytes. gzip members follow each other without a seam."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._raw = file.read(_CHUNK)
        self._ready = bytearray()
        self._gzip = self._raw[:2] == _GZIP
        self._member = zlib.decompressobj(wbits=31) if self._gzip else None

    def line(self) -> bytes:
        """Return a line with its end, or what is left; empty at the end."""
        while (end := self._ready.find(b"\n")) < 0:
            if len(self._ready) > _LONGEST_LINE:
                raise InvalidInput("There is a line too long for a WARC file.")
            if not self._fill():
                return self._take(len(self._ready))
        return self._take(end + 1)

    def read(self, length: int) -> bytes | None:
        """Return exactly so many bytes; None if there are fewer."""
        while len(self._ready) < length:
            if not self._fill():
                return None
        return self._take(length)

    def skip(self, length: int) -> bytes | None:
        """Pass over so many bytes; None if there are fewer."""
        while length > len(self._ready):
            length -= len(self._ready)
            self._ready.clear()
            if not self._fill():
                return None
        self._take(length)
        return b""

    def _take(self, length: int) -> bytes:
        taken = bytes(self._ready[:length])
        del self._ready[:length]
        return taken

    def _fill(self) -> bool:
        """Make some more bytes ready; False at the end."""
        if self._member is None:
            self._ready += self._raw
            got, self._raw = bool(self._raw), self._file.read(_CHUNK)
            return got
        return self._inflate(self._member)

    def _inflate(self, member: "zlib._Decompress") -> bool:
        while True:
            if not self._raw:
                self._raw = self._file.read(_CHUNK)
            if member.eof:
                if not self._raw.lstrip(b"\0"):
                    return False
                member = self._member = zlib.decompressobj(wbits=31)
            elif not self._raw:
                raise InvalidInput("The file ends in the middle of a gzip member.")
            try:
                plain = member.decompress(self._raw, _CHUNK)
            except zlib.error as error:
                raise InvalidInput(f"The file is damaged: {error}.") from None
            self._raw = member.unused_data if member.eof else member.unconsumed_tail
            if plain:
                self._ready += plain
                return True
