"""Where fetched pages are read: one at a time, and between two of them the loop turns.

Reading a page takes some milliseconds of the loop's own thread, and answers come in dozens. Read one
after the other without a pause they keep everything else waiting, above all the transaction that stores
the pages before them: each of its statements then waits for all of them.
"""

import asyncio
from dataclasses import dataclass, field

from trapline.model import Document, ExtractOptions, Fetched
from trapline.pipeline import documents


@dataclass(slots=True)
class Desk:
    """Reads pages in the order in which they come."""

    _free: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, fetched: Fetched, options: ExtractOptions) -> Document:
        """Make a Document of what was fetched."""
        if not documents.is_html(fetched):
            return await documents.read(fetched, options)  # In a thread of its own.
        async with self._free:
            document = await documents.read(fetched, options)
            # Who comes meanwhile has to queue, so that what is ready on connections comes first.
            await asyncio.sleep(0)
            return document
