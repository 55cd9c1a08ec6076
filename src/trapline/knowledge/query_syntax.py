"""Query syntax: "phrases", +words, -exclusions, AND, OR, NOT.

An operator without sense is read as a word: no query is a syntax error.
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
class QueryPart:
    """A word in any form, or a phrase: exact words side by side."""

    words: str
    phrase: bool

    @classmethod
    def of(cls, words: str, *, quoted: bool = False) -> "QueryPart":
        """One written word that is analysed as several, such as `point-in-time`, is a phrase."""
        return cls(words, quoted or sequence(words).count(" ") > 2)  # noqa: PLR2004 (spaces about one word)

    def terms(self, language: str) -> list[str]:
        """Its terms in the keyword index."""
        return list(dict.fromkeys(terms(self.words, language)))


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query. A text must have one part of each group in `required`."""

    words: str
    """All words that count, without operators."""
    required: tuple[tuple[QueryPart, ...], ...] = ()
    excluded: tuple[QueryPart, ...] = ()

    @property
    def plain(self) -> bool:
        return not self.required and not self.excluded

    @property
    def exact(self) -> str:
        """Words that are not corrected."""
        return " ".join(part.words for group in self.required for part in group)

    @property
    def phrases(self) -> bool:
        """Whether texts must be read to decide; without phrases the keyword index decides."""
        every = (*self.excluded, *(part for group in self.required for part in group))
        return any(part.phrase for part in every)


@dataclass(slots=True)
class _PartGroup:
    parts: list[QueryPart]
    required: bool


@dataclass(slots=True)
class _Parser:
    """The parser's state: the parts so far, and the operator before the next part."""

    groups: list[_PartGroup] = field(default_factory=list)
    excluded: list[QueryPart] = field(default_factory=list)
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

    def part(self, part: QueryPart, sign: str, *, quoted: bool) -> None:
        if not sequence(part.words).strip():
            return
        if sign == "-" or self.without:
            self.excluded.append(part)
        elif self.either:
            self.groups[-1].parts.append(part)
            self.groups[-1].required = True
        else:
            self.groups.append(_PartGroup([part], quoted or sign == "+" or self.both))
        self.either = self.both = self.without = False


def parse(query: str) -> ParsedQuery:
    """Parse a query; it cannot fail."""
    reading = _Parser()
    # In a query all in capitals AND, OR and NOT are words.
    shouted = query.upper() == query
    for sign, words, quoted in _tokens(query):
        if not quoted and words in _OPERATORS and not shouted:
            reading.sign(words)
        else:
            reading.part(QueryPart.of(words, quoted=quoted), sign, quoted=quoted)
    asked = ParsedQuery(
        " ".join(part.words for group in reading.groups for part in group.parts),
        tuple(tuple(group.parts) for group in reading.groups if group.required),
        tuple(reading.excluded),
    )
    # Punctuation that is no operator may mean something to a model.
    return ParsedQuery(query) if asked.plain else asked


def _tokens(query: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the sign or "", the words, and whether they were quoted."""
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
