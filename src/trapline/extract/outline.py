"""A parsed page as flat arrays: one row per node, in document order.

With preorder numbering a subtree is an interval, so sums over subtrees are differences of one
cumulative sum, and what a node inherits from its ancestors is a cumulative sum of differences.
That keeps everything downstream free of per-node Python.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import turbohtml

Ints: TypeAlias = npt.NDArray[np.intp]
Floats: TypeAlias = npt.NDArray[np.float32]
Flags: TypeAlias = npt.NDArray[np.bool_]

# A page of 50 MB holds millions of nodes; what follows the first of these is not looked at.
MAX_NODES: Final = 400_000

OTHER_NODE: Final = 0
TEXT_NODE: Final = 1
OTHER_TAG: Final = 2

_TAGS: Final = (
    "html head body title meta link script style template noscript iframe noframes noembed object "
    "svg math canvas audio video source picture img map area frameset frame "
    "div p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead tbody tfoot tr td th "
    "article section main nav aside header footer address figure figcaption blockquote pre hr br "
    "form fieldset legend label input textarea select option optgroup button output progress "
    "details summary dialog menu center "
    "a span b strong i em u s small big sub sup code kbd samp var mark q cite abbr time font del "
    "ins wbr"
).split()
TAG: Final = {tag: OTHER_TAG + 1 + number for number, tag in enumerate(_TAGS)}
TAGS: Final = ("", "", "", *_TAGS)
_CODES: Final[dict[object, int]] = {turbohtml.Text: TEXT_NODE, turbohtml.Element: OTHER_TAG, **TAG}


def tag_set(names: str) -> Flags:
    """A table that says of every code whether it is one of the tags named."""
    table = np.zeros(len(TAGS), dtype=np.bool_)
    table[[TAG[name] for name in names.split()]] = True
    return table


@dataclass(frozen=True, slots=True)
class Outline:
    """Row 0 is the document; `last` is the row of a node's last descendant (itself for a leaf)."""

    nodes: list[Any]
    code: Ints
    parent: Ints
    last: Ints
    rows: dict[Any, int]
    """Row of every node."""
    cut: bool

    def inherited(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """For each node the sum of `values` over itself and its ancestors."""
        size = len(self.code)
        closing = np.bincount(self.last + 1, weights=values, minlength=size + 1)[:size]
        return np.cumsum(values - closing)

    def flagged(self, elements: Iterable[Any]) -> Flags:
        """Marks the rows of some elements of the tree."""
        flags = np.zeros(len(self.code), dtype=np.bool_)
        flags[[self.rows.get(element, 0) for element in elements]] = True
        return flags

    def within(self, flags: Flags) -> Flags:
        """For each node whether it or an ancestor is flagged."""
        return self.inherited(flags) > 0.5  # noqa: PLR2004  (a count, summed as floats)

    def nearest(self, flags: Flags) -> Ints:
        """For each node the closest flagged node among itself and its ancestors; the root if none."""
        found = np.where(flags, np.arange(len(flags)), self.parent)
        return _settle(found)

    def highest(self, values: Floats) -> Floats:
        """For each node the maximum of `values` over itself and its ancestors."""
        above = self.parent
        while True:
            higher = np.maximum(values, values[above])
            beyond = above[above]
            if np.array_equal(beyond, above):
                return higher
            values, above = higher, beyond


def read_outline(tree: turbohtml.Document) -> Outline:
    nodes: list[Any] = [tree, *islice(tree.descendants, MAX_NODES)]
    size = len(nodes)
    tags = map(getattr, nodes, repeat("tag"), map(type, nodes))
    kinds = list(tags)
    code = np.fromiter(map(_CODES.get, kinds, repeat(OTHER_NODE)), np.intp, size)
    # A tag that is not listed is still an element.
    unknown = np.flatnonzero(code == OTHER_NODE)
    for row in unknown.tolist():
        if isinstance(kinds[row], str):
            code[row] = OTHER_TAG
    rows = dict(zip(nodes, range(size), strict=True))
    rows[None] = 0
    parents = map(attrgetter("parent"), nodes)
    parent = np.fromiter(map(rows.__getitem__, parents), np.intp, size)
    return Outline(nodes, code, parent, _last_descendants(parent), rows, cut=size > MAX_NODES)


def _last_descendants(parent: Ints) -> Ints:
    last = np.arange(len(parent))
    # Rows ascend, so the last write to a parent is its last child.
    last[parent[1:]] = last[1:]
    return _settle(last)


def _settle(pointers: Ints) -> Ints:
    """Follow pointers to where they end, in as many steps as the depth has binary digits."""
    while True:
        further = pointers[pointers]
        if np.array_equal(further, pointers):
            return pointers
        pointers = further
