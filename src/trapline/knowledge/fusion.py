"""Makes one ranking of several: by ranks alone (RRF), or by scores on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Method = Literal["weighted", "rrf"]

RRF_K: Final = 60


@dataclass(frozen=True, slots=True)
class Leg:
    """One ranking: chunks with their scores, best first, and how much it counts."""

    name: str
    weight: float
    ranked: Sequence[tuple[int, float]]


def fuse(legs: Sequence[Leg], method: Method) -> dict[int, float]:
    """Return every chunk's score; one that a leg did not find gets nothing from it."""
    scores: dict[int, float] = {}
    for leg in legs:
        shares = _by_rank(leg) if method == "rrf" else _by_score(leg)
        for chunk, share in shares.items():
            scores[chunk] = scores.get(chunk, 0.0) + leg.weight * share
    return scores


def _by_rank(leg: Leg) -> Mapping[int, float]:
    return {chunk: 1 / (RRF_K + rank) for rank, (chunk, _) in enumerate(leg.ranked, start=1)}


def _by_score(leg: Leg) -> Mapping[int, float]:
    """From 1 for the best to 0 for the last one; where all are alike, 1 for each."""
    if not leg.ranked:
        return {}
    most, least = leg.ranked[0][1], leg.ranked[-1][1]
    if most <= least:
        return {chunk: 1.0 for chunk, _ in leg.ranked}
    return {chunk: (score - least) / (most - least) for chunk, score in leg.ranked}
