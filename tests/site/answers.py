"""From a page of the table to its answer: validators, compression, methods."""

import gzip
from email.utils import mktime_tz, parsedate_tz
from functools import lru_cache
from hashlib import sha256

from tests.site.message import Headers, Request, Response, http_date
from tests.site.page import Page
from tests.site.state import State

_COMPRESSED_FROM = 1024
# Most servers of the web repeat a header or two.
_REPEATED: Headers = (
    ("Vary", "Origin"),
    ("Server-Timing", "cache;desc=miss"),
    ("Server-Timing", "app;dur=3"),
    ("Set-Cookie", "session=1; Path=/; HttpOnly"),
    ("Set-Cookie", "theme=light; Path=/"),
)


def answer(page: Page, request: Request, state: State) -> Response:
    """Return what a page that does not write to the wire by itself says to a request."""
    if page.respond is not None:
        return page.respond(request, state)
    if request.method not in {"GET", "HEAD"}:
        return Response(405, b"Method not allowed.", (("Allow", "GET, HEAD"),))
    return static(page, request)


def static(page: Page, request: Request) -> Response:
    """Return the page's own bytes, or 304 when the client already has them."""
    headers = page.headers + _validators(page) + _REPEATED
    if page.status == 200 and _matches(page, request):
        return Response(304, headers=headers)
    body = page.body
    if _compressible(page):
        headers += (("Vary", "Accept-Encoding"),)
        if request.accepts("gzip"):
            body = _gzip(body)
            headers += (("Content-Encoding", "gzip"),)
    return Response(page.status, body, headers, page.content_type)


def etag(page: Page) -> str:
    return _digest(page.body)


@lru_cache(maxsize=4096)
def _digest(body: bytes) -> str:
    return '"' + sha256(body).hexdigest()[:16] + '"'


def _validators(page: Page) -> Headers:
    if page.status != 200:
        return ()
    headers: Headers = ()
    if "etag" in page.validators:
        headers += (("ETag", etag(page)),)
    if "last-modified" in page.validators:
        headers += (("Last-Modified", http_date(page.modified.timestamp())),)
    return headers


def _matches(page: Page, request: Request) -> bool:
    """If-None-Match alone decides when it is there, as RFC 9110 says."""
    if (tags := request.headers.get("if-none-match")) is not None:
        return "etag" in page.validators and etag(page) in tags.replace("W/", "")
    since = request.headers.get("if-modified-since")
    return (
        since is not None
        and "last-modified" in page.validators
        and _seconds(since) >= int(page.modified.timestamp())
    )


def _seconds(date: str) -> float:
    """A date that cannot be read is no condition."""
    parsed = parsedate_tz(date)
    return mktime_tz(parsed) if parsed else 0.0


def _compressible(page: Page) -> bool:
    named = {name.lower() for name, _ in page.headers}
    return (
        len(page.body) >= _COMPRESSED_FROM
        and (page.content_type or "").startswith("text/")
        and "content-encoding" not in named
    )


@lru_cache(maxsize=4096)
def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=5, mtime=0)
