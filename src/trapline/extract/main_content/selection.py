"""From scores to a choice of blocks: the choice whose expected word-F1 is highest."""

from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from trapline import native
from trapline.extract.html.outline import Flags, Floats, Ints, Outline
from trapline.extract.main_content.blocks import Blocks

FLOOR: Final = 0.2
"""What a block must score to be taken, unless none does."""
_REPEATED_WORDS: Final = 3
_DATA_STARTS: Final = frozenset(('{"', "[{", "[["))
_DATA_QUOTES: Final = 8


class Choice(NamedTuple):
    """Blocks that were chosen, how many words they have, and how sure the best block of the page is."""

    flags: Flags
    words: int
    surest: float = 1.0


def choice_of(flags: Flags, blocks: Blocks, surest: float = 1.0) -> Choice:
    return Choice(flags, int(blocks.words[flags].sum()), surest)


def choose(scores: Floats, blocks: Blocks, recall: float = 1.0) -> Choice:
    """Which blocks are main content; never none of them.

    Taken in order of score, blocks raise the expected overlap by their words times their score
    and the size of the answer by their words; the best prefix is where the quotient peaks.
    `recall` is how much it counts beside precision, the square of the beta of F-beta.
    """
    if not len(blocks):
        return Choice(np.zeros(0, dtype=np.bool_), 0)
    order = np.argsort(-scores, kind="stable")
    taken = _best_prefix(scores, order, blocks, recall)
    return choice_of(_worth_keeping(taken, scores, blocks), blocks, float(scores[order[0]]))


def _best_prefix(scores: Floats, order: Ints, blocks: Blocks, recall: float) -> Flags:
    words = blocks.words.astype(np.float64)
    hits = (scores * words)[order]
    expected = np.cumsum(hits) / (np.cumsum(words[order]) + recall * hits.sum())
    taken = order[: int(np.argmax(expected)) + 1]
    chosen = np.zeros(len(blocks), dtype=np.bool_)
    chosen[taken] = True
    return chosen


def _worth_keeping(chosen: Flags, scores: Floats, blocks: Blocks) -> Flags:
    for enough in (chosen & (scores >= FLOOR), chosen):
        kept = _without_data(enough, blocks)
        if kept.any():
            return _without_repeats(kept, blocks)
    return chosen


def with_headline(chosen: Flags, blocks: Blocks, outline: Outline) -> Flags:
    """Add the page's only first-level heading where it stands above all that was chosen."""
    headlines = outline.row_list("h1")
    if len(headlines) != 1:
        return chosen
    (row,) = headlines
    start, end = blocks.first.searchsorted((row, outline.end_of(row) + 1)).tolist()
    if start == end or not chosen[start:].any() or chosen[:end].any():
        return chosen
    flags = chosen.copy()
    flags[start:end] = True
    return flags


def _without_data(chosen: Flags, blocks: Blocks) -> Flags:
    """Drop what was left in the page for its scripts; code that is shown has space in it."""
    texts = blocks.texts
    numbers = np.flatnonzero(chosen).tolist()
    data = [number for number in numbers if _is_data(texts[number])]
    if not data:
        return chosen
    flags = chosen.copy()
    flags[data] = False
    return flags


def _is_data(text: str) -> bool:
    return text[:2] in _DATA_STARTS and text.count('"') >= _DATA_QUOTES


def _without_repeats(chosen: Flags, blocks: Blocks) -> Flags:
    """Drop a text that was already taken: pages repeat captions, cards and whole menus."""
    numbers = np.flatnonzero(chosen & (blocks.words >= _REPEATED_WORDS)).tolist()
    # Of equal texts the first is left in the end.
    first = {blocks.texts[number]: number for number in reversed(numbers)}
    if len(first) == len(numbers):
        return chosen
    flags = chosen.copy()
    flags[list(set(numbers).difference(first.values()))] = False
    return flags


def chosen_text(chosen: Flags, blocks: Blocks) -> str:
    """The chosen blocks, a line each; code keeps its own lines."""
    return "\n".join(compress(blocks.shown, chosen.tolist()))


def compiled_choose(scores: Floats, blocks: Blocks, recall: float = 1.0) -> Choice:
    flags, words, best = native.library.choose(blocks.texts, scores, blocks.words, FLOOR, recall)
    return Choice(np.frombuffer(flags, np.bool_), words, best)


if native.available:
    choose = compiled_choose
