"""Ranks texts by BM25 without scoring every match.

Terms are taken rarest first. As soon as no text that has only the remaining terms could be among
the best, the remaining terms are looked up for the texts in question alone (MaxScore). What is left
out can change no rank that is returned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.keyword.postings import PART, Postings, decoded_lengths, joined

K1: Final = 1.5
B: Final = 0.75
# Fewer parts than this are not worth a second look at which of them are needed.
_FEW_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class Head:
    """A term in a segment: how many texts have it there, and what bounds its weight.

    `first` holds the first part of the postings; `starts` the first ordinal of every part, where
    there is more than one.
    """

    texts: int
    most: int
    shortest: int
    first: Postings
    starts: NDArray[np.uint32] | None = None


class Parts(Protocol):
    """Reads the parts of a term's postings in a segment; all but the first, which the head has."""

    async def __call__(
        self, wanted: Mapping[tuple[int, str], Sequence[int]]
    ) -> Mapping[tuple[int, str], list[Postings]]: ...


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a query runs over: the segments' sizes, and their heads by segment and term.

    `having` says of terms how many texts have their word in any language's form, where that is known:
    a word that is everywhere must not be rare because one text alone is in another language.
    """

    sizes: Mapping[int, int]
    texts: int
    length: int
    heads: Mapping[tuple[int, str], Head]
    having: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scored:
    segment: int
    ordinal: int
    score: float


Among = Mapping[int, NDArray[np.uint32]]
"""For each segment some ordinals, in order."""


@dataclass(slots=True)
class Ranking:
    """One query over one corpus."""

    corpus: Corpus
    weights: Mapping[str, float]
    parts: Parts
    among: Among | None = None
    barred: Among | None = None
    impacts: NDArray[np.float32] = field(init=False)
    scores: dict[int, NDArray[np.float32]] = field(init=False)

    def __post_init__(self) -> None:
        self.impacts = _impacts(self.corpus.length / max(self.corpus.texts, 1))
        self.scores = {
            segment: np.zeros(size, np.float32) for segment, size in self.corpus.sizes.items()
        }
        for segment, ordinals in (self.barred or {}).items():
            # Whatever is added to it, it stays below all others.
            self.scores[segment][ordinals] = -np.inf

    async def best(self, most: int) -> list[Scored]:
        """Return the best texts, best first."""
        left = self._by_idf()
        worst = 0.0
        while left:
            bound = sum(self._bound(term, idf) for term, idf in left)
            if worst > bound:
                return _top(await self._refined(left, worst - bound), most)
            term, idf = left.pop(0)
            worst = max(worst, self._least_of_best(await self._add(term, idf), most))
        return _top({segment: self._positive(segment) for segment in self.scores}, most)

    def _by_idf(self) -> list[tuple[str, float]]:
        found = []
        for term, weight in self.weights.items():
            there = sum(head.texts for (_, name), head in self.corpus.heads.items() if name == term)
            if there:
                having = max(there, self.corpus.having.get(term, 0))
                rarity = np.log(1 + (self.corpus.texts - having + 0.5) / (having + 0.5))
                found.append((term, float(rarity) * weight))
        return sorted(found, key=lambda pair: -pair[1])

    def _heads(self, term: str) -> list[tuple[int, Head]]:
        return [
            (segment, head)
            for (segment, name), head in self.corpus.heads.items()
            if name == term and segment in self.scores
        ]

    def _bound(self, term: str, idf: float) -> float:
        heads = self._heads(term)
        return idf * max((float(self.impacts[h.most, h.shortest]) for _, h in heads), default=0.0)

    async def _add(self, term: str, idf: float) -> dict[int, list[NDArray[np.uint32]]]:
        """Add a term to the scores of all texts that have it; return those."""
        heads = self._heads(term)
        wanted = {
            (segment, term): range(1, len(head.starts))
            for segment, head in heads
            if head.starts is not None
        }
        rest = await self.parts(wanted) if wanted else {}
        touched: dict[int, list[NDArray[np.uint32]]] = {}
        for segment, head in heads:
            for postings in (head.first, *rest.get((segment, term), ())):
                weights = self.impacts[postings.counts, postings.lengths]
                # Ordinals are unique within a term, so that plain indexing adds every posting.
                self.scores[segment][postings.ordinals] += weights * np.float32(idf)
                touched.setdefault(segment, []).append(postings.ordinals)
        return touched

    def _least_of_best(self, touched: dict[int, list[NDArray[np.uint32]]], most: int) -> float:
        """A bound that so many texts reach: the least of the best of those just scored.

        It is that of all or a little lower, and need not look at a million scores.
        """
        if self.among is not None:
            values = [self.scores[segment][ours] for segment, ours in self.among.items()]
        else:
            values = [self.scores[segment][o] for segment, all_ in touched.items() for o in all_]
        together = np.concatenate(values) if values else np.zeros(0, np.float32)
        # Of the wanted texts most have none of the words; so many equal scores take long to part.
        together = together[together > 0]
        return float(np.partition(together, -most)[-most]) if len(together) >= most else 0.0

    def _positive(self, segment: int, floor: float | None = None) -> "_Texts":
        """The texts of a segment whose scores are above nothing, or not below a floor."""
        scores = self.scores[segment]
        if self.among is not None:
            ours = self.among.get(segment, _NO_ORDINALS)
            scores = scores[ours]
            chosen = scores > 0 if floor is None else scores >= floor
            return ours[chosen], scores[chosen]
        places = np.flatnonzero(scores > 0 if floor is None else scores >= floor)
        return places.astype(np.uint32), scores[places]

    async def _refined(
        self, left: Sequence[tuple[str, float]], floor: float
    ) -> dict[int, "_Texts"]:
        """Add the remaining terms to the texts that can still be among the best; drop all others."""
        texts = {segment: self._positive(segment, floor) for segment in self.scores}
        wanted = {
            (segment, term): wanted_parts
            for term, _ in left
            for segment, head in self._heads(term)
            if len(wanted_parts := needed(head, texts[segment][0]))
        }
        rest = await self.parts(wanted) if wanted else {}
        for term, idf in left:
            for segment, head in self._heads(term):
                ordinals, scores = texts[segment]
                every = joined([head.first, *rest.get((segment, term), ())])
                places = np.minimum(np.searchsorted(every.ordinals, ordinals), len(every) - 1)
                has = every.ordinals[places] == ordinals
                at = places[has]
                scores[has] += self.impacts[every.counts[at], every.lengths[at]] * np.float32(idf)
        return texts


_Texts = tuple[NDArray[np.uint32], NDArray[np.float32]]
"""Ordinals, in order, and their scores."""

_NO_ORDINALS: Final = np.zeros(0, np.uint32)


def _top(texts: Mapping[int, _Texts], most: int) -> list[Scored]:
    if not texts:
        return []
    segments = np.repeat(list(texts), [len(scores) for _, scores in texts.values()])
    ordinals = np.concatenate([ordinals for ordinals, _ in texts.values()])
    scores = np.concatenate([scores for _, scores in texts.values()])
    if len(scores) > most:
        # All that are as good as the last one: which of them is taken must not depend on chance.
        best = np.flatnonzero(scores >= np.partition(scores, -most)[-most])
        segments, ordinals, scores = segments[best], ordinals[best], scores[best]
    # Equal scores keep one order, whichever way the segments were merged.
    order = np.lexsort((ordinals, segments, -scores))[:most]
    columns = (column[order].tolist() for column in (segments, ordinals, scores))
    return [Scored(*one) for one in zip(*columns, strict=True)]


def needed(head: Head, candidates: NDArray[np.uint32]) -> Sequence[int]:
    """Which parts but the first have candidates in their range."""
    if head.starts is None or not len(candidates):
        return ()
    if len(head.starts) <= _FEW_PARTS:
        return range(1, len(head.starts))
    places = np.unique(np.searchsorted(head.starts, candidates, side="right")) - 1
    return [int(place) for place in places if place > 0]


def _impacts(mean_length: float) -> NDArray[np.float32]:
    """The weight of a posting by its count and its text's length code."""
    counts = np.arange(256)[:, None]
    norms = K1 * (1 - B + B * decoded_lengths()[None, :] / max(mean_length, 1.0))
    return (counts / (counts + norms)).astype(np.float32)


def head_of(postings: Postings) -> Head:
    """Describe the whole postings of a term in a segment."""
    starts = postings.ordinals[::PART] if len(postings) > PART else None
    return Head(
        texts=len(postings),
        most=int(postings.counts.max()),
        shortest=int(postings.lengths.min()),
        first=postings.part(0, PART),
        starts=starts,
    )
