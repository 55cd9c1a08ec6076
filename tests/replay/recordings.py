"""Recorded responses of WARC files, in the form that goes over the wire again."""

import gzip
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from tests.support.paths import ROOT
from trapline.archive.warc.http_response import HttpResponse, parse_response
from trapline.archive.warc.reader import read_records
from trapline.archive.warc.writer import NewWarcRecord, RecordType, WarcWriter
from trapline.errors import InvalidInput
from trapline.frontier.canonical_url import split_url

DATA = Path(os.environ.get("TRAPLINE_TEST_DATA", ROOT.parent / "shared" / "data")) / "warc"
_MOST_BYTES = 1 << 27
_CHUNK = 4096
# Servers as strange as real ones, where there are no recordings.
_OWN = {
    "http://plain.replay.test/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    b"<title>Plain</title><p>No length. <a href=/old>old</a> <a href=/gone>gone</a>",
    "http://plain.replay.test/old": b"HTTP/1.1 301 Moved Permanently\r\nlocation: /new#part\r\n"
    b"Set-Cookie: a=1; path=/\r\nSet-Cookie: b=2\r\nVary: Accept\r\nVary: Cookie\r\n"
    b"Content-Length: 0\r\n\r\n",
    "http://plain.replay.test/new": b"HTTP/1.0 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"Connection: Keep-Alive\r\nX-Powered-By: \xc3\xa9\xe9\r\nP3P:\r\n\r\n<title>New</title>\xe9<p>text",
    "http://plain.replay.test/gone": b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: text/html\r\n\r\n<title>404</title><p>There is nothing here.",
    "https://safe.replay.test/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=iso-8859-1\r\n"
    b"Content-Encoding: gzip\r\nCache-Control: public\r\nCache-Control: max-age=60\r\n\r\n"
    + gzip.compress(b"<title>Safe</title><p>caf\xe9", mtime=0),
}


@dataclass(frozen=True)
class Recording:
    """A response: as it was recorded, as it is sent, and as a client must understand it."""

    url: str
    response: HttpResponse
    wire: bytes

    @property
    def secure(self) -> bool:
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        return split_url(self.url).host

    @property
    def body(self) -> bytes:
        coding = (self.response.header("content-encoding") or "").lower()
        return gzip.decompress(self.response.body) if "gzip" in coding else self.response.body


def read_recordings(files: Iterable[Path]) -> dict[str, Recording]:
    """The first response for each URL."""
    found: dict[str, Recording] = {}
    for path in files:
        with path.open("rb") as file:
            for record in read_records(file, _MOST_BYTES):
                url = record.url or ""
                if record.type == "response" and record.block and url.startswith("http"):
                    for recording in _recording(url, record.block):
                        found.setdefault(url, recording)
    return found


def write_own(path: Path) -> Path:
    """Write a small WARC file."""
    info = UUID(int=0)
    with path.open("wb") as file:
        writer = WarcWriter(file, info)
        for number, (url, block) in enumerate(_OWN.items(), 1):
            date = datetime(2026, 1, 1, tzinfo=UTC)
            writer.write(NewWarcRecord(RecordType.RESPONSE, UUID(int=number), date, block, url=url))
    return path


def _recording(url: str, block: bytes) -> Iterator[Recording]:
    try:
        response = parse_response(block)
    except InvalidInput:
        return
    head, _, body = block.partition(b"\r\n\r\n")
    if "chunked" in (response.header("transfer-encoding") or "").lower() and body == response.body:
        # The archive has stored the body without its chunks.
        body = b"".join(_chunks(body))
    yield Recording(url, response, head + b"\r\n\r\n" + body)


def _chunks(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), _CHUNK):
        part = body[at : at + _CHUNK]
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"
