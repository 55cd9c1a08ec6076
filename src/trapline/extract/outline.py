"""A parsed page as flat arrays: one row per node, in document order.

With preorder numbering a subtree is an interval, so sums over subtrees are differences of one
cumulative sum, and what a node inherits from its ancestors is a cumulative sum of differences.
That keeps everything downstream free of per-node Python.
"""

import re
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
MAX_NODES: Final = 200_000

OTHER_NODE: Final = 0
TEXT_NODE: Final = 1
OTHER_TAG: Final = 2

_TAGS: Final = re.findall(
    r"\w+",
    "html head body title meta link script style template noscript iframe noframes noembed object "
    "svg math canvas audio video source picture img map area frameset frame "
    "div p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead tbody tfoot tr td th "
    "article section main nav aside header footer address figure figcaption blockquote pre hr br "
    "form fieldset legend label input textarea select option optgroup button output progress "
    "details summary dialog menu center "
    "a span b strong i em u s small big sub sup code kbd samp var mark q cite abbr time font del "
    "ins wbr path g use rect circle polygon symbol defs line",
)
TAG: Final = {tag: OTHER_TAG + 1 + number for number, tag in enumerate(_TAGS)}
TAGS: Final = ("", "", "", *_TAGS)
_CODES: Final[dict[object, int]] = {
    turbohtml.Text: TEXT_NODE,
    turbohtml.CData: TEXT_NODE,
    turbohtml.Document: OTHER_NODE,
    turbohtml.DocumentFragment: OTHER_NODE,
    turbohtml.ShadowRoot: OTHER_NODE,
    turbohtml.Comment: OTHER_NODE,
    turbohtml.Doctype: OTHER_NODE,
    turbohtml.ProcessingInstruction: OTHER_NODE,
}
_CODES.update(TAG)


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
    by_code: Ints
    """All rows, in order of their code."""
    code_starts: list[int]
    """Where in `by_code` the rows of each code start."""
    rows: dict[Any, int]
    """Row of every node."""
    cut: bool

    def rows_of(self, tag: str) -> Ints:
        """The rows of one tag's elements."""
        code = TAG[tag]
        return self.by_code[self.code_starts[code] : self.code_starts[code + 1]]

    def enclosing(self, elements: Ints, rows: Ints) -> Ints:
        """How many of `elements` (ascending rows) each of `rows` is or stands in."""
        if not len(elements):
            return np.zeros(len(rows), dtype=np.intp)
        if len(elements) == 1:
            only = elements[0]
            inside: Ints = ((rows >= only) & (rows <= self.last[only])).astype(np.intp)
            return inside
        ended = np.searchsorted(np.sort(self.last[elements]), rows, "left")
        return np.searchsorted(elements, rows, "right") - ended

    def inherited(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """For each node the sum of `values` over itself and its ancestors."""
        size = len(self.code)
        closing = np.bincount(self.last + 1, weights=values, minlength=size + 1)[:size]
        return np.cumsum(values - closing)

    def found(self, elements: Iterable[Any]) -> Ints:
        """The rows of some elements of the tree, ascending."""
        rows = self.rows
        return np.array(sorted({rows[e] for e in elements if e in rows}), dtype=np.intp)

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
    # An element gives its tag, any other node its type.
    kinds = map(getattr, nodes, repeat("tag"), map(type, nodes))
    code = np.fromiter(map(_CODES.get, kinds, repeat(OTHER_TAG)), np.intp, size)
    rows = dict(zip(nodes, range(size), strict=True))
    rows[None] = 0
    parents = map(attrgetter("parent"), nodes)
    parent = np.fromiter(map(rows.__getitem__, parents), np.intp, size)
    by_code = np.argsort(code, kind="stable")
    last = _last_descendants(parent)
    cut = size > MAX_NODES
    code_starts = np.searchsorted(code[by_code], np.arange(len(TAGS) + 1)).tolist()
    return Outline(nodes, code, parent, last, by_code, code_starts, rows, cut)


def _last_descendants(parent: Ints) -> Ints:
    last = np.arange(len(parent))
    # Rows ascend, so the last write to a parent is its last child.
    last[parent[1:]] = last[1:]
    return _settle(last)


def _settle(pointers: Ints) -> Ints:
    """Follow pointers to where they end, in as many steps as the depth has binary digits."""
    while True:
        further: Ints = pointers[pointers]
        if np.array_equal(further, pointers):
            return further
        pointers = further
