"""A parsed page as flat arrays: one row per node, in document order.

With preorder numbering a subtree is an interval, so sums over subtrees are differences of one
cumulative sum, and what a node inherits from its ancestors is a cumulative sum of differences.
That keeps everything downstream free of per-node Python.
"""

import re
from itertools import islice, repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import turbohtml
from msgspec import Struct
from msgspec.structs import replace

from trapline import native

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
CODES: Final[dict[object, int]] = {
    turbohtml.Text: TEXT_NODE,
    turbohtml.CData: TEXT_NODE,
    turbohtml.Document: OTHER_NODE,
    turbohtml.DocumentFragment: OTHER_NODE,
    turbohtml.ShadowRoot: OTHER_NODE,
    turbohtml.Comment: OTHER_NODE,
    turbohtml.Doctype: OTHER_NODE,
    turbohtml.ProcessingInstruction: OTHER_NODE,
}
CODES.update(TAG)
_ALL_CODES: Final = np.arange(len(TAGS) + 1)


def tag_set(names: str) -> Flags:
    """A table that says of every code whether it is one of the tags named."""
    table = np.zeros(len(TAGS), dtype=np.bool_)
    table[[TAG[name] for name in names.split()]] = True
    return table


class Outline(Struct, frozen=True):
    """Row 0 is the document; `last` is the row of a node's last descendant (itself for a leaf)."""

    nodes: list[Any]
    code: Ints
    parent: Ints
    last: Ints
    by_code: Ints
    """All rows, in order of their code."""
    code_starts: list[int]
    """Where in `by_code` the rows of each code start."""
    doublings: int
    """How often pointers to parents must be doubled to reach the root from everywhere."""
    cut: bool
    blocks: tuple[Any, ...] = ()
    """The fields of `Blocks`, which the compiled reader reads in the same pass. It keeps no text
    nodes: None stands for each in `nodes`."""

    def rows_of(self, tag: str) -> Ints:
        """The rows of one tag's elements."""
        code = TAG[tag]
        return self.by_code[self.code_starts[code] : self.code_starts[code + 1]]

    def row_list(self, tag: str) -> list[int]:
        """As `rows_of`, a list."""
        rows: list[int] = self.rows_of(tag).tolist()
        return rows

    def end_of(self, row: int) -> int:
        """The row of a node's last descendant."""
        return int(self.last[row])

    def may_have(self, tag: str) -> bool:
        """Whether the page has such elements, or was too large to be looked at whole."""
        code = TAG[tag]
        return self.cut or self.code_starts[code] < self.code_starts[code + 1]

    def elements(self, tag: str, body: turbohtml.Element) -> list[turbohtml.Element]:
        """Those of one tag; of a page that was too large to be looked at whole, those of its body."""
        if self.cut:
            return body.find_all(tag)
        return list(map(self.nodes.__getitem__, self.row_list(tag)))

    def without_rows(self, gone: Ints) -> "Outline":
        """Once the nodes of some rows (ascending) have left the tree: an outline of its elements.

        It finds those that are left, and no texts.
        """
        elements = self.by_code[self.code_starts[OTHER_TAG] :]
        left = elements[self.enclosing(gone, elements) == 0]
        starts = self.code.take(left).searchsorted(_ALL_CODES).tolist()
        return replace(self, by_code=left, code_starts=starts)

    def enclosing(self, elements: Ints, rows: Ints) -> Ints:
        """How many of `elements` (ascending rows) each of `rows` is or stands in."""
        if not len(elements):
            return np.zeros(len(rows), dtype=np.intp)
        if len(elements) == 1:
            only = elements[0]
            inside: Ints = ((rows >= only) & (rows <= self.last[only])).astype(np.intp)
            return inside
        ends = self.last.take(elements)
        ends.sort()
        return elements.searchsorted(rows, "right") - ends.searchsorted(rows, "left")

    def ancestor_sum(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """For each node the sum of `values` over itself and its ancestors."""
        size = len(self.code)
        closing = np.bincount(self.last + 1, weights=values, minlength=size + 1)[:size]
        return np.cumsum(values - closing)

    def raw_text(self, start: int, end: int) -> str:
        """The text between two rows with its own white space."""
        parts = []
        for code, node in zip(
            self.code[start : end + 1].tolist(), self.nodes[start : end + 1], strict=True
        ):
            if code == TEXT_NODE:
                parts.append(node.data)
            elif code == TAG["br"]:
                parts.append("\n")
        return "".join(parts)

    def nearest_flagged(self, flags: Flags) -> Ints:
        """For each node the closest flagged node among itself and its ancestors; the root if none."""
        found = np.where(flags, np.arange(len(flags)), self.parent)
        for _ in range(self.doublings):
            found = found.take(found)
        return found

    def ancestor_max(self, values: Floats) -> Floats:
        """For each node the maximum of `values` over itself and its ancestors."""
        above = self.parent
        for _ in range(self.doublings):
            values = np.maximum(values, values.take(above))
            above = above.take(above)
        return values


def find_rows(nodes: list[Any], elements: list[Any], /) -> list[int]:
    """The rows of some elements among the nodes of an outline, ascending."""
    wanted = set(elements)
    return [row for row, node in enumerate(nodes) if node in wanted] if wanted else []


def read_outline(tree: turbohtml.Document) -> Outline:
    nodes: list[Any] = [tree, *islice(tree.descendants, MAX_NODES)]
    size = len(nodes)
    # An element gives its tag, any other node its type.
    kinds = map(getattr, nodes, repeat("tag"), map(type, nodes))
    code = np.fromiter(map(CODES.get, kinds, repeat(OTHER_TAG)), np.intp, size)
    holders = np.flatnonzero(code != TEXT_NODE).tolist()
    rows = dict(zip(map(nodes.__getitem__, holders), holders, strict=True))
    rows[None] = 0
    parents = map(attrgetter("parent"), nodes)
    parent = np.fromiter(map(rows.__getitem__, parents), np.intp, size)
    by_code = np.argsort(code, kind="stable")
    last = _last_descendants(parent)
    cut = size > MAX_NODES
    code_starts = code.take(by_code).searchsorted(_ALL_CODES).tolist()
    doublings = _depth(last).bit_length()
    return Outline(nodes, code, parent, last, by_code, code_starts, doublings, cut)


def _last_descendants(parent: Ints) -> Ints:
    last = np.arange(len(parent))
    # Rows ascend, so the last write to a parent is its last child.
    last[parent[1:]] = last[1:]
    # Follow pointers to where they end, in as many steps as the depth has binary digits.
    while True:
        further: Ints = last.take(last)
        if (further == last).all():
            return further
        last = further


def _depth(last: Ints) -> int:
    """How many nodes the deepest node is in, itself included."""
    size = len(last)
    closed = np.bincount(last, minlength=size).cumsum()
    # A node is in all that were opened up to it but those that were closed before it.
    return int((np.arange(1, size) - closed[:-1]).max(initial=0)) + 1


# Most elements of documentation, and of other pages, are these.
_COMMON_TAGS: Final = ("span", "a", "div", "li", "p", "code", "td", "em")


def compiled_outline(tree: turbohtml.Document) -> Outline:
    nodes, arrays, starts, depth, blocks = native.library.outline(tree, MAX_NODES)
    code, parent, last, by_code = map(ints, arrays)
    cut = len(nodes) > MAX_NODES
    return Outline(nodes, code, parent, last, by_code, starts, depth.bit_length(), cut, blocks)


def ints(data: bytes | bytearray) -> Ints:
    """An array that the compiled code made."""
    return np.frombuffer(data, np.intp)


if native.available:
    native.library.configure(
        {
            "element": turbohtml.Element,
            "text": turbohtml.Text,
            "codes": CODES,
            "tags": len(TAGS),
            "common": _COMMON_TAGS,
        }
    )
    read_outline = compiled_outline
    find_rows = native.library.rows
