"""Snippets: the part of a passage with most of the query's terms, and where those stand in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from trapline.knowledge.keyword.analysis import language_of, terms

_WORD: Final = re.compile(r"[^\W_]+(?:[_'’][^\W_]+)*")  # noqa: RUF001 (the apostrophe that people type)
_SPACE: Final = re.compile(r"\s+")
LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of text; `marks` are the spans of the query's words in it."""

    text: str
    marks: tuple[tuple[int, int], ...]


def snippet(words: str, language: str, wanted: frozenset[str], length: int = LENGTH) -> Snippet:
    """Return the piece of a passage with the most different query terms."""
    text = _SPACE.sub(" ", words).strip()
    marks = _marks(text, language_of(language), wanted)
    start, end = _window(text, marks, length)
    lead, tail = ("… " if start else ""), (" …" if end < len(text) else "")
    shift = len(lead) - start
    inside = ((m.start + shift, m.end + shift) for m in marks if start <= m.start and m.end <= end)
    return Snippet(f"{lead}{text[start:end]}{tail}", tuple(inside))


@dataclass(frozen=True, slots=True)
class _Mark:
    start: int
    end: int
    term: str


def _marks(text: str, language: str, wanted: frozenset[str]) -> list[_Mark]:
    if not wanted:
        return []
    found = []
    for match in _WORD.finditer(text):
        meant = _terms_of(match[0], language)
        if not wanted.isdisjoint(meant):
            hit = next(term for term in meant if term in wanted)
            found.append(_Mark(match.start(), match.end(), hit))
    return found


@lru_cache(maxsize=50_000)
def _terms_of(word: str, language: str) -> tuple[str, ...]:
    """A word's terms; cached, because texts repeat the same words."""
    return tuple(terms(word, language))


def _window(text: str, marks: Sequence[_Mark], length: int) -> tuple[int, int]:
    """The start and end of the best piece of this length, at spaces."""
    if len(text) <= length:
        return 0, len(text)
    best, most = 0, 0
    for at, mark in enumerate(marks):
        inside = {m.term for m in marks[at:] if m.end <= mark.start + length * 3 // 4}
        if len(inside) > most:
            best, most = mark.start, len(inside)
    start = max(0, min(best - length // 6, len(text) - length))
    if start:
        start = text.find(" ", start, start + length // 6) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start + length // 2, end), start + length // 2)
    return start, end
