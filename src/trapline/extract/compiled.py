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

from trapline.extract import blocks, pruning, selection, vocabulary
from trapline.extract import features as columns
from trapline.extract.blocks import Blocks
from trapline.extract.outline import CODES, MAX_NODES, TAG, TAGS, Flags, Floats, Ints, Outline
from trapline.extract.reading import Features

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
    names = columns.FIRST_COLUMNS
    single = (*map(TAG.__getitem__, ("a", "br", "img", "p", "h1")), len(TAGS))
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
        "character": columns.CHARACTER.tobytes(),
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


def network(page: int, bound: float, *arrays: Floats, wide: bool = True) -> object:
    """A network for `scores`: what its columns are standardised with, then its weights.

    `page` of its columns tell of the page. The widest registers are used, if there are such, unless
    they are not wanted.
    """
    given = (np.ascontiguousarray(array, np.float32) for array in arrays)
    return _native.network(page, bound, wide, *given)


def scores(networks: tuple[object, ...], features: Features, share: float, factor: float) -> Floats:
    """What `Scorer.judge` makes of the answers of its networks."""
    matrix = np.ascontiguousarray(features.matrix, np.float32)
    told = (features.page, features.keys, features.blocks.words)
    found = _native.scores(networks, matrix, *told, share, factor)
    return np.frombuffer(found, dtype=np.float32)


def odds(bound: float, page: Floats, *arrays: Floats) -> list[float]:
    """What `Scorer.odds` gives."""
    return _native.odds(bound, page, *arrays)


def choose(scores: Floats, found: Blocks, recall: float = 1.0) -> Flags:
    """What `selection.choose` gives."""
    chosen = _native.choose(found.texts, scores, found.words, selection.FLOOR, recall)
    return np.frombuffer(chosen, dtype=np.bool_)


def prune(outline: Outline, found: Blocks, chosen: Flags) -> Outline:
    """What `pruning.prune` does."""
    left, starts = _native.prune(
        outline.nodes, outline.code, outline.parent, outline.last, outline.by_code,
        found.words, found.first, found.piece_row, found.piece_block, chosen,
    )  # fmt: skip
    return CompiledOutline(
        outline.nodes,
        outline.code,
        outline.parent,
        outline.last,
        _ints(left),
        starts,
        outline.doublings,
        outline.cut,
    )


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


def languages(
    outline: Outline, given: Callable[[str], str | None], classed: Callable[[str], str | None]
) -> list[tuple[turbohtml.Element, str]] | None:
    """What `code.languages` gives; None where blocks are in each other."""
    return _native.languages(
        outline.nodes, outline.code, outline.parent, outline.last,
        outline.rows_of("pre"), outline.rows_of("code"), given, classed,
    )  # fmt: skip


def verdicts(outline: Outline, kinds: bytes) -> bytes | None:
    """What `tables.verdict_on` says of each table; None where Python must look."""
    return _native.verdicts(
        outline.nodes, outline.code, outline.parent, outline.last,
        outline.by_code, outline.rows_of("table"), kinds,
    )  # fmt: skip


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
