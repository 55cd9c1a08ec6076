"""The compiled reader of pages, where the package was built with one.

It does what `outline`, `blocks`, `features`, `vocabulary` and the groups of `scorer` do, several
times as fast: loops over nodes and blocks in C (`native/`) instead of one numpy call after another.
The Python modules say what is meant, are what a machine without a compiler runs, and are what the
model is trained with. Tests hold the two together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import turbohtml

from trapline.extract import blocks, features, pruning, selection, vocabulary
from trapline.extract.blocks import Blocks
from trapline.extract.outline import CODES, MAX_NODES, TAG, TAGS, Flags, Floats, Ints, Outline

try:
    from trapline.extract import _native
except ImportError:
    _native = None  # type: ignore[assignment]

_GROUPS: Final = 6

AVAILABLE: Final = _native is not None


def _codes(tags: str) -> bytes:
    return bytes(TAG[tag] for tag in tags.split())


def _table(flags: Flags) -> bytes:
    return flags.astype(np.uint8).tobytes()


def _design() -> dict[str, Any]:
    """What the compiled code must know of the words that are fixed in Python."""
    names = features.FIRST_COLUMNS
    single = (*map(TAG.__getitem__, ("a", "br", "img", "p", "h1")), len(TAGS))
    return {
        "element": turbohtml.Element,
        "text": turbohtml.Text,
        "codes": CODES,
        "single": (*single, vocabulary.SHORT, vocabulary.PROSE),
        "block": _table(blocks.BLOCK_TAGS),
        "hidden": _table(blocks.HIDDEN_TAGS),
        "named": _table(features.NAMED_TAGS),
        "heading": _table(features.HEADINGS),
        "control": _table(features.CONTROLS),
        "landmark": _table(features.LANDMARKS),
        "listed": _table(features.LISTED),
        "media": _table(pruning.MEDIA),
        "kept_empty": _table(pruning.KEPT_EMPTY),
        "frame": _table(pruning.FRAME),
        "own": _codes(features.OWN_TAGS),
        "within": _codes(features.WITHIN_TAGS),
        "inline": _codes(features.INLINE_TAGS),
        "counted": _codes(features.COUNTED_TAGS),
        "shared": tuple(map(names.index, features.SHARED_COLUMNS)),
        "character": features.CHARACTER.tobytes(),
    }


if AVAILABLE:
    _native.configure(_design())


def _ints(data: bytes) -> Ints:
    return np.frombuffer(data, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class CompiledOutline(Outline):
    def found(self, elements: list[Any]) -> Ints:
        return np.array(_native.rows(self.nodes, elements) if elements else (), dtype=np.intp)

    def written(self, start: int, end: int) -> str:
        return _native.written(self.nodes, self.code, start, end)


def read_outline(tree: turbohtml.Document) -> Outline:
    nodes, code, parent, last, by_code, starts, depth = _native.outline(tree, MAX_NODES)
    return CompiledOutline(
        nodes,
        _ints(code),
        _ints(parent),
        _ints(last),
        _ints(by_code),
        starts,
        depth.bit_length(),
        len(nodes) > MAX_NODES,
    )


def read_blocks(outline: Outline) -> Blocks:
    texts, *arrays = _native.blocks(outline.nodes, outline.code, outline.parent, outline.last)
    return Blocks(texts, *map(_ints, arrays))


def lexicon(scores: dict[str, float]) -> object:
    """A table of words for `read_features`."""
    return _native.lexicon(scores)


def read_features(
    outline: Outline, found: Blocks, echo: frozenset[str], lexicons: tuple[object, ...], width: int
) -> tuple[Floats, Floats, Ints]:
    """The matrix of a page, its own numbers without hints, and the keys of the groups."""
    matrix, page, keys = _native.reading(
        outline.nodes, outline.code, outline.parent, outline.last,
        found.texts, found.words, found.owner, found.first,
        found.piece_row, found.piece_block, found.piece_size,
        echo, lexicons, width,
    )  # fmt: skip
    count = len(found)
    return (
        np.frombuffer(matrix, dtype=np.float32).reshape(count, width),
        np.frombuffer(page, dtype=np.float32),
        np.frombuffer(keys, dtype=np.intp).reshape(_GROUPS, count),
    )


def contexts(shared: Floats, weights: Floats, keys: Ints) -> Floats:
    """What `scorer.contexts` gives."""
    count, width = shared.shape
    found = _native.contexts(shared, weights, keys, width)
    return np.frombuffer(found, dtype=np.float32).reshape(count, -1)


def standardise(matrix: Floats, mean: Floats, scale: Floats, bound: float) -> None:
    """Shift, scale and bound the columns of a matrix, in place."""
    _native.standardise(matrix, mean, scale, bound)


def choose(scores: Floats, found: Blocks, recall: float = 1.0) -> Flags:
    """What `selection.choose` gives."""
    chosen = _native.choose(found.texts, scores, found.words, selection.FLOOR, recall)
    return np.frombuffer(chosen, dtype=np.bool_)


def prune(outline: Outline, found: Blocks, chosen: Flags) -> None:
    """What `pruning.prune` does."""
    _native.prune(
        outline.nodes, outline.code, outline.parent, outline.last,
        found.words, found.first, found.piece_row, found.piece_block, chosen,
    )  # fmt: skip


def chosen_text(chosen: Flags, found: Blocks, outline: Outline) -> str:
    """What `selection.chosen_text` gives."""
    shown = outline.rows_of("pre")
    return _native.chosen_text(
        outline.nodes, found.texts, outline.code, outline.last,
        found.first, found.piece_row, found.piece_block, shown, chosen,
    )  # fmt: skip


def with_headline(chosen: Flags, found: Blocks, outline: Outline) -> Flags:
    """What `selection.with_headline` gives."""
    headlines = outline.rows_of("h1")
    if len(headlines) != 1:
        return chosen
    start = int(headlines[0])
    flags = _native.with_headline(chosen, found.first, start, int(outline.last[start]))
    return chosen if flags is None else np.frombuffer(flags, dtype=np.bool_)


def tidy(text: str) -> str:
    """What `markdown.tidy` gives."""
    return _native.tidy(text)


def read_anchors(*given: Any) -> dict[str, Any]:
    """What `links.read_anchors` gives, and besides what that is given what it makes links with."""
    return _native.links(*given)


def link_writer(
    references: Any, page: str, marks: frozenset[str], slow: Callable[[turbohtml.Element, str], str]
) -> Callable[[turbohtml.Element, str], str]:
    """Writes plain links of markdown; others are left to `slow`."""
    return _native.LinkWriter(references, page, marks, slow)
