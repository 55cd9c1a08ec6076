"""Pages are read a few in a row, and then the loop sees to its other work."""

import asyncio
from itertools import pairwise

import pytest

from trapline.errors import ExitCode
from trapline.model import Document, ExtractOptions, Fetched
from trapline.pipeline import desk, documents
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


async def _read(table: Desk, number: int, log: list[str]) -> None:
    document = await table.read(_page(number), _OPTIONS)
    log.append(document.metadata.title or "")


async def _tick(log: list[str]) -> None:
    while True:
        log.append("tick")
        await asyncio.sleep(0)


async def _log_of_five() -> list[str]:
    table, log = Desk(), list[str]()
    ticking = asyncio.create_task(_tick(log))
    await asyncio.gather(*(_read(table, number, log) for number in range(5)))
    ticking.cancel()
    return log


async def test_others_have_their_turn_after_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "STRETCH", 0.0)  # Each page takes longer.
    log = await _log_of_five()
    pages = [place for place, entry in enumerate(log) if entry != "tick"]
    assert [log[place] for place in pages] == [f"Page {number}" for number in range(5)]
    assert all(after - before > 1 for before, after in pairwise(pages)), log


async def test_within_a_stretch_pages_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "STRETCH", 100.0)
    log = await _log_of_five()
    first = log.index("Page 0")
    assert log[first : first + 5] == [f"Page {number}" for number in range(5)]


async def test_who_gives_up_waiting_keeps_nobody_else_waiting() -> None:
    table, log = Desk(), list[str]()
    readers = [asyncio.create_task(_read(table, number, log)) for number in range(3)]
    await asyncio.sleep(0)
    readers[1].cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert log == ["Page 0", "Page 2"]


async def test_a_page_that_cannot_be_read_is_told_to_who_waits_for_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_page = documents.read_page

    def reads_all_but_one(fetched: Fetched, options: ExtractOptions) -> Document:
        if fetched.url.endswith("/1"):
            raise MemoryError("too large")
        return read_page(fetched, options)

    monkeypatch.setattr(documents, "read_page", reads_all_but_one)
    table = Desk()
    found = await asyncio.gather(
        *(table.read(_page(number), _OPTIONS) for number in range(3)), return_exceptions=True
    )
    assert [type(each) for each in found] == [Document, MemoryError, Document]
