"""WARC records on their way out: each is a gzip member of its own, so that tools can seek to it."""

import base64
import gzip
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import BinaryIO
from uuid import UUID

_LEVEL = 6
_HTTP_REQUEST = "application/http;msgtype=request"
_HTTP_RESPONSE = "application/http;msgtype=response"
_FIELDS = "application/warc-fields"


class RecordType(StrEnum):
    """The types of records that we write."""

    WARCINFO = "warcinfo"
    REQUEST = "request"
    RESPONSE = "response"
    REVISIT = "revisit"
    METADATA = "metadata"


_CONTENT_TYPES = {
    RecordType.WARCINFO: _FIELDS,
    RecordType.REQUEST: _HTTP_REQUEST,
    RecordType.RESPONSE: _HTTP_RESPONSE,
    RecordType.REVISIT: _HTTP_RESPONSE,
    RecordType.METADATA: _FIELDS,
}


@dataclass(frozen=True, slots=True)
class NewWarcRecord:
    """One record; `payload` is the part of the block after the HTTP headers."""

    type: RecordType
    id: UUID
    date: datetime
    block: bytes
    url: str | None = None
    payload: bytes | None = None
    more: Sequence[tuple[str, str]] = field(default_factory=tuple)


class WarcWriter:
    """Appends records to a file."""

    def __init__(self, file: BinaryIO, info_id: UUID) -> None:
        self._file = file
        self._info_id = info_id
        self.records = 0
        self.bytes = 0

    def write(self, record: NewWarcRecord) -> None:
        data = gzip.compress(
            _head(record, self._info_id) + record.block + b"\r\n\r\n", _LEVEL, mtime=0
        )
        self._file.write(data)
        self.records += 1
        self.bytes += len(data)


def _head(record: NewWarcRecord, info_id: UUID) -> bytes:
    lines = [
        ("WARC-Type", record.type),
        ("WARC-Record-ID", urn(record.id)),
        ("WARC-Date", warc_date(record.date)),
        ("Content-Type", _CONTENT_TYPES[record.type]),
        ("Content-Length", str(len(record.block))),
        ("WARC-Block-Digest", digest(record.block)),
    ]
    if record.url is not None:
        lines.append(("WARC-Target-URI", record.url))
    if record.payload is not None:
        lines.append(("WARC-Payload-Digest", digest(record.payload)))
    if record.type is not RecordType.WARCINFO:
        lines.append(("WARC-Warcinfo-ID", urn(info_id)))
    return b"WARC/1.1\r\n" + fields([*lines, *record.more]) + b"\r\n"


def fields(pairs: Iterable[tuple[str, object]]) -> bytes:
    """Write named fields, one a line; a line break inside a value would be another field."""
    lines = (f"{name}: {' '.join(str(value).split())}\r\n" for name, value in pairs)
    return "".join(lines).encode("utf-8", "replace")


def http_head(start: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Write the head of an HTTP message."""
    return f"{start}\r\n".encode() + fields(headers) + b"\r\n"


def urn(identifier: UUID) -> str:
    return f"<urn:uuid:{identifier}>"


def warc_date(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def digest(data: bytes) -> str:
    return "sha256:" + base64.b32encode(hashlib.sha256(data).digest()).decode()
