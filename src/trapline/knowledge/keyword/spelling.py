"""Words that nobody wrote: which written ones they may have been meant to be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from trapline.db.connection import Connection
from trapline.knowledge.sql import searching as queries

# Shorter words are too near to too many others.
_SHORTEST: Final = 4
_TWO_EDITS: Final = 8
# Trigrams that two spellings of a word have in common at least: two letters swapped cost most.
_LEAST_ALIKE: Final = 0.2
_MOST_MEANT: Final = 3


@dataclass(frozen=True, slots=True)
class Meant:
    """A term that a word may have been meant to be; `weight` says how surely."""

    term: str
    weight: float


def correctable(term: str) -> bool:
    """Names with digits or underscores are what they are."""
    return len(term) >= _SHORTEST and term.isalpha()


async def meant(conn: Connection, segment_ids: Sequence[int], term: str) -> list[Meant]:
    """Return the terms nearest to one, the most written first; of the same first letter."""
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
    return nearest(term, ((row.term, row.texts) for row in rows), edits)


def nearest(term: str, candidates: Iterable[tuple[str, int]], edits: int) -> list[Meant]:
    """Of candidates, with how many texts have them, those with the fewest edits."""
    found = [
        (distance, -texts, other)
        for other, texts in candidates
        if other.isalpha() and 0 < (distance := _edits(term, other, edits)) <= edits
    ]
    least = min(found, default=(0, 0, ""))[0]
    best = sorted(one for one in found if one[0] == least)[:_MOST_MEANT]
    return [Meant(other, 0.8 / distance) for distance, _, other in best]


def _edits(one: str, other: str, most: int) -> int:
    """Letters added, left out, replaced or swapped with the next; more than `most` is not counted out."""
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
