"""Links of a page: target, text, region, and whether they are visible."""

from bisect import bisect_left
from functools import partial
from operator import methodcaller
from typing import Final

import numpy as np
import turbohtml
from msgspec import Struct
from msgspec.structs import replace

from trapline import native
from trapline.extract.html import attribute_scan
from trapline.extract.html.hidden import hidden_roots
from trapline.extract.html.outline import Ints, Outline, find_rows, read_outline
from trapline.extract.html.regions import landmarks
from trapline.extract.html.url_resolution import References, Resolver
from trapline.model import Link, Region

MAX_LINKS = 50_000
_MAX_TEXT = 500
# Anchors can be nested by markup that is broken on purpose; the text of all of them together
# would then grow with the square of the page.
_TEXT_BUDGET = 4_000_000
NO_ROWS: Final[Ints] = np.zeros(0, np.intp)


class Links(Struct, frozen=True):
    """`on_page`: http(s) links, each URL once, in the order of the page. `other`: mailto: etc."""

    on_page: tuple[Link, ...] = ()
    other: tuple[str, ...] = ()


class Anchors(Struct, frozen=True):
    """Where the anchors of a page are, and what they stand in; all rows ascend."""

    outline: Outline
    rows: Ints
    placed: list[tuple[int, Region]]
    """The landmarks."""
    hidden: Ints


def read_links(
    tree: turbohtml.Document,
    resolver: Resolver,
    outline: Outline | None = None,
    attribute_flags: int = attribute_scan.EVERYTHING,
) -> Links:
    """Read every link of a page once.

    `outline` is the tree's, if it is already read; `attribute_flags` what the page's source can hold.
    """
    outline = outline or read_outline(tree)
    rows = _rows_of_links(outline)
    placed = landmarks(tree, outline, attribute_flags) if len(rows) else []
    hidden = _hidden(tree, outline, attribute_flags) if len(rows) else NO_ROWS
    other: dict[str, None] = {}
    links = read_anchors(Anchors(outline, rows, placed, hidden), resolver.references, other)
    return Links(tuple(links.values()), tuple(other))


def _rows_of_links(outline: Outline) -> Ints:
    rows = outline.rows_of("a")
    if outline.may_have("area"):
        rows = np.sort(np.concatenate((rows, outline.rows_of("area"))))
    rows = rows[:MAX_LINKS]
    if not outline.may_have("template"):
        return rows
    # What stands in a template is not on the page until a script puts it there.
    shown: Ints = rows[outline.enclosing(outline.rows_of("template"), rows) == 0]
    return shown


def read_anchors(
    anchors: Anchors, references: References, other: dict[str, None]
) -> dict[str, Link]:
    """The links by their URLs; what leads elsewhere than to pages is put into `other`."""
    rows = anchors.rows.tolist()
    elements: list[turbohtml.Element] = list(map(anchors.outline.nodes.__getitem__, rows))
    regions = _regions(anchors.outline, rows, anchors.placed)
    hidden = (anchors.outline.enclosing(anchors.hidden, anchors.rows) > 0).tolist()
    found: dict[str, Link] = {}
    budget = _TEXT_BUDGET
    hrefs = map(methodcaller("attr", "href"), elements)
    for anchor, href, region, unseen in zip(elements, hrefs, regions, hidden, strict=True):
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


def _hidden(tree: turbohtml.Document, outline: Outline, attribute_flags: int) -> Ints:
    may_hide = (
        attribute_flags & attribute_scan.HIDDEN
        or outline.may_have("template")
        or outline.may_have("style")
    )
    roots = hidden_roots(tree, attribute_flags) if may_hide else []
    return np.array(find_rows(outline.nodes, roots), dtype=np.intp) if roots else NO_ROWS


def _regions(outline: Outline, rows: list[int], placed: list[tuple[int, Region]]) -> list[Region]:
    regions = [Region.BODY] * len(rows)
    covered = -1
    for row, region in placed:
        if row <= covered:
            continue
        covered = outline.end_of(row)
        first, past = bisect_left(rows, row), bisect_left(rows, covered + 1)
        regions[first:past] = [region] * (past - first)
    return regions


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


def _compiled_anchors(
    anchors: Anchors, references: References, other: dict[str, None]
) -> dict[str, Link]:
    regions = (anchors.placed, Region.BODY, anchors.hidden)
    functions = (Link, _label_of, _better, _rels_of, partial(_keep_other, other))
    return native.library.links(
        anchors.outline.nodes, anchors.outline.last, anchors.rows, regions, references, functions,
        _MAX_TEXT, _TEXT_BUDGET,
    )  # fmt: skip


if native.available:
    read_anchors = _compiled_anchors
