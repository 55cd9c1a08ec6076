"""What the signs in a query mean: "phrases", +words, -exclusions, AND, OR, NOT.

What makes no sense as a sign is read as a word: no query fails for how it is written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from trapline.knowledge.keyword.analysis import sequence, terms

_TOKEN: Final = re.compile(r'(?<!\S)([-+]?)["“„«]([^"“”„«»]*)["”“»](?=[\s)]|$)|\S+')
_PARENTHESES: Final = re.compile(r"(?<!\S)\(+|(?<=[\s\"”“»\w])\)+(?!\S)")
_NONE_OF: Final = re.compile(r"(?<!\S)(?:-|NOT\s+)\(([^()]*)\)(?!\S)")
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})
_SIGNED: Final = re.compile(r"[-+][^\W\d_]")


@dataclass(frozen=True, slots=True)
class Part:
    """A word in any form, or words exactly as they are and side by side."""

    words: str
    phrase: bool

    @classmethod
    def of(cls, words: str, *, quoted: bool = False) -> "Part":
        """What is written as one and read as several words is a phrase, such as `point-in-time`."""
        return cls(words, quoted or sequence(words).count(" ") > 2)  # noqa: PLR2004 (spaces about one word)

    def terms(self, language: str) -> list[str]:
        """What the keyword index knows it by."""
        return list(dict.fromkeys(terms(self.words, language)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A query taken apart. Of each group in `required` one part must be in a text."""

    words: str
    """All that is wanted, without signs."""
    required: tuple[tuple[Part, ...], ...] = ()
    excluded: tuple[Part, ...] = ()

    @property
    def plain(self) -> bool:
        return not self.required and not self.excluded

    @property
    def exact(self) -> str:
        """Words that stand for no others."""
        return " ".join(part.words for group in self.required for part in group)

    @property
    def phrases(self) -> bool:
        """Whether texts must be read to tell if they fit; else the keyword index knows."""
        every = (*self.excluded, *(part for group in self.required for part in group))
        return any(part.phrase for part in every)


@dataclass(slots=True)
class _Group:
    parts: list[Part]
    required: bool


@dataclass(slots=True)
class _Reading:
    """A query as far as it has been read, and what the sign before the next part means to it."""

    groups: list[_Group] = field(default_factory=list)
    excluded: list[Part] = field(default_factory=list)
    either: bool = False
    both: bool = False
    without: bool = False

    def sign(self, name: str) -> None:
        if name == "OR":
            self.either = bool(self.groups)
        elif name == "NOT":
            self.without = True
        elif self.groups:
            self.groups[-1].required = self.both = True

    def part(self, part: Part, sign: str, *, quoted: bool) -> None:
        if not sequence(part.words).strip():
            return
        if sign == "-" or self.without:
            self.excluded.append(part)
        elif self.either:
            self.groups[-1].parts.append(part)
            self.groups[-1].required = True
        else:
            self.groups.append(_Group([part], quoted or sign == "+" or self.both))
        self.either = self.both = self.without = False


def read(query: str) -> Asked:
    """Take a query apart."""
    reading = _Reading()
    # Who writes all in capitals means no sign by it.
    shouted = query.upper() == query
    for sign, words, quoted in _tokens(query):
        if not quoted and words in _OPERATORS and not shouted:
            reading.sign(words)
        else:
            reading.part(Part.of(words, quoted=quoted), sign, quoted=quoted)
    asked = Asked(
        " ".join(part.words for group in reading.groups for part in group.parts),
        tuple(tuple(group.parts) for group in reading.groups if group.required),
        tuple(reading.excluded),
    )
    # Signs that are no operators may mean something to a model.
    return Asked(query) if asked.plain else asked


def _tokens(query: str) -> Iterator[tuple[str, str, bool]]:
    """A sign or none, words, and whether those were in quotes."""
    query = _NONE_OF.sub(lambda found: _each_without(found[1]), query)
    for token in _TOKEN.finditer(_PARENTHESES.sub(" ", query)):
        if token[2] is not None:
            yield token[1], token[2], True
        elif _SIGNED.match(token[0]):
            yield token[0][0], token[0][1:], False
        else:
            yield "", token[0], False


def _each_without(inside: str) -> str:
    """`-(a OR b)` is `-a -b`."""
    parts = (token[0] for token in _TOKEN.finditer(inside))
    return " ".join(f"-{part.lstrip('+-')}" for part in parts if part not in _OPERATORS)
