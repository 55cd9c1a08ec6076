"""Documentation in two common shapes."""

import re
from collections.abc import Iterator

from tests.site.compose import compose
from tests.site.content import Source, read
from tests.site.page import Page
from tests.site.sections.listing import Entry, listing

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_SHAPES = ("docs_modern", "docs_classic")


def pages() -> Iterator[Page]:
    chapters = sorted(read("manual"), key=lambda chapter: chapter.order)
    entries = [Entry(f"/manual/{c.slug}.html", c.title, c.summary) for c in chapters]
    yield listing("/manual/", "Manual of the Wren 3", entries, summary="All chapters, in order.")
    for at, chapter in enumerate(chapters):
        yield compose(
            _SHAPES[at % len(_SHAPES)],
            f"/manual/{chapter.slug}.html",
            kind="documentation",
            title=chapter.title,
            summary=chapter.summary,
            slug=chapter.slug,
            text=chapter.prose,
            chapters=chapters,
            headings=_headings(chapter),
            earlier=chapters[at - 1] if at else None,
            later=chapters[at + 1] if at + 1 < len(chapters) else None,
        )


def _headings(chapter: Source) -> list[tuple[str, str]]:
    return [(found.lower().replace(" ", "-"), found) for found in _HEADING.findall(chapter.text)]
