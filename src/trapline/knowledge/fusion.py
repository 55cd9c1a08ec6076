"""Rank fusion: several rankings become one, by reciprocal rank (RRF) or by min-max normalised scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Method = Literal["weighted", "rrf"]

RRF_K: Final = 60


@dataclass(frozen=True, slots=True)
class RankedList:
    """One ranking: chunks with their scores, best first, and its weight."""

    name: str
    weight: float
    ranked: Sequence[tuple[int, float]]


def fuse(rankings: Sequence[RankedList], method: Method) -> dict[int, float]:
    """Return every chunk's score; a ranking adds nothing to a chunk that it lacks."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        shares = _by_rank(ranking) if method == "rrf" else _by_score(ranking)
        for chunk, share in shares.items():
            scores[chunk] = scores.get(chunk, 0.0) + ranking.weight * share
    return scores


def _by_rank(ranking: RankedList) -> Mapping[int, float]:
    return {chunk: 1 / (RRF_K + rank) for rank, (chunk, _) in enumerate(ranking.ranked, start=1)}


def _by_score(ranking: RankedList) -> Mapping[int, float]:
    """Min-max normalised scores: 1 for the best to 0 for the last; 1 for each if all are equal."""
    if not ranking.ranked:
        return {}
    most, least = ranking.ranked[0][1], ranking.ranked[-1][1]
    if most <= least:
        return {chunk: 1.0 for chunk, _ in ranking.ranked}
    return {chunk: (score - least) / (most - least) for chunk, score in ranking.ranked}
