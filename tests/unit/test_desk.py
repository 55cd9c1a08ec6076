"""Pages are read one at a time, and the loop sees to its other work between two of them."""

import asyncio
from itertools import pairwise

from trapline.errors import ExitCode
from trapline.model import ExtractOptions, Fetched
from trapline.pipeline.desk import Desk

_OPTIONS = ExtractOptions()


def _page(number: int) -> Fetched:
    body = f"<title>Page {number}</title><p>What page {number} has to say.".encode()
    return Fetched(
        exit_code=ExitCode.CONTENT,
        message="",
        url=f"https://example.com/{number}",
        status=200,
        body=body,
        content_type="text/html",
        media_type="text/html",
    )


async def _read(desk: Desk, number: int, log: list[str]) -> None:
    document = await desk.read(_page(number), _OPTIONS)
    log.append(document.metadata.title or "")


async def _tick(log: list[str]) -> None:
    while True:
        log.append("tick")
        await asyncio.sleep(0)


async def test_others_have_their_turn_between_two_pages() -> None:
    desk, log = Desk(), list[str]()
    ticking = asyncio.create_task(_tick(log))
    await asyncio.gather(*(_read(desk, number, log) for number in range(5)))
    ticking.cancel()
    pages = [place for place, entry in enumerate(log) if entry != "tick"]
    assert [log[place] for place in pages] == [f"Page {number}" for number in range(5)]
    assert all(after - before > 1 for before, after in pairwise(pages)), log


async def test_who_gives_up_waiting_keeps_nobody_else_waiting() -> None:
    desk, log = Desk(), list[str]()
    readers = [asyncio.create_task(_read(desk, number, log)) for number in range(3)]
    await asyncio.sleep(0)
    readers[1].cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert log == ["Page 0", "Page 2"]
