"""Cost of extracting an HTML page: whether it may run on an event loop.

An element costs between 1 and 6 µs of processor time, so a page of few elements has a bound whatever
is in it. A page of many is extracted in the sandbox, unless its site's pages have proved cheap: then
it runs in a thread, where every step releases the interpreter after a short time.
"""

from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

import numpy as np

from trapline.model import ExtractOptions

SMALL_BYTES: Final = 32_768
"""A body of this size is cheap whatever it holds."""
SELECTED_BYTES: Final = 16_384
"""The same for a page with selectors whose cost grows faster than the page."""
INLINE_TAGS: Final = 8_000
INLINE_BYTES: Final = 1_000_000
THREAD_TAGS: Final = 20_000
PROVED_TAGS: Final = 120_000
THREAD_BYTES: Final = 4_000_000
_CHEAP_SECONDS: Final = 4e-6
_PROOF_PAGES: Final = 3
_SITES: Final = 2_000
_TAG: Final = ord("<")


class Place(Enum):
    """Where a page is extracted."""

    LOOP = auto()
    THREAD = auto()
    SANDBOX = auto()


class SiteCosts:
    """Measured cost of the pages of recent sites (LRU): the highest time for an element."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def record(self, site: str, body: bytes, seconds: float) -> None:
        """Count a page that was extracted in so much processor time."""
        pages, highest = self._sites.pop(site, (0, 0.0))
        if len(body) > SMALL_BYTES or not pages:
            highest = max(highest, seconds / max(count_tags(body), 1_000))
        self._sites[site] = (pages + 1, highest)
        if len(self._sites) > _SITES:
            self._sites.popitem(last=False)

    def are_cheap(self, site: str) -> bool:
        pages, highest = self._sites.get(site, (0, 0.0))
        return pages >= _PROOF_PAGES and highest <= _CHEAP_SECONDS


def place_for(body: bytes, options: ExtractOptions, *, cheap_site: bool) -> Place:
    """Where to extract a page."""
    if is_costly((*options.include_tags, *options.exclude_tags)):
        return Place.LOOP if len(body) <= SELECTED_BYTES else Place.SANDBOX
    if len(body) <= SMALL_BYTES:
        return Place.LOOP
    tags = count_tags(body)
    if tags <= INLINE_TAGS and len(body) <= INLINE_BYTES:
        return Place.LOOP
    most = PROVED_TAGS if cheap_site else THREAD_TAGS
    return Place.THREAD if tags <= most and len(body) <= THREAD_BYTES else Place.SANDBOX


def count_tags(body: bytes) -> int:
    """How many tags a body can have: ten times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(body, np.uint8) == _TAG))


def is_costly(selectors: Iterable[str]) -> bool:
    """Whether the cost of some selectors may grow faster than the page: pseudo-classes do."""
    return any(":" in selector for selector in selectors)
