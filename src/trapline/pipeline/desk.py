"""Where fetched pages are read: a few in a row, and then the loop turns.

Reading a page takes a millisecond or some of the loop's own thread, and answers come in dozens. All of
them read without a pause keep everything else waiting, above all the transaction that stores the pages
before them: each of its statements then waits for all of them. With a pause after each, what runs in
between drives out of the processor's caches what the next one needs.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from trapline.model import Document, ExtractOptions, Fetched
from trapline.pipeline import documents

STRETCH: Final = 0.01
"""Seconds of reading after which the loop turns."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    fetched: Fetched
    options: ExtractOptions
    document: "asyncio.Future[Document]"


@dataclass(slots=True)
class Desk:
    """Reads pages in the order in which they come."""

    _pile: deque[_Waiting] = field(default_factory=deque)
    _reading: bool = False

    async def read(self, fetched: Fetched, options: ExtractOptions) -> Document:
        """Make a Document of what was fetched."""
        if not documents.is_html(fetched):
            return await documents.read(fetched, options)  # In a thread of its own.
        loop = asyncio.get_running_loop()
        document: asyncio.Future[Document] = loop.create_future()
        self._pile.append(_Waiting(fetched, options, document))
        if not self._reading:
            self._reading = True
            loop.call_soon(self._read_some)
        return await document

    def _read_some(self) -> None:
        until = monotonic() + STRETCH
        while self._pile:
            _read(self._pile.popleft())
            if monotonic() >= until:
                break
        self._reading = bool(self._pile)
        if self._reading:
            # After what is ready by then, on connections above all.
            asyncio.get_running_loop().call_soon(self._read_some)


def _read(waiting: _Waiting) -> None:
    if waiting.document.done():
        return  # Nobody waits any more.
    try:
        document = documents.read_page(waiting.fetched, waiting.options)
    except Exception as error:  # noqa: BLE001 (who waits is told)
        waiting.document.set_exception(error)
    else:
        waiting.document.set_result(document)
