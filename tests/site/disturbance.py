"""Lays a fault over a page: the page as it answers while something is wrong with it."""

import asyncio
from dataclasses import replace

from tests.site.answers import answer
from tests.site.faults import Fault
from tests.site.message import Request, Response
from tests.site.page import Page
from tests.site.state import State
from tests.site.wire import Wire

_CHUNK = 1024
_LONG = 3600.0


def disturbed(page: Page, fault: Fault) -> Page:
    """Return the page with the fault in front of it."""

    async def perform(request: Request, wire: Wire, state: State) -> None:
        await asyncio.sleep(fault.first_byte)
        if fault.drop is not None:
            await _drop(wire, fault.drop)
        elif fault.status is None and page.perform is not None:
            await page.perform(request, wire, state)
        else:
            await _trickle(wire, _response(page, fault, request, state), request, fault.per_chunk)

    return replace(page, perform=perform)


def _response(page: Page, fault: Fault, request: Request, state: State) -> Response:
    if fault.status is None:
        return answer(page, request, state)
    return Response(fault.status, fault.body, fault.headers)


async def _drop(wire: Wire, how: str) -> None:
    match how:
        case "reset":
            wire.reset()
        case "close":
            wire.close()
        case "hang":
            await asyncio.sleep(_LONG)
        case _:
            raise ValueError(f"a connection is dropped by reset, close or hang, not by {how}")


async def _trickle(wire: Wire, response: Response, request: Request, seconds: float) -> None:
    wire.status(response.status)
    data = response.encode(head_only=request.method == "HEAD")
    if seconds == 0:
        await wire.write(data)
        return
    await wire.drip((data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)), seconds)
