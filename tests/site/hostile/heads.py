"""Headers: too many, too long, for ever; cookies without measure; directives for robots."""

from collections.abc import Iterator

from tests.site.message import Request, Response
from tests.site.page import Page
from tests.site.sheet import markup, sheet
from tests.site.state import State
from tests.site.wire import Wire

BASE = "/hostile/head/"
_BLOCK = 1000
_TEXT = markup("After the headers", "You have read them all.").encode()


def pages() -> Iterator[Page]:
    yield Page(target=f"{BASE}many", perform=_many)
    yield Page(target=f"{BASE}long", perform=_long)
    yield Page(target=f"{BASE}endless", perform=_endless)
    yield Page(target=f"{BASE}cookies", respond=_cookies)
    yield Page(target=f"{BASE}echo", respond=_echo)
    yield sheet(f"{BASE}not-latin", "Bytes in a header", headers=(("X-Name", "caf\xe9\xff"),))
    strict = ("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
    yield sheet(f"{BASE}strict-transport", "Only by TLS from now on", headers=(strict,))


async def _many(request: Request, wire: Wire, _state: State) -> None:
    """Send `n` headers (default a million), then a page."""
    number = int(request.number("n", 1_000_000))
    await wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(_TEXT))
    wire.status(200)
    for at in range(0, number, _BLOCK):
        lines = (f"X-Header-{n}: {n}\r\n" for n in range(at, min(at + _BLOCK, number)))
        await wire.write("".join(lines).encode())
    await wire.write(b"\r\n" + _TEXT)


async def _long(request: Request, wire: Wire, _state: State) -> None:
    """Send one header of `kb` kilobytes (default 1000)."""
    value = "x" * int(request.number("kb", 1000) * 1000)
    await wire.send(Response(body=_TEXT, headers=(("X-Long", value),)))


async def _endless(_request: Request, wire: Wire, _state: State) -> None:
    await wire.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        await wire.write(b"X-More: more\r\n" * _BLOCK)


def _cookies(request: Request, _state: State) -> Response:
    """Set `n` cookies (default 500) of a kilobyte each."""
    number = int(request.number("n", 500))
    cookies = tuple(("Set-Cookie", f"crumb{n}={'c' * 1000}") for n in range(number))
    return Response(body=_TEXT, headers=cookies)


def _echo(request: Request, _state: State) -> Response:
    """Say what the client sent, as a page."""
    lines = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
    return Response(body=markup("What you sent", lines).encode())
