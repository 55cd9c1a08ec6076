"""Pages about what a crawler should leave alone: hidden links, nofollow, noindex, closed rooms."""

from collections.abc import Iterator

from tests.site.compose import compose
from tests.site.message import Headers
from tests.site.page import Page
from tests.site.prose import markdown
from tests.site.sheet import sheet

_HIDDEN = ("inline-style", "visibility", "attribute", "stylesheet", "own-style", "ancestor")
_PRIVATE = {"/private/": "Staff only", "/private/ledger/": "Ledger", "/private/rota/": "Rota"}


def pages() -> Iterator[Page]:
    plain = [
        ("/notes/not-for-search/", "A note that asks not to be indexed"),
        ("/notes/by-header/", "A note whose header asks the same"),
        ("/notes/other-bots/", "A note that asks this only of others"),
        ("/notes/dead-end/", "A note whose links are not to be followed"),
        ("/notes/draft.bak", "A forgotten backup"),
        ("/manual/install.html#requirements", "A part of a page"),
    ]
    yield compose("notes", "/notes/", kind="listing", title="Loose notes", plain=plain)
    for name in _HIDDEN:
        yield sheet(f"/notes/hidden/{name}/", "Honeypot", "Only a machine comes here.")
    yield sheet("/notes/sponsored/", "Socks", "They forgive.")
    yield sheet("/notes/user-made/", "A reader's link", "Said by a reader, not by us.")
    yield from _directives()
    yield from _closed()
    yield from _planner()
    yield from _orphans()


def _directives() -> Iterator[Page]:
    """Yield the same wish in a meta tag and in a header, for all robots and for one."""
    yield _note("not-for-search", "Please do not index this.", noindex=True)
    by_header = _note("by-header", "The header says it.", headers=(("X-Robots-Tag", "noindex"),))
    by_header.noindex = True
    yield by_header
    others: Headers = (("X-Robots-Tag", "greedybot: noindex, nofollow"),)
    yield _note("other-bots", "Only one robot is meant.", headers=others)
    yield _note("dead-end", "Do not [go on](/notes/behind-the-dead-end/).", nofollow=True)
    yield sheet("/notes/behind-the-dead-end/", "Behind the dead end")
    yield sheet("/notes/draft.bak", "Draft", "An editor left this behind.")


def _note(
    slug: str,
    text: str,
    headers: Headers = (),
    *,
    noindex: bool = False,
    nofollow: bool = False,
) -> Page:
    page = compose(
        "plain",
        f"/notes/{slug}/",
        kind="article",
        title=slug.replace("-", " ").capitalize(),
        text=markdown(text),
        groups=(),
        listed=False,
        noindex=noindex,
        nofollow=nofollow,
    )
    page.headers = headers
    return page


def _closed() -> Iterator[Page]:
    for target, title in _PRIVATE.items():
        yield sheet(target, title, "Not for robots.", [t for t in _PRIVATE if t != target])
    text = markdown("Pictures and a short history, for newspapers. Robots may read this one.")
    yield compose(
        "plain", "/private/press-kit/", kind="article", title="Press kit", text=text, groups=()
    )


def _planner() -> Iterator[Page]:
    """Yield a page that is empty without JavaScript, and what only a browser finds from there."""
    routes = [[f"/planner/route/{number}/", f"Route {number}"] for number in (1, 2, 3)]
    yield compose(
        "planner",
        "/planner/",
        kind="service",
        title="Route planner",
        routes=routes,
        scripted=tuple(href for href, _ in routes),
    )
    for href, title in routes:
        yield sheet(href, title, "Three huts, two passes.")


def _orphans() -> Iterator[Page]:
    """Yield pages that no page links to: only the sitemap knows them."""
    for name in ("first", "second", "third"):
        text = f"The {name} page that nobody links to."
        yield sheet(f"/attic/{name}/", f"Attic, {name}", text, listed=True, kind="orphan")
