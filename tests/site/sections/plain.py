"""The home page, the pages that every site has, and the page that lists all others."""

from collections.abc import Iterable, Iterator

from tests.site.compose import compose
from tests.site.content import read
from tests.site.page import Page
from tests.site.prose import markdown
from tests.site.sections.journal import articles_by_date


def pages() -> Iterator[Page]:
    newest = articles_by_date()[::-1][:6]
    yield compose("home", "/", kind="collection", title="Hollin & Wren", articles=newest)
    for source in read("plain"):
        yield compose(
            "plain",
            f"/{source.slug}/",
            kind="article",
            title=source.title,
            summary=source.summary,
            text=source.prose,
            groups=(),
        )


def overview(pages: Iterable[Page]) -> Page:
    """Return the page that links to every page of the sitemap, for people."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for page in pages:
        if page.listed and page.kind != "orphan":
            section = page.target.strip("/").partition("/")[0] or "Home"
            groups.setdefault(section.capitalize(), []).append((page.target, page.title))
    return compose(
        "plain",
        "/all-pages/",
        kind="listing",
        title="All pages",
        text=markdown("Everything that is on this site, by section."),
        groups=sorted(groups.items()),
    )
