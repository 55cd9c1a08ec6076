"""Pages that list others: archives, tags, catalogues, directories."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.site.compose import compose
from tests.site.page import Page


@dataclass(frozen=True, slots=True)
class Entry:
    href: str
    title: str
    summary: str
    note: str = ""


def listing(target: str, title: str, entries: Sequence[Entry], **options: Any) -> Page:
    """Return one page that lists all entries."""
    options = {"kind": "listing", "pager": ()} | options
    return compose("listing", target, title=title, entries=entries, **options)


def paginated(
    target: str, title: str, entries: Sequence[Entry], size: int, **options: Any
) -> Iterator[Page]:
    """Yield pages of `size` entries; the second is at `TARGETpage/2/`."""
    starts = range(0, len(entries), size)
    targets = [target if at == 0 else f"{target}page/{at // size + 1}/" for at in starts]
    pager = [(href, str(number)) for number, href in enumerate(targets, 1)]
    for number, (at, href) in enumerate(zip(starts, targets, strict=True), 1):
        name = title if number == 1 else f"{title}, page {number}"
        yield listing(href, name, entries[at : at + size], pager=pager, **options)
