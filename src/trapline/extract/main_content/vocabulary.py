"""Words that tell content from the rest: in class names, in short texts, in section headings.

Each word has a score, learned from the training pages: how much more likely than usual the text
that it marks is main content (in log odds). A page's words are looked up once per distinct
string, and strings are remembered between pages, for a site's pages share nearly all of them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import is_, methodcaller
from typing import Any, Final, TypeAlias, cast

import numpy as np

from trapline import native
from trapline.extract.html.outline import Floats, Ints, Outline
from trapline.extract.main_content.features import HEADINGS, NAMED_TAGS, Columns, Layout

Scores: TypeAlias = dict[str, float]
Words: TypeAlias = dict[str, None]
"""Each word once, in order."""
Summary: TypeAlias = tuple[float, float, float]

_NAME_PARTS: Final = re.compile(r"[a-z]+|[A-Z][a-z]*")
_TEXT_WORDS: Final = re.compile(r"\w+")
_NAME_SIZES: Final = range(2, 25)
SHORT: Final = 12
PROSE: Final = 240
_PHRASE: Final = 3
_REMEMBERED: Final = 200_000
NOTHING: Final[Summary] = (0.0, 0.0, 0.0)
_NAMELESS: Final = (None, None)


def name_words(names: Iterable[str | None]) -> list[str]:
    """The words of class names and the like: `navBar-item2` has nav, bar and item."""
    (words,) = words_of_names([names])
    return [word for word in words if len(word) in _NAME_SIZES]


def words_of_names(groups: Sequence[Iterable[str | None]]) -> list[Words]:
    """As `name_words`, for many groups of names at once, and of any size."""
    found = map(_NAME_PARTS.findall, map(" ".join, map(filter, repeat(None), groups)))
    return [dict.fromkeys(map(str.lower, words)) for words in found]


def text_words(text: str) -> list[str]:
    """The words of a short text, and the whole text when it is a phrase; none for a long one."""
    (words,) = words_of_texts([text])
    return list(words)


def words_of_texts(texts: Sequence[str]) -> list[Words]:
    """As `text_words`, for many texts of one line at once."""
    lines = "\n".join(texts).lower().split("\n") if texts else []
    found = list(map(_TEXT_WORDS.findall, lines))
    for words in found:
        if len(words) > SHORT:
            words.clear()
        elif 0 < len(words) <= _PHRASE:
            words.append("=" + " ".join(words))
    return list(map(dict.fromkeys, found))


def prose_words(text: str) -> list[str]:
    """The words that a long text begins with, as they stand between white space."""
    return text[:PROSE].lower().split()


@dataclass(frozen=True, slots=True)
class Names:
    """What elements are called: the distinct groups of names of a page, and whose they are."""

    distinct: list[tuple[str | None, str | None]]
    of_row: Ints
    """Place in `distinct`; a row without any name has the first, which is empty."""
    classes: Ints
    """A number for the class attribute of each row, 0 for none."""


def read_names(outline: Outline) -> Names:
    """Inline elements are left out: there are many, and what they are called tells little."""
    rows = np.flatnonzero(NAMED_TAGS[outline.code])
    elements = list(map(outline.nodes.__getitem__, rows.tolist()))
    classes = map(methodcaller("attr", "class"), elements)
    ids = map(methodcaller("attr", "id"), elements)
    groups = list(zip(classes, ids, strict=True))
    distinct = list(dict.fromkeys([_NAMELESS, *groups]))
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    of_row = np.zeros(len(outline.code), dtype=np.intp)
    of_row[rows] = np.fromiter(map(numbers.__getitem__, groups), np.intp, len(groups))
    return Names(distinct, of_row, _class_numbers(distinct).take(of_row))


def _class_numbers(distinct: list[tuple[str | None, str | None]]) -> Ints:
    """For each group of names the number of its class attribute; 0 for none."""
    classes = [name for name, _ in distinct]
    kinds = dict.fromkeys(classes)
    numbers = dict(zip(kinds, range(len(kinds)), strict=True))
    return np.array(list(map(numbers.__getitem__, classes)), dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Sections:
    """Blocks between headings: the heading a block stands under, as a number; 0 before the first."""

    headings: list[str]
    of_block: Ints
    above: Ints
    """For each heading the one that it stands under: the last before it of a higher rank."""


def read_sections(layout: Layout) -> Sections:
    code = layout.outline.code[layout.blocks.owner]
    heading = HEADINGS[code]
    return Sections(
        ["", *compress(layout.blocks.texts, heading)],
        np.cumsum(heading),
        _above(code[heading].tolist()),
    )


def _above(ranks: list[int]) -> Ints:
    """Ranks are the codes of h1 to h6, which ascend."""
    above, open_sections = [0], [(0, 0)]
    for number, rank in enumerate(ranks, start=1):
        while open_sections[-1][0] >= rank:
            open_sections.pop()
        above.append(open_sections[-1][1])
        open_sections.append((rank, number))
    return np.array(above, dtype=np.intp)


def summary(scores: Scores, words: Iterable[str]) -> Summary:
    """Mean, lowest and highest score of the known ones of some words."""
    known = list(filter(None, map(scores.get, words)))
    return (sum(known) / len(known), min(known), max(known)) if known else NOTHING


class Lexicon:
    """The scores of one kind of word, and what is remembered of strings seen before."""

    def __init__(self, scores: Scores, words: Callable[[Any], list[Words]]) -> None:
        self.scores = scores
        self._words = words
        self._seen: dict[Any, Summary] = {}

    def summaries(self, strings: Sequence[Any]) -> Floats:
        """Mean, lowest and highest score of the known words of each string."""
        seen = self._seen
        found = list(map(seen.get, strings))
        if None in found:
            if len(seen) > _REMEMBERED:
                seen.clear()
                found = [None] * len(strings)
            unseen = list(dict.fromkeys(compress(strings, map(is_, found, repeat(None)))))
            words = self._words(unseen)
            summaries = map(summary, repeat(self.scores), words)
            seen.update(zip(unseen, summaries, strict=True))
            found = list(map(seen.__getitem__, strings))
        values = chain.from_iterable(cast("list[Summary]", found))
        return np.fromiter(values, np.float32, 3 * len(found)).reshape(-1, 3)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    names: Lexicon
    texts: Lexicon
    headings: Lexicon
    prose: Scores

    @property
    def scores(self) -> tuple[Scores, Scores, Scores, Scores]:
        return self.names.scores, self.texts.scores, self.headings.scores, self.prose

    @classmethod
    def of(cls, names: Scores, texts: Scores, headings: Scores, prose: Scores) -> "Vocabulary":
        return cls(
            Lexicon(names, words_of_names),
            Lexicon(texts, words_of_texts),
            Lexicon(headings, words_of_texts),
            prose,
        )


def name_columns(layout: Layout, names: Names, scores: Floats) -> Columns:
    """`scores` has a row for each distinct group of names: mean, lowest, highest."""
    outline, owner = layout.outline, layout.blocks.owner
    mean, low, high = scores.T[:, names.of_row]
    columns: Columns = {}
    around = (*layout.level[:4], layout.records)
    for where, rows in zip(("own", "up1", "up2", "up3", "record"), around, strict=True):
        columns[f"names_{where}_mean"] = mean[rows]
        columns[f"names_{where}_low"] = low[rows]
        columns[f"names_{where}_high"] = high[rows]
    known = outline.ancestor_sum(mean != 0)[owner]
    highest = layout.ancestor_max(np.stack((high, -low), axis=1))
    return columns | {
        "names_path_high": highest[:, 0],
        "names_path_low": -highest[:, 1],
        "names_path_mean": outline.ancestor_sum(mean)[owner] / np.maximum(known, 1),
        "names_path_known": known,
    }


def text_columns(texts: Floats, headings: Floats, prose: Floats, sections: Sections) -> Columns:
    under = headings[sections.of_block]
    above = headings[sections.above[sections.of_block]]
    kinds = ("mean", "low", "high")
    return {
        **{f"text_{kind}": texts[:, number] for number, kind in enumerate(kinds)},
        **{f"section_{kind}": under[:, number] for number, kind in enumerate(kinds)},
        **{f"above_{kind}": above[:, number] for number, kind in enumerate(kinds)},
        "passed": np.minimum.accumulate(headings[:, 0])[sections.of_block],
        "prose_mean": prose[:, 0],
        "prose_low": prose[:, 1],
        "prose_high": prose[:, 2],
    }


if native.available:
    native.library.configure({"short": SHORT, "prose": PROSE})
