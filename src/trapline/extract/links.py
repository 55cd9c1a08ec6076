"""The links of a page: where they lead, what they say, where they stand, whether they show."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import turbohtml

from trapline.extract.hidden import hidden_elements
from trapline.extract.regions import regions
from trapline.extract.resolve import Resolver
from trapline.model import Link, Region

MAX_LINKS = 50_000
_MAX_TEXT = 500
# Anchors can be nested by markup that is broken on purpose; the text of all of them together
# would then grow with the square of the page.
_TEXT_BUDGET = 4_000_000


@dataclass(frozen=True, slots=True)
class Links:
    """`on_page`: http(s) links, each URL once, in the order of the page. `other`: mailto: etc."""

    on_page: tuple[Link, ...] = ()
    other: tuple[str, ...] = ()


def read_links(tree: turbohtml.Document, resolver: Resolver) -> Links:
    """Read every link of a page once."""
    anchors = tree.find_all(["a", "area"])[:MAX_LINKS]
    placed, hidden = (regions(tree), hidden_elements(tree)) if anchors else ({}, set())
    found: dict[str, Link] = {}
    other: dict[str, None] = {}
    budget = _TEXT_BUDGET
    for anchor in anchors:
        href = anchor.attr("href")
        if not href:
            continue
        url = resolver.absolute(href)
        if url is None:
            _keep_other(other, href)
            continue
        known = found.get(url)
        if known and known.text and not known.hidden:
            continue
        text = _text_of(anchor) if budget > 0 else ""
        budget -= len(text) + 1
        rel = anchor.attr("rel")
        link = Link(
            url,
            text[:_MAX_TEXT],
            tuple(rel.lower().split()) if rel else (),
            placed.get(anchor, Region.BODY),
            anchor in hidden,
        )
        found[url] = _better(known, link) if known else link
    return Links(tuple(found.values()), tuple(other))


def children_of(links: Iterable[Link], page: str) -> tuple[str, ...]:
    """The links that lead below a page: same origin, and a path under the page's own."""
    stem = page.partition("#")[0].partition("?")[0].rstrip("/") + "/"
    return tuple(
        link.url for link in links if len(link.url) > len(stem) and link.url.startswith(stem)
    )


def _better(known: Link, other: Link) -> Link:
    """One of two links to the same URL: the shown one, with a text if either has one."""
    chosen = other if known.hidden and not other.hidden else known
    return chosen if chosen.text else replace(chosen, text=known.text or other.text)


def _keep_other(other: dict[str, None], href: str) -> None:
    href = href.strip()
    scheme, colon, _ = href.partition(":")
    if colon and scheme.lower() in ("mailto", "tel", "sms", "ftp", "magnet"):
        other[href] = None


def _text_of(anchor: turbohtml.Element) -> str:
    if words := anchor.text.split():
        return " ".join(words)
    image = anchor.find("img", alt=True)
    label = anchor.attr("aria-label") or (image and image.attr("alt")) or anchor.attr("title") or ""
    return " ".join(label.split())
