"""The Cranfield collection: 1,400 abstracts, 225 queries, and who judged what relevant."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[3] / "shared" / "data" / "cranfield"
_FIELD = re.compile(r"^\.([ITABWX])\s*(.*)")
# Codes 1 to 4 mean relevant.
_RELEVANT = range(1, 5)

Ranked = Sequence[int]
"""Abstracts, by their number from 1, best first."""


@dataclass(frozen=True, slots=True)
class Cranfield:
    """Titles, bodies and queries in order; for each query, from 1, what is relevant to it."""

    titles: list[str]
    bodies: list[str]
    queries: list[str]
    relevant: dict[int, frozenset[int]]

    @classmethod
    def read(cls) -> "Cranfield":
        documents = _records(DATA / "cran.all.1400")
        relevant: dict[int, set[int]] = {}
        for line in (DATA / "cranqrel").read_text().splitlines():
            query, document, code = map(int, line.split()[:3])
            if code in _RELEVANT:
                relevant.setdefault(query, set()).add(document)
        return cls(
            [one.get("T", "") for one in documents],
            [one.get("W", "") for one in documents],
            [one["W"] for one in _records(DATA / "cran.qry")],
            {query: frozenset(found) for query, found in relevant.items()},
        )

    def quality(self, rankings: Mapping[int, Ranked], *, even: bool | None = None) -> "Quality":
        """Score rankings of all queries, or of those with even or odd numbers."""
        chosen = [q for q in rankings if even is None or (q % 2 == 0) is even]
        gains = [_ndcg(rankings[q], self.relevant[q]) for q in chosen]
        recalls = [
            len(self.relevant[q] & set(rankings[q][:100])) / len(self.relevant[q]) for q in chosen
        ]
        return Quality(sum(gains) / len(gains), sum(recalls) / len(recalls))


@dataclass(frozen=True, slots=True)
class Quality:
    """nDCG of the first ten and recall of the first hundred."""

    ndcg: float
    recall: float


def _ndcg(ranked: Ranked, relevant: frozenset[int], most: int = 10) -> float:
    gain = sum(
        1 / math.log2(place + 2) for place, one in enumerate(ranked[:most]) if one in relevant
    )
    ideal = sum(1 / math.log2(place + 2) for place in range(min(most, len(relevant))))
    return gain / ideal


def _records(path: Path) -> list[dict[str, str]]:
    found: list[dict[str, list[str]]] = []
    lines: list[str] = []
    for line in path.read_text().splitlines():
        match = _FIELD.match(line)
        if match is None:
            lines.append(line)
        elif match[1] == "I":
            found.append({})
        else:
            lines = found[-1].setdefault(match[1], [])
    return [{name: " ".join(part) for name, part in one.items()} for one in found]
