"""What the web does to crawlers, one module a kind of harm. Nothing outside links here."""

from collections.abc import Iterator

from tests.site import files, redirects, statuses, traps
from tests.site.host import Family
from tests.site.hostile import bodies, documents, framing, heads, spellings, timing
from tests.site.page import Page
from tests.site.sheet import sheet

BASE = "/hostile/"


def pages(port: int) -> Iterator[Page]:
    """Yield every hostile page, and the one that links to all of them."""
    made = [
        *redirects.pages(port),
        *statuses.pages(),
        *traps.pages(),
        *files.pages(),
        *timing.pages(),
        *bodies.pages(),
        *framing.pages(),
        *heads.pages(),
        *documents.pages(),
        *spellings.pages(port),
    ]
    yield sheet(BASE, "Hostile", "Enter at your own risk.", [page.target for page in made])
    yield from made


def families() -> list[Family]:
    return [*redirects.families(), *statuses.families(), *traps.families()]
