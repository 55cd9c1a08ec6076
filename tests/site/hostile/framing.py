"""Messages whose frame is wrong: lengths that lie, chunks that do not add up, no HTTP at all."""

from collections.abc import Iterator

from tests.site.message import Request
from tests.site.page import Page, Perform
from tests.site.sheet import markup
from tests.site.state import State
from tests.site.wire import Wire

BASE = "/hostile/frame/"
_TEXT = markup("Framed", "The frame is crooked, the picture is not.").encode()
_TYPE = b"Content-Type: text/html; charset=utf-8\r\n"
_OK = b"HTTP/1.1 200 OK\r\n" + _TYPE
_SIZE = len(_TEXT)
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNK = b"%x\r\n%b\r\n" % (_SIZE, _TEXT)

ANSWERS: dict[str, bytes] = {
    "length-too-large": _OK + b"Content-Length: %d\r\n\r\n%b" % (_SIZE + 1000, _TEXT),
    "length-too-small": _OK + b"Content-Length: %d\r\n\r\n%b" % (_SIZE - 10, _TEXT),
    "length-negative": _OK + b"Content-Length: -5\r\n\r\n" + _TEXT,
    "length-words": _OK + b"Content-Length: many\r\n\r\n" + _TEXT,
    "length-twice": _OK
    + b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n%b" % (_SIZE, _SIZE - 10, _TEXT),
    "length-and-chunks": _OK
    + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n"
    + _CHUNK
    + b"0\r\n\r\n",
    "no-length": _OK + b"Connection: close\r\n\r\n" + _TEXT,
    "http-1.0": b"HTTP/1.0 200 OK\r\n" + _TYPE + b"\r\n" + _TEXT,
    "http-0.9": _TEXT,
    "chunks": _CHUNKED + _CHUNK + b"0\r\n\r\n",
    "chunks-with-trailer": _CHUNKED + _CHUNK + b"0\r\nX-Sum: 1\r\n\r\n",
    "chunks-with-extension": _CHUNKED + b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (_SIZE, _TEXT),
    "chunks-cut": _CHUNKED + _CHUNK[:-20],
    "chunks-without-end": _CHUNKED + _CHUNK,
    "chunks-bad-size": _CHUNKED + b"zz\r\n" + _TEXT + b"\r\n0\r\n\r\n",
    "chunks-giant-size": _CHUNKED + b"ffffffffffffffffff\r\n" + _TEXT,
    "status-words": b"HTTP/1.1 fine OK\r\n" + _TYPE + b"\r\n" + _TEXT,
    "status-999": b"HTTP/1.1 999 Denied\r\n" + _TYPE + b"Content-Length: 2\r\n\r\nno",
    "status-no-reason": b"HTTP/1.1 200\r\n"
    + _TYPE
    + b"Content-Length: %d\r\n\r\n%b" % (_SIZE, _TEXT),
    "other-protocol": b"SSH-2.0-OpenSSH_9.0\r\n",
    "garbage": bytes(range(256)) * 4,
    "lf-only": (_OK + b"Content-Length: %d\r\n\r\n" % _SIZE).replace(b"\r\n", b"\n") + _TEXT,
    "nul-in-header": _OK + b"X-Nul: a\0b\r\nContent-Length: %d\r\n\r\n%b" % (_SIZE, _TEXT),
    "space-before-colon": _OK + b"X-Space : 1\r\nContent-Length: %d\r\n\r\n%b" % (_SIZE, _TEXT),
    "folded-header": _OK + b"X-Fold: one\r\n two\r\nContent-Length: %d\r\n\r\n%b" % (_SIZE, _TEXT),
    "no-colon": _OK + b"This is no header\r\nContent-Length: %d\r\n\r\n%b" % (_SIZE, _TEXT),
    "early-hints": b"HTTP/1.1 103 Early Hints\r\nLink: </assets/site.css>; rel=preload\r\n\r\n"
    + _OK
    + b"Content-Length: %d\r\n\r\n%b" % (_SIZE, _TEXT),
    "body-on-204": b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody",
    "head-only": _OK[:30],
}
"""What is written to the socket, byte for byte, by the name under `/hostile/frame/`."""


def pages() -> Iterator[Page]:
    for name, data in ANSWERS.items():
        yield Page(target=BASE + name, perform=_say(data))


def _say(data: bytes) -> Perform:
    async def perform(_request: Request, wire: Wire, _state: State) -> None:
        wire.status(200)
        await wire.write(data)
        wire.close()

    return perform
