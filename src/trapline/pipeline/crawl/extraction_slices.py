"""Time-sliced extraction: a few pages in a row on the event loop, then the loop runs other tasks.

Extracting a page takes a few milliseconds of the loop's thread, and responses come in dozens.
Without a pause they delay everything else, above all the transaction that stores the pages before
them: each of its statements waits for all of them. With a pause after each page, other tasks evict
the extractor's data from the processor's caches.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from trapline.extract.cost import Place
from trapline.model import Document, ExtractOptions, Fetched
from trapline.pipeline import document_formats

SLICE_SECONDS: Final = 0.01
"""How long to extract before the loop runs other tasks."""


@dataclass(frozen=True, slots=True)
class _Pending:
    fetched: Fetched
    options: ExtractOptions
    document: "asyncio.Future[Document]"


@dataclass(slots=True)
class SlicedExtractor:
    """Extracts pages in the order of their arrival."""

    _queue: deque[_Pending] = field(default_factory=deque)
    _scheduled: bool = False

    async def extract(self, fetched: Fetched, options: ExtractOptions) -> Document:
        """Extract the Document of a fetch."""
        if document_formats.place_of(fetched, options) is not Place.LOOP:
            return await document_formats.extract_document(fetched, options)
        loop = asyncio.get_running_loop()
        document: asyncio.Future[Document] = loop.create_future()
        self._queue.append(_Pending(fetched, options, document))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._extract_slice)
        return await document

    def _extract_slice(self) -> None:
        slice_end = monotonic() + SLICE_SECONDS
        while self._queue:
            _extract(self._queue.popleft())
            if monotonic() >= slice_end:
                break
        self._scheduled = bool(self._queue)
        if self._scheduled:
            # Behind the callbacks that are ready by then, those of connections above all.
            asyncio.get_running_loop().call_soon(self._extract_slice)


def _extract(pending: _Pending) -> None:
    if pending.document.done():
        return  # The caller was cancelled.
    try:
        document = document_formats.extract_inline(pending.fetched, pending.options)
    except Exception as error:  # noqa: BLE001 (raised to the caller)
        pending.document.set_exception(error)
    else:
        pending.document.set_result(document)
