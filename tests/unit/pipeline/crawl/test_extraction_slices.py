"""Pages are extracted a few in a row, and then the loop runs its other tasks."""

import asyncio
from itertools import pairwise

import pytest

from trapline.errors import ExitCode
from trapline.model import Document, ExtractOptions, Fetched
from trapline.pipeline import document_formats
from trapline.pipeline.crawl import extraction_slices
from trapline.pipeline.crawl.extraction_slices import SlicedExtractor

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


async def _extract(extractor: SlicedExtractor, number: int, log: list[str]) -> None:
    document = await extractor.extract(_page(number), _OPTIONS)
    log.append(document.metadata.title or "")


async def _tick(log: list[str]) -> None:
    while True:
        log.append("tick")
        await asyncio.sleep(0)


async def _log_of_five() -> list[str]:
    extractor, log = SlicedExtractor(), list[str]()
    ticking = asyncio.create_task(_tick(log))
    await asyncio.gather(*(_extract(extractor, number, log) for number in range(5)))
    ticking.cancel()
    return log


async def test_others_have_their_turn_after_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction_slices, "SLICE_SECONDS", 0.0)  # Each page takes longer.
    log = await _log_of_five()
    pages = [index for index, entry in enumerate(log) if entry != "tick"]
    assert [log[index] for index in pages] == [f"Page {number}" for number in range(5)]
    assert all(after - before > 1 for before, after in pairwise(pages)), log


async def test_within_a_slice_pages_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction_slices, "SLICE_SECONDS", 100.0)
    log = await _log_of_five()
    first = log.index("Page 0")
    assert log[first : first + 5] == [f"Page {number}" for number in range(5)]


async def test_a_cancelled_caller_does_not_delay_the_others() -> None:
    extractor, log = SlicedExtractor(), list[str]()
    readers = [asyncio.create_task(_extract(extractor, number, log)) for number in range(3)]
    await asyncio.sleep(0)
    readers[1].cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert log == ["Page 0", "Page 2"]


async def test_an_error_is_raised_to_the_caller_of_that_page_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extract_inline = document_formats.extract_inline

    def extract_all_but_one(fetched: Fetched, options: ExtractOptions) -> Document:
        if fetched.url.endswith("/1"):
            raise MemoryError("too large")
        return extract_inline(fetched, options)

    monkeypatch.setattr(document_formats, "extract_inline", extract_all_but_one)
    extractor = SlicedExtractor()
    found = await asyncio.gather(
        *(extractor.extract(_page(number), _OPTIONS) for number in range(3)), return_exceptions=True
    )
    assert [type(each) for each in found] == [Document, MemoryError, Document]
