"""The compiled reader of pages, where the package was built with one.

It does what `outline`, `blocks`, `features`, `vocabulary` and the groups of `scorer` do, several
times as fast: loops over nodes and blocks in C (`native/`) instead of one numpy call after another.
The Python modules say what is meant, are what a machine without a compiler runs, and are what the
model is trained with. Tests hold the two together.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import turbohtml
from msgspec.structs import astuple, replace

from trapline.extract import blocks, pruning, selection, vocabulary
from trapline.extract import features as columns
from trapline.extract.blocks import Blocks
from trapline.extract.hints import Said
from trapline.extract.outline import CODES, MAX_NODES, TAG, TAGS, Flags, Floats, Outline
from trapline.extract.reading import Features
from trapline.extract.selection import Choice

try:
    from trapline.extract import _native
except ImportError:
    _native = None  # type: ignore[assignment]

_GROUPS: Final = 6

# What most elements are, of documentation and of other pages.
_COMMON_TAGS: Final = ("span", "a", "div", "li", "p", "code", "td", "em")

AVAILABLE: Final = _native is not None


def _codes(tags: str) -> bytes:
    return bytes(TAG[tag] for tag in tags.split())


def _table(flags: Flags) -> bytes:
    return flags.astype(np.uint8).tobytes()


def _design() -> dict[str, Any]:
    """What the compiled code must know of the words that are fixed in Python."""
    names = columns.FIRST_COLUMNS
    single = (*map(TAG.__getitem__, ("a", "br", "img", "p", "h1", "pre")), len(TAGS))
    return {
        "element": turbohtml.Element,
        "text": turbohtml.Text,
        "codes": CODES,
        "single": (*single, vocabulary.SHORT, vocabulary.PROSE),
        "block": _table(blocks.BLOCK_TAGS),
        "hidden": _table(blocks.HIDDEN_TAGS),
        "named": _table(columns.NAMED_TAGS),
        "heading": _table(columns.HEADINGS),
        "control": _table(columns.CONTROLS),
        "landmark": _table(columns.LANDMARKS),
        "listed": _table(columns.LISTED),
        "media": _table(pruning.MEDIA),
        "kept_empty": _table(pruning.KEPT_EMPTY),
        "frame": _table(pruning.FRAME),
        "own": _codes(columns.OWN_TAGS),
        "within": _codes(columns.WITHIN_TAGS),
        "inline": _codes(columns.INLINE_TAGS),
        "counted": _codes(columns.COUNTED_TAGS),
        "shared": tuple(map(names.index, columns.SHARED_COLUMNS)),
        "common": _COMMON_TAGS,
        "character": columns.CHARACTER.tobytes(),
    }


if AVAILABLE:
    _native.configure(_design())


_INTS: Final = np.dtype(np.intp)
_FLOATS: Final = np.dtype(np.float32)
_FLAGS: Final = np.dtype(np.bool_)


class _Held:
    """An array that is kept as the bytes that the compiled code gave, until it is asked for.

    Most are handed from one compiled function to the next, and to make arrays of them takes longer
    than some of these functions do.
    """

    def __init__(
        self,
        of: type[object],
        name: str,
        kind: np.dtype[Any],
        rows: Callable[[Any], int] | None = None,
    ) -> None:
        self._place: Any = of.__dict__[name]
        self._kind = kind
        self._rows = rows

    def __get__(self, instance: object | None, owner: type[object]) -> Any:
        if instance is None:
            return self
        held = self._place.__get__(instance, owner)
        if not isinstance(held, bytes | bytearray):
            return held
        array = np.frombuffer(held, self._kind)
        if self._rows is None:
            return array
        rows = self._rows(instance)
        return array.reshape(rows, len(array) // (rows or 1))


def _numbers(held: Any) -> memoryview:
    """What is held of an array of integers, for whoever wants few of them."""
    return memoryview(held).cast("B").cast("q")


def _rows(outline: Outline) -> tuple[Any, ...]:
    """Code, parent, last and by_code as they are held."""
    return astuple(outline)[1:5]


def _tree(outline: Outline) -> tuple[Any, ...]:
    """Code, parent and last as they are held."""
    return astuple(outline)[1:4]


def _pieces(found: Blocks) -> tuple[Any, ...]:
    """Words, owner, first and what tells of the pieces (row, block, size) as they are held."""
    return astuple(found)[-6:]


class CompiledBlocks(Blocks, frozen=True):
    words = _Held(Blocks, "words", _INTS)
    owner = _Held(Blocks, "owner", _INTS)
    first = _Held(Blocks, "first", _INTS)
    piece_row = _Held(Blocks, "piece_row", _INTS)
    piece_block = _Held(Blocks, "piece_block", _INTS)
    piece_size = _Held(Blocks, "piece_size", _INTS)


class CompiledOutline(Outline, frozen=True):
    """Its blocks are made with it, and None stands in place of the nodes of texts."""

    code = _Held(Outline, "code", _INTS)
    parent = _Held(Outline, "parent", _INTS)
    last = _Held(Outline, "last", _INTS)
    by_code = _Held(Outline, "by_code", _INTS)
    blocks: Blocks

    def places(self, tag: str) -> list[int]:
        start, end = self.code_starts[TAG[tag] : TAG[tag] + 2]
        return _numbers(_held_order(self))[start:end].tolist() if end > start else []

    def end_of(self, row: int) -> int:
        return _numbers(_held_ends(self))[row]

    def found(self, elements: list[Any]) -> list[int]:
        return _native.rows(self.nodes, elements)


_held_order, _held_ends = Outline.__dict__["by_code"].__get__, Outline.__dict__["last"].__get__


class CompiledFeatures(Features, frozen=True):
    matrix = _Held(Features, "matrix", _FLOATS, lambda features: len(features.blocks))
    page = _Held(Features, "page", _FLOATS)
    keys = _Held(Features, "keys", _INTS, lambda _: _GROUPS)


# They are given bytes where others are given arrays.
_outline: Callable[..., Outline] = CompiledOutline
_blocks: Callable[..., Blocks] = CompiledBlocks
_features: Callable[..., Features] = CompiledFeatures


def read_outline(tree: turbohtml.Document) -> Outline:
    nodes, code, parent, last, by_code, starts, depth, made = _native.outline(tree, MAX_NODES)
    cut = len(nodes) > MAX_NODES
    doublings, found = depth.bit_length(), _blocks(*made)
    return _outline(nodes, code, parent, last, by_code, starts, doublings, cut, found)


def read_blocks(outline: Outline) -> Blocks:
    """What `blocks.read_blocks` gives."""
    if isinstance(outline, CompiledOutline):
        return outline.blocks
    return blocks.read_blocks(outline)


def lexicon(scores: dict[str, float]) -> object:
    """A table of words for `read_features`."""
    return _native.lexicon(scores)


def read_features(
    outline: Outline, found: Blocks, said: Said, lexicons: tuple[object, ...], width: int
) -> Features:
    """What the model is told of a page."""
    given = (outline.nodes, *_tree(outline), found.texts, *_pieces(found), *said, lexicons, width)
    return _features(outline, found, *_native.reading(*given))


def network(page: int, bound: float, *arrays: Floats, wide: bool = True) -> object:
    """A network for `scores`: what its columns are standardised with, then its weights.

    `page` of its columns tell of the page. The widest registers are used, if there are such, unless
    they are not wanted.
    """
    given = (np.ascontiguousarray(array, np.float32) for array in arrays)
    return _native.network(page, bound, wide, *given)


def scores(networks: tuple[object, ...], features: Features, share: float, factor: float) -> Floats:
    """What `Scorer.judge` makes of the answers of its networks."""
    _, found, matrix, page, keys = astuple(features)
    if isinstance(matrix, np.ndarray):
        matrix = np.ascontiguousarray(matrix, np.float32)
    given = (matrix, page, keys, _pieces(found)[0], share, factor)
    return np.frombuffer(_native.scores(networks, *given), _FLOATS)


def types(bound: float, *arrays: Floats) -> object:
    """What tells the types of pages, for `odds`: what pages are standardised with, then weights."""
    return _native.types(bound, *(np.ascontiguousarray(array, np.float32) for array in arrays))


def odds(types: object, features: Features) -> list[float]:
    """What `Scorer.odds` gives."""
    return _native.odds(types, astuple(features)[3])


def choose(scores: Floats, found: Blocks, recall: float = 1.0) -> Choice:
    """What `selection.choose` gives."""
    given = (found.texts, scores, _pieces(found)[0], selection.FLOOR, recall)
    flags, words, surest = _native.choose(*given)
    return Choice(np.frombuffer(flags, _FLAGS), words, surest)


def prune(outline: Outline, found: Blocks, chosen: Flags) -> Outline:
    """What `pruning.prune` does."""
    rows = _rows(outline)
    words, _, first, row, block, _ = _pieces(found)
    given = (outline.nodes, *rows, words, first, row, block, chosen)
    left, starts = _native.prune(*given)
    return replace(outline, by_code=left, code_starts=starts)


def with_headline(chosen: Flags, found: Blocks, outline: Outline) -> Flags:
    """What `selection.with_headline` gives."""
    headlines = outline.places("h1")
    if len(headlines) != 1:
        return chosen
    start = headlines[0]
    flags = _native.with_headline(chosen, _pieces(found)[2], start, outline.end_of(start))
    return chosen if flags is None else np.frombuffer(flags, _FLAGS)


def languages(
    outline: Outline, given: Callable[[str], str | None], classed: Callable[[str], str | None]
) -> list[tuple[turbohtml.Element, str]] | None:
    """What `code.languages` gives; None where blocks are in each other."""
    code, parent, last = _tree(outline)
    outer, inner = outline.rows_of("pre"), outline.rows_of("code")
    return _native.languages(outline.nodes, code, parent, last, outer, inner, given, classed)


def verdicts(outline: Outline, kinds: bytes) -> bytes | None:
    """What `tables.verdict_on` says of each table; None where Python must look."""
    code, parent, last, by_code = _rows(outline)
    tables = outline.rows_of("table")
    return _native.verdicts(outline.nodes, code, parent, last, by_code, tables, kinds)


def tidy(text: str) -> str:
    """What `markdown.tidy` gives."""
    return _native.tidy(text)


def read_anchors(outline: Outline, *given: Any) -> dict[str, Any]:
    """What `links.read_anchors` gives, and besides what that is given what it makes links with."""
    _, _, last = _tree(outline)
    return _native.links(outline.nodes, last, *given)


def link_writer(
    references: Any, page: str, marks: frozenset[str], slow: Callable[[turbohtml.Element, str], str]
) -> Callable[[turbohtml.Element, str], str]:
    """Writes plain links of markdown; others are left to `slow`."""
    return _native.LinkWriter(references, page, marks, slow)
