"""Bodies that are too large, never end, or swell when they are unpacked."""

import gzip
import zlib
from collections.abc import Iterator
from functools import cache

import zstandard

from tests.site.message import Headers, Request, Response
from tests.site.page import Page, Perform, Respond
from tests.site.sheet import markup
from tests.site.state import State
from tests.site.wire import Wire

BASE = "/hostile/body/"
_HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
_MEGABYTE = 1_000_000
_TEXT = markup("Packed", "Words that were packed. " * 200).encode()
_FILL = (b"<p>" + b"All work and no play. " * 45 + b"</p>\n") * 64


def pages() -> Iterator[Page]:
    performances: dict[str, Perform] = {
        "huge": _huge,
        "endless": _endless,
        "endless-chunks": _endless_chunks,
        "endless-line": _endless_line,
    }
    for name, perform in performances.items():
        yield Page(target=BASE + name, perform=perform)
    answers: dict[str, Respond] = {
        "gzip-bomb": _bomb("gzip"),
        "deflate-bomb": _bomb("deflate"),
        "zstd-bomb": _bomb("zstd"),
        "gzip-twice": _packed("gzip, gzip", gzip.compress(gzip.compress(_TEXT))),
        "deflate": _packed("deflate", zlib.compress(_TEXT)),
        "deflate-raw": _packed("deflate", _raw_deflate(_TEXT)),
        "gzip-cut": _packed("gzip", gzip.compress(_TEXT)[:-40]),
        "gzip-no-trailer": _packed("gzip", gzip.compress(_TEXT)[:-8]),
        "gzip-wrong-sum": _packed("gzip", gzip.compress(_TEXT)[:-8] + b"\0" * 8),
        "gzip-trailing-garbage": _packed("gzip", gzip.compress(_TEXT) + b"garbage"),
        "gzip-is-plain": _packed("gzip", _TEXT),
        "unknown-coding": _packed("hollin", _TEXT),
        "empty": _packed("gzip", b""),
        "bomb-in-html": _bomb_in_bomb(),
    }
    for name, respond in answers.items():
        yield Page(target=BASE + name, respond=respond)


async def _huge(request: Request, wire: Wire, _state: State) -> None:
    """Send `mb` megabytes (default 50) and say so; ten thousand of them cost no memory here."""
    total = int(request.number("mb", 50) * _MEGABYTE)
    await wire.head(headers=(*_HTML, ("Content-Length", str(total))))
    head = b"<!doctype html><title>Huge</title>"[:total]
    await wire.write(head)
    left = total - len(head)
    while left > 0:
        piece = _FILL[:left]
        await wire.write(piece)
        left -= len(piece)


async def _endless(_request: Request, wire: Wire, _state: State) -> None:
    """Announce no length and never stop."""
    await wire.head(headers=(*_HTML, ("Connection", "close")))
    while True:
        await wire.write(_FILL)


async def _endless_chunks(_request: Request, wire: Wire, _state: State) -> None:
    await wire.head(headers=(*_HTML, ("Transfer-Encoding", "chunked")))
    chunk = b"%x\r\n%b\r\n" % (len(_FILL), _FILL)
    while True:
        await wire.write(chunk)


async def _endless_line(_request: Request, wire: Wire, _state: State) -> None:
    """One tag whose attribute never closes."""
    await wire.head(headers=(*_HTML, ("Connection", "close")))
    await wire.write(b'<!doctype html><p title="')
    while True:
        await wire.write(b"x" * 65536)


def _bomb(coding: str) -> Respond:
    """Answer with a little that unpacks to `mb` megabytes (default 1000)."""

    def respond(request: Request, _state: State) -> Response:
        body = _bomb_bytes(coding, int(request.number("mb", 1000)))
        return Response(body=body, headers=(("Content-Encoding", coding),))

    return respond


@cache
def _bomb_bytes(coding: str, megabytes: int) -> bytes:
    block = b" " * _MEGABYTE
    if coding == "zstd":
        packer = zstandard.ZstdCompressor(level=3).compressobj()
        return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    return b"".join(deflate.compress(block) for _ in range(megabytes)) + deflate.flush()


def _bomb_in_bomb() -> Respond:
    """A small page, packed in gzip, that holds a packed bomb as its text: harmless if left alone."""
    inner = _bomb_bytes("gzip", 20).hex()
    return _packed("gzip", gzip.compress(markup("Nested", inner).encode()))


def _packed(coding: str, body: bytes) -> Respond:
    headers: Headers = (("Content-Encoding", coding),)
    return lambda _request, _state: Response(body=body, headers=headers)


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()
