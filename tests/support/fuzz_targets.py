"""Fuzz targets: parsers of what strangers send. Each takes bytes and may raise the named errors alone.

`tests/unit/fuzz` runs them on mutated seeds. With coverage guidance, by hand (atheris is no dependency):
`python -m tests.support.fuzz_targets html -max_total_time=60 CORPUS`. A crasher becomes a test.
"""

import asyncio
import io
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.types import Message

from trapline.api import multipart, pagination
from trapline.archive.warc.http_response import parse_response
from trapline.archive.warc.reader import read_records
from trapline.errors import TraplineError, VisitFailed
from trapline.extract import extract
from trapline.extract.html.charset import decode
from trapline.fetch import CookieJar, headers
from trapline.fetch.content_coding import decoder_for
from trapline.fetch.response_protocol import repaired
from trapline.fetch.sniff import media_type, sniff
from trapline.frontier.canonical_url import canonical, typed_url
from trapline.frontier.robots import parse_robots
from trapline.frontier.sitemaps import SitemapReader
from trapline.knowledge import query_syntax
from trapline.model import ExtractOptions, Format

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
URL: Final = "https://example.com/a/b"
_ALL: Final = ExtractOptions(formats=frozenset(Format))


def html(data: bytes) -> None:
    found = extract(b"<p>" + data, "text/html", URL, _ALL)
    if not found.text and not found.warning:
        raise AssertionError("no text, and no warning")


def url(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for parse in (canonical, typed_url, lambda link: canonical(link, URL)):
        try:
            written = parse(text)
        except VisitFailed:
            continue
        if canonical(written) != written:
            raise AssertionError(f"not canonical: {written}")


def robots(data: bytes) -> None:
    parse_robots(data).access("Trapline/1.0").allows(URL)


def sitemap(data: bytes) -> None:
    reader = SitemapReader()
    for at in range(0, len(data), 100):
        reader.feed(data[at : at + 100])
    reader.close()


def response_head(data: bytes) -> None:
    repaired(data)
    text = data.decode("utf-8", "surrogateescape")
    headers.http_date(text)
    headers.retry_after(text, NOW)
    headers.decoded_headers({"X": text})
    media_type(text, sniff(data))
    decoder = decoder_for("gzip, br, zstd, deflate"[: len(data) % 24], 1 << 20)
    if decoder is not None:
        decoder.decode(data)


def cookies(data: bytes) -> None:
    async def remember() -> None:
        jar = CookieJar()
        jar.remember(URL, data.decode("utf-8", "surrogateescape").splitlines())
        jar.header(URL)

    asyncio.run(remember())


def charset(data: bytes) -> None:
    head, _, body = data.partition(b"\n")
    decode(body, head.decode("latin-1")).text.encode("utf-8", "surrogatepass")


def multipart_form(data: bytes) -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": data, "more_body": False}

    async def read() -> None:
        content_type = (b"content-type", b"multipart/form-data; boundary=x")
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [content_type]}
        async for part in multipart.parts(Request(scope, receive)):
            async for _ in part.pieces():
                pass

    asyncio.run(read())


def warc(data: bytes) -> None:
    for record in read_records(io.BytesIO(data), 1 << 20):
        if record.block is not None:
            parse_response(record.block)


def query(data: bytes) -> None:
    query_syntax.parse(data.decode("utf-8", "replace"))


def cursor(data: bytes) -> None:
    pagination.decode(data.decode("latin-1"), tuple[int, str])


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    one.__name__: one
    for one in (
        html, url, robots, sitemap, response_head, cookies, charset, multipart_form, warc, query,
        cursor,
    )
}  # fmt: skip


def run(name: str, data: bytes) -> None:
    """Run a target; errors that say what is wrong with the input are its right answer."""
    try:
        TARGETS[name](data)
    except TraplineError:
        return


if __name__ == "__main__":
    import atheris

    target = sys.argv.pop(1)
    atheris.instrument_all()
    atheris.Setup(sys.argv, lambda data: run(target, data))
    atheris.Fuzz()
