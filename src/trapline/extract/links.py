"""The links of a page: where they lead, what they say, where they stand, whether they show."""

from bisect import bisect_left
from collections.abc import Iterable
from functools import partial
from itertools import compress
from operator import methodcaller

import numpy as np
import turbohtml
from msgspec import Struct
from msgspec.structs import replace

from trapline.extract import compiled, marks
from trapline.extract.hidden import hidden_roots
from trapline.extract.outline import Outline, read_outline
from trapline.extract.regions import landmarks
from trapline.extract.resolve import References, Resolver
from trapline.model import Link, Region

MAX_LINKS = 50_000
_MAX_TEXT = 500
# Anchors can be nested by markup that is broken on purpose; the text of all of them together
# would then grow with the square of the page.
_TEXT_BUDGET = 4_000_000


class Links(Struct, frozen=True):
    """`on_page`: http(s) links, each URL once, in the order of the page. `other`: mailto: etc."""

    on_page: tuple[Link, ...] = ()
    other: tuple[str, ...] = ()


def read_links(
    tree: turbohtml.Document,
    resolver: Resolver,
    outline: Outline | None = None,
    marked: int = marks.EVERYTHING,
) -> Links:
    """Read every link of a page once.

    `outline` is the tree's, if it is already read; `marked` what the page's source can hold.
    """
    outline = outline or read_outline(tree)
    rows = _rows_of_links(outline)
    anchors = list(map(outline.nodes.__getitem__, rows))
    hidden = _hidden(tree, outline, rows, marked)
    placed = _placed(tree, outline, rows, marked)
    other: dict[str, None] = {}
    read = read_anchors_compiled if compiled.AVAILABLE else read_anchors
    found = read(anchors, placed, hidden, resolver.references, other)
    return Links(tuple(found.values()), tuple(other))


def _rows_of_links(outline: Outline) -> list[int]:
    rows = outline.places("a")
    if outline.may_have("area"):
        rows = sorted(rows + outline.places("area"))
    del rows[MAX_LINKS:]
    if not outline.may_have("template"):
        return rows
    # What stands in a template is not on the page until a script puts it there.
    inside = outline.enclosing(outline.rows_of("template"), np.array(rows, dtype=np.intp))
    return list(compress(rows, (inside == 0).tolist()))


def read_anchors_compiled(
    anchors: list[turbohtml.Element],
    placed: list[Region],
    hidden: list[bool],
    references: References,
    other: dict[str, None],
) -> dict[str, Link]:
    """What `read_anchors` gives."""
    parts = (Link, _label_of, _better, _rels_of, partial(_keep_other, other))
    return compiled.read_anchors(
        anchors, placed, hidden, references, parts, _MAX_TEXT, _TEXT_BUDGET
    )


def read_anchors(
    anchors: list[turbohtml.Element],
    placed: list[Region],
    hidden: list[bool],
    references: References,
    other: dict[str, None],
) -> dict[str, Link]:
    """The links by their URLs; what leads elsewhere than to pages is put into `other`."""
    found: dict[str, Link] = {}
    budget = _TEXT_BUDGET
    hrefs = map(methodcaller("attr", "href"), anchors)
    for anchor, href, region, unseen in zip(anchors, hrefs, placed, hidden, strict=True):
        if not href or href[0] == "#":
            continue
        url = references.absolute(href)
        if url is None:
            _keep_other(other, href)
            continue
        known = found.get(url)
        if known and known.text and not known.hidden:
            continue
        text = (" ".join(anchor.text.split()) or _label_of(anchor)) if budget > 0 else ""
        budget -= len(text) + 1
        rel = anchor.attr("rel")
        link = Link(url, text[:_MAX_TEXT], _rels_of(rel) if rel else (), region, unseen)
        found[url] = _better(known, link) if known else link
    return found


def _rels_of(rel: str) -> tuple[str, ...]:
    return tuple(rel.lower().split())


def _hidden(tree: turbohtml.Document, outline: Outline, rows: list[int], marked: int) -> list[bool]:
    may_hide = marked & marks.HIDDEN or outline.may_have("template") or outline.may_have("style")
    roots = hidden_roots(tree, marked) if may_hide and rows else []
    if not roots:
        return [False] * len(rows)
    hiding = np.array(outline.found(roots), dtype=np.intp)
    found: list[bool] = (outline.enclosing(hiding, np.array(rows)) > 0).tolist()
    return found


def _placed(
    tree: turbohtml.Document, outline: Outline, rows: list[int], marked: int
) -> list[Region]:
    regions = [Region.BODY] * len(rows)
    covered = -1
    for row, region in landmarks(tree, outline, marked) if regions else ():
        if row <= covered:
            continue
        covered = outline.end_of(row)
        first, past = bisect_left(rows, row), bisect_left(rows, covered + 1)
        regions[first:past] = [region] * (past - first)
    return regions


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


def _label_of(anchor: turbohtml.Element) -> str:
    """What stands for the text of a link without one."""
    image = anchor.find("img", alt=True)
    label = anchor.attr("aria-label") or (image and image.attr("alt")) or anchor.attr("title") or ""
    return " ".join(label.split())
