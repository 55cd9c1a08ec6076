"""Servers that are slow, or silent, or hang up. Seconds can be set in the query."""

import asyncio
from collections.abc import Iterator

from tests.site.message import Request, Response
from tests.site.page import Page, Perform
from tests.site.sheet import markup
from tests.site.state import State
from tests.site.wire import Wire

BASE = "/hostile/time/"
_LONG = 3600.0
_TEXT = markup("Slow", "It came in the end. " * 50).encode()


def pages() -> Iterator[Page]:
    performances: dict[str, Perform] = {
        "slow-first-byte": _slow_first_byte,
        "slow-body": _slow_body,
        "slow-head": _slow_head,
        "hang": _hang,
        "hang-after-head": _hang_after_head,
        "hang-in-body": _hang_in_body,
        "close": _close,
        "close-after-head": _close_after_head,
        "reset": _reset,
        "reset-in-body": _reset_in_body,
        "close-once": _close_once,
    }
    for name, perform in performances.items():
        yield Page(target=BASE + name, perform=perform)


async def _slow_first_byte(request: Request, wire: Wire, _state: State) -> None:
    await asyncio.sleep(request.number("seconds", 2.0))
    await wire.send(Response(body=_TEXT))


async def _slow_body(request: Request, wire: Wire, _state: State) -> None:
    """Send the head at once, and the body in twenty pieces within `seconds`."""
    await wire.head(headers=_length(_TEXT))
    size = -(-len(_TEXT) // 20)
    pieces = (_TEXT[at : at + size] for at in range(0, len(_TEXT), size))
    await wire.drip(pieces, request.number("seconds", 2.0) / 20)


async def _slow_head(request: Request, wire: Wire, _state: State) -> None:
    """Send a header every now and then and never come to the point."""
    await wire.write(b"HTTP/1.1 200 OK\r\n")
    number = 0
    while True:
        await asyncio.sleep(request.number("seconds", 0.5))
        number += 1
        await wire.write(f"X-Patience-{number}: please\r\n".encode())


async def _hang(_request: Request, _wire: Wire, _state: State) -> None:
    await asyncio.sleep(_LONG)


async def _hang_after_head(_request: Request, wire: Wire, _state: State) -> None:
    await wire.head(headers=_length(_TEXT))
    await asyncio.sleep(_LONG)


async def _hang_in_body(_request: Request, wire: Wire, _state: State) -> None:
    await wire.head(headers=_length(_TEXT))
    await wire.write(_TEXT[:100])
    await asyncio.sleep(_LONG)


async def _close(_request: Request, wire: Wire, _state: State) -> None:
    wire.close()


async def _close_after_head(_request: Request, wire: Wire, _state: State) -> None:
    await wire.head(headers=_length(_TEXT))
    wire.close()


async def _reset(_request: Request, wire: Wire, _state: State) -> None:
    wire.reset()


async def _reset_in_body(_request: Request, wire: Wire, _state: State) -> None:
    await wire.head(headers=_length(_TEXT))
    await wire.write(_TEXT[:100])
    # What is still in the socket's buffer is lost with a reset; let the client read it first.
    await asyncio.sleep(0.05)
    wire.reset()


async def _close_once(request: Request, wire: Wire, state: State) -> None:
    """Hang up on the first request, answer the second: an immediate second try succeeds."""
    if state.visit(request.target) == 1:
        wire.close()
    else:
        await wire.send(Response(body=_TEXT))


def _length(body: bytes) -> tuple[tuple[str, str], ...]:
    return (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body))))
