"""BM25 ranking with MaxScore: the best texts without scoring every match.

Terms are scored rarest first. As soon as no text with only the remaining terms can be among the
best, the remaining terms are looked up for the candidates alone. The result is exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.keyword.postings import PART, Postings, concatenate, decoded_lengths

K1: Final = 1.5
B: Final = 0.75
# With fewer parts it is not worth finding out which are needed.
_FEW_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class PostingHead:
    """A term in a segment: its document frequency and the bounds of its weight.

    `first` holds the first part of the postings; `starts` the first ordinal of every part, where
    there is more than one.
    """

    texts: int
    most: int
    shortest: int
    first: Postings
    starts: NDArray[np.uint32] | None = None


class ReadParts(Protocol):
    """Reads parts of a term's postings in a segment; the head has the first part."""

    async def __call__(
        self, wanted: Mapping[tuple[int, str], Sequence[int]]
    ) -> Mapping[tuple[int, str], list[Postings]]: ...


@dataclass(frozen=True, slots=True)
class Corpus:
    """The statistics of a query: segment sizes, and posting heads by segment and term.

    `having`: how many texts have a term's word in the form of any language. A frequent word must not
    be rare because one text is in another language.
    """

    sizes: Mapping[int, int]
    texts: int
    length: int
    heads: Mapping[tuple[int, str], PostingHead]
    having: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoredText:
    segment: int
    ordinal: int
    score: float


OrdinalSets = Mapping[int, NDArray[np.uint32]]
"""For each segment some ordinals, in order."""


@dataclass(slots=True)
class Bm25Ranker:
    """One query over one corpus."""

    corpus: Corpus
    weights: Mapping[str, float]
    parts: ReadParts
    allowed: OrdinalSets | None = None
    excluded: OrdinalSets | None = None
    impacts: NDArray[np.float32] = field(init=False)
    scores: dict[int, NDArray[np.float32]] = field(init=False)

    def __post_init__(self) -> None:
        self.impacts = _impacts(self.corpus.length / max(self.corpus.texts, 1))
        self.scores = {
            segment: np.zeros(size, np.float32) for segment, size in self.corpus.sizes.items()
        }
        for segment, ordinals in (self.excluded or {}).items():
            # Adding to it keeps it below all others.
            self.scores[segment][ordinals] = -np.inf

    async def best(self, most: int) -> list[ScoredText]:
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

    def _heads(self, term: str) -> list[tuple[int, PostingHead]]:
        return [
            (segment, head)
            for (segment, name), head in self.corpus.heads.items()
            if name == term and segment in self.scores
        ]

    def _bound(self, term: str, idf: float) -> float:
        heads = self._heads(term)
        return idf * max((float(self.impacts[h.most, h.shortest]) for _, h in heads), default=0.0)

    async def _add(self, term: str, idf: float) -> dict[int, list[NDArray[np.uint32]]]:
        """Add a term to the scores of all texts that have it; return their ordinals."""
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
        """A lower bound of the score of the last of the best texts, from those just scored.

        It may be a little low, but does not read a million scores.
        """
        if self.allowed is not None:
            values = [self.scores[segment][ours] for segment, ours in self.allowed.items()]
        else:
            values = [self.scores[segment][o] for segment, all_ in touched.items() for o in all_]
        together = np.concatenate(values) if values else np.zeros(0, np.float32)
        # Most allowed texts have none of the words; many equal scores make partition slow.
        together = together[together > 0]
        return float(np.partition(together, -most)[-most]) if len(together) >= most else 0.0

    def _positive(self, segment: int, floor: float | None = None) -> "_Texts":
        """The texts of a segment with positive scores, or scores of at least a floor."""
        scores = self.scores[segment]
        if self.allowed is not None:
            ours = self.allowed.get(segment, _NO_ORDINALS)
            scores = scores[ours]
            chosen = scores > 0 if floor is None else scores >= floor
            return ours[chosen], scores[chosen]
        places = np.flatnonzero(scores > 0 if floor is None else scores >= floor)
        return places.astype(np.uint32), scores[places]

    async def _refined(
        self, left: Sequence[tuple[str, float]], floor: float
    ) -> dict[int, "_Texts"]:
        """Add the remaining terms to the texts that can still be among the best."""
        texts = {segment: self._positive(segment, floor) for segment in self.scores}
        wanted = {
            (segment, term): wanted_parts
            for term, _ in left
            for segment, head in self._heads(term)
            if len(wanted_parts := needed_parts(head, texts[segment][0]))
        }
        rest = await self.parts(wanted) if wanted else {}
        for term, idf in left:
            for segment, head in self._heads(term):
                ordinals, scores = texts[segment]
                every = concatenate([head.first, *rest.get((segment, term), ())])
                places = np.minimum(np.searchsorted(every.ordinals, ordinals), len(every) - 1)
                has = every.ordinals[places] == ordinals
                at = places[has]
                scores[has] += self.impacts[every.counts[at], every.lengths[at]] * np.float32(idf)
        return texts


_Texts = tuple[NDArray[np.uint32], NDArray[np.float32]]
"""Ordinals, in order, and their scores."""

_NO_ORDINALS: Final = np.zeros(0, np.uint32)


def _top(texts: Mapping[int, _Texts], most: int) -> list[ScoredText]:
    if not texts:
        return []
    segments = np.repeat(list(texts), [len(scores) for _, scores in texts.values()])
    ordinals = np.concatenate([ordinals for ordinals, _ in texts.values()])
    scores = np.concatenate([scores for _, scores in texts.values()])
    if len(scores) > most:
        # Include all ties of the last one: the choice among them must be deterministic.
        best = np.flatnonzero(scores >= np.partition(scores, -most)[-most])
        segments, ordinals, scores = segments[best], ordinals[best], scores[best]
    # Ties have one order, however the segments were merged.
    order = np.lexsort((ordinals, segments, -scores))[:most]
    columns = (column[order].tolist() for column in (segments, ordinals, scores))
    return [ScoredText(*one) for one in zip(*columns, strict=True)]


def needed_parts(head: PostingHead, candidates: NDArray[np.uint32]) -> Sequence[int]:
    """The parts, except the first, that may contain candidates."""
    if head.starts is None or not len(candidates):
        return ()
    if len(head.starts) <= _FEW_PARTS:
        return range(1, len(head.starts))
    places = np.unique(np.searchsorted(head.starts, candidates, side="right")) - 1
    return [int(place) for place in places if place > 0]


def _impacts(mean_length: float) -> NDArray[np.float32]:
    """BM25's term weight by count and length code."""
    counts = np.arange(256)[:, None]
    norms = K1 * (1 - B + B * decoded_lengths()[None, :] / max(mean_length, 1.0))
    return (counts / (counts + norms)).astype(np.float32)


def posting_head(postings: Postings) -> PostingHead:
    """Describe the whole postings of a term in a segment."""
    starts = postings.ordinals[::PART] if len(postings) > PART else None
    return PostingHead(
        texts=len(postings),
        most=int(postings.counts.max()),
        shortest=int(postings.lengths.min()),
        first=postings.part(0, PART),
        starts=starts,
    )
