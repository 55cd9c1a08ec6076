"""Words that tell content from the rest: in class names, in short texts, in section headings.

Each word has a score, learned from the training pages: how much more likely than usual the text
that it marks is main content (in log odds). A page's words are looked up once per distinct
string, and strings are remembered between pages, for a site's pages share nearly all of them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, repeat
from operator import methodcaller
from typing import Any, Final, TypeAlias, cast

import numpy as np

from trapline.extract.features import NAMED_TAGS, Columns, Layout
from trapline.extract.outline import Floats, Ints, Outline, tag_set

Scores: TypeAlias = dict[str, float]
Summary: TypeAlias = tuple[float, float, float]

_NAME_PARTS: Final = re.compile(r"[a-z]+|[A-Z][a-z]*")
_TEXT_WORDS: Final = re.compile(r"\w+")
_NAME_SIZES: Final = range(2, 25)
SHORT: Final = 12
_PHRASE: Final = 3
_REMEMBERED: Final = 200_000
_NAMELESS: Final = (None, None)
_HEADINGS: Final = tag_set("h1 h2 h3 h4 h5 h6")
NOTHING: Final[Summary] = (0.0, 0.0, 0.0)


def name_words(names: Iterable[str | None]) -> list[str]:
    """The words of class names and the like: `navBar-item2` has nav, bar and item."""
    found = _NAME_PARTS.findall(" ".join(filter(None, names)))
    return list(dict.fromkeys(word.lower() for word in found if len(word) in _NAME_SIZES))


def text_words(text: str) -> list[str]:
    """The words of a short text, and the whole text when it is a phrase; none for a long one."""
    words = _TEXT_WORDS.findall(text.lower())
    if len(words) > SHORT:
        return []
    if 0 < len(words) <= _PHRASE:
        words.append("=" + " ".join(words))
    return list(dict.fromkeys(words))


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
    classes = list(map(methodcaller("attr", "class"), elements))
    ids = map(methodcaller("attr", "id"), elements)
    groups = list(zip(classes, ids, strict=True))
    distinct = list(dict.fromkeys([_NAMELESS, *groups]))
    kinds = dict.fromkeys([None, *classes])
    return Names(
        distinct,
        _spread(len(outline.code), rows, groups, distinct),
        _spread(len(outline.code), rows, classes, list(kinds)),
    )


def _spread(size: int, rows: Ints, values: Sequence[Any], distinct: Sequence[Any]) -> Ints:
    """For every row the place of its value in `distinct`; 0 for the rows that have none."""
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    spread = np.zeros(size, dtype=np.intp)
    spread[rows] = np.fromiter(map(numbers.__getitem__, values), np.intp, len(values))
    return spread


@dataclass(frozen=True, slots=True)
class Sections:
    """Blocks between headings: the heading a block stands under, as a number; 0 before the first."""

    headings: list[str]
    of_block: Ints


def read_sections(layout: Layout) -> Sections:
    heading = _HEADINGS[layout.outline.code[layout.blocks.owner]]
    return Sections(["", *compress(layout.blocks.texts, heading)], np.cumsum(heading))


@dataclass(slots=True)
class Lexicon:
    """The scores of one kind of word, and what is remembered of strings seen before."""

    scores: Scores
    words: Callable[[Any], list[str]]
    _seen: dict[Any, Summary] = field(default_factory=dict)

    def summaries(self, strings: Sequence[Any]) -> Floats:
        """Mean, lowest and highest score of the known words of each string."""
        seen = self._seen
        if len(seen) > _REMEMBERED:
            seen.clear()
        found = list(map(seen.get, strings, repeat(None)))
        if None in found:
            for number, summary in enumerate(found):
                if summary is None:
                    string = strings[number]
                    found[number] = seen[string] = self._summary(string)
        values = chain.from_iterable(cast("list[Summary]", found))
        return np.fromiter(values, np.float32, 3 * len(found)).reshape(-1, 3)

    def _summary(self, string: Any) -> Summary:
        known = [score for word in self.words(string) if (score := self.scores.get(word))]
        return (sum(known) / len(known), min(known), max(known)) if known else NOTHING


@dataclass(frozen=True, slots=True)
class Vocabulary:
    names: Lexicon
    texts: Lexicon
    headings: Lexicon

    @classmethod
    def of(cls, names: Scores, texts: Scores, headings: Scores) -> "Vocabulary":
        return cls(
            Lexicon(names, name_words), Lexicon(texts, text_words), Lexicon(headings, text_words)
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
    known = outline.inherited(mean != 0)[owner]
    highest = layout.highest_around(np.stack((high, -low), axis=1))
    return columns | {
        "names_path_high": highest[:, 0],
        "names_path_low": -highest[:, 1],
        "names_path_mean": outline.inherited(mean)[owner] / np.maximum(known, 1),
        "names_path_known": known,
    }


def text_columns(texts: Floats, headings: Floats, sections: Sections) -> Columns:
    under = headings[sections.of_block]
    kinds = ("mean", "low", "high")
    return {
        **{f"text_{kind}": texts[:, number] for number, kind in enumerate(kinds)},
        **{f"section_{kind}": under[:, number] for number, kind in enumerate(kinds)},
    }
