"""Spelling correction: indexed terms within one or two edits of a word that no text has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from trapline.db.connection import Connection
from trapline.knowledge.sql import search as queries

# Shorter words are too near to too many others.
_SHORTEST: Final = 4
_TWO_EDITS: Final = 8
# The least trigram similarity of two spellings: swapped letters cost most.
_LEAST_ALIKE: Final = 0.2
_MOST_MEANT: Final = 3


@dataclass(frozen=True, slots=True)
class Correction:
    """A term that a word is corrected to, with its weight in the ranking."""

    term: str
    weight: float


def correctable(term: str) -> bool:
    """Whether a term may be corrected: names with digits or underscores are not."""
    return len(term) >= _SHORTEST and term.isalpha()


async def corrections(conn: Connection, segment_ids: Sequence[int], term: str) -> list[Correction]:
    """Return the nearest terms with the same first letter, the most frequent first."""
    edits = 2 if len(term) >= _TWO_EDITS else 1
    rows = await queries.similar_terms(
        conn,
        segment_ids=segment_ids,
        first=term[0],
        last=chr(ord(term[0]) + 1),
        shortest=len(term) - edits,
        longest=len(term) + edits,
        word=term,
        least=_LEAST_ALIKE,
    )
    return fewest_edits(term, ((row.term, row.texts) for row in rows), edits)


def fewest_edits(term: str, candidates: Iterable[tuple[str, int]], edits: int) -> list[Correction]:
    """Return the candidates, given with their frequency, that need the fewest edits."""
    found = [
        (distance, -texts, other)
        for other, texts in candidates
        if other.isalpha() and 0 < (distance := _edits(term, other, edits)) <= edits
    ]
    least = min(found, default=(0, 0, ""))[0]
    best = sorted(one for one in found if one[0] == least)[:_MOST_MEANT]
    return [Correction(other, 0.8 / distance) for distance, _, other in best]


def _edits(one: str, other: str, most: int) -> int:
    """The Damerau-Levenshtein distance; `most` + 1 if it is more."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, theirs in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != theirs))
            if last and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
