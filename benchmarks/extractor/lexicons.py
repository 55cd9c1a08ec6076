"""Scores of words, learned from labels: the mean label of what a word marks, page by page.

A page that is trained on must not see scores that its own labels went into: `inner_scores` are
made without the part of the pages that the page belongs to. Words are numbered once for all pages,
so that learning from other pages again is sums over arrays.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.extractor.samples import Sample
from trapline.extract.html.outline import Floats, Ints
from trapline.extract.main_content.vocabulary import Vocabulary, name_columns, text_columns

KINDS = 4
INNER = 5
_MIN_DOMAINS = 4
_PRIOR_PAGES = 3.0
_SURE_WEIGHT = 3.0

Doubles = npt.NDArray[np.float64]
WordScores = tuple[Doubles, ...]
"""For each kind, the score of every word; 0 for one that is not known."""


def inner_part(sample: Sample) -> int:
    return (
        int(hashlib.md5(sample.page.domain.encode(), usedforsecurity=False).hexdigest(), 16) % INNER
    )


@dataclass(frozen=True)
class Worded:
    """The words of one kind on one page, as numbers, and what the page says of each."""

    words: Ints
    """Of all strings, one after the other."""
    sizes: Ints
    """How many words each string has."""
    distinct: Ints
    hits: Doubles
    weights: Doubles
    """For each distinct word: its mean label times how sure that is, and how sure that is."""

    @classmethod
    def of(cls, words: Ints, sizes: Ints, hits: Doubles, weights: Doubles) -> "Worded":
        """`hits` and `weights` are of the strings."""
        distinct, place = np.unique(words, return_inverse=True)
        weight = np.bincount(place, np.repeat(weights, sizes), len(distinct))
        hit = np.bincount(place, np.repeat(hits, sizes), len(distinct))
        told = weight > 0
        sure = weight[told] + _SURE_WEIGHT
        return cls(words, sizes, distinct[told], hit[told] / sure, weight[told] / sure)

    def summaries(self, scores: Doubles) -> Floats:
        """For each string the mean, lowest and highest score of its known words."""
        found = scores[self.words]
        known = found != 0
        string = np.repeat(np.arange(len(self.sizes)), self.sizes)[known]
        found = found[known]
        rows = np.zeros((len(self.sizes), 3), dtype=np.float32)
        starts = np.flatnonzero(np.diff(string, prepend=-1))
        if len(starts):
            counts = np.diff(starts, append=len(found))
            rows[string[starts]] = np.stack(
                (
                    np.add.reduceat(found, starts) / counts,
                    np.minimum.reduceat(found, starts),
                    np.maximum.reduceat(found, starts),
                ),
                axis=1,
            )
        return rows


class Lexicons:
    """The words of all samples; scores are learned from any choice of them."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self._numbers: tuple[dict[str, int], ...] = tuple({} for _ in range(KINDS))
        self._worded = [self._read(sample) for sample in samples]
        domains: dict[str, int] = {}
        self._domain = [domains.setdefault(s.page.domain, len(domains)) for s in samples]
        self._part = np.array([inner_part(sample) for sample in samples])

    def _read(self, sample: Sample) -> tuple[Worded, ...]:
        return tuple(
            Worded.of(*_numbered(strings, numbers), *sums)
            for strings, numbers, sums in zip(
                sample.words, self._numbers, _sums(sample), strict=True
            )
        )

    def learn(self, taken: Iterable[int]) -> tuple[WordScores, list[WordScores]]:
        """Scores from all samples taken; and from those outside each inner part."""
        numbers = np.array(list(taken))
        known = [self._known(numbers, kind) for kind in range(KINDS)]
        part = self._part[numbers]
        inner = [self._scores(numbers[part != left], known) for left in range(INNER)]
        return self._scores(numbers, known), inner

    def _known(self, taken: Ints, kind: int) -> npt.NDArray[np.bool_]:
        """Which words occur on several sites."""
        pairs = [
            np.stack((worded.distinct, np.full(len(worded.distinct), self._domain[number])))
            for number in taken.tolist()
            for worded in (self._worded[number][kind],)
        ]
        words, _ = np.unique(np.concatenate(pairs, axis=1), axis=1)
        return np.bincount(words, minlength=len(self._numbers[kind])) >= _MIN_DOMAINS

    def _scores(self, taken: Ints, known: Sequence[npt.NDArray[np.bool_]]) -> WordScores:
        scores = []
        for kind, mask in enumerate(known):
            pages = [self._worded[number][kind] for number in taken.tolist()]
            words = np.concatenate([page.distinct for page in pages])
            hits = np.concatenate([page.hits for page in pages])
            weights = np.concatenate([page.weights for page in pages])
            hit_sums = np.bincount(words, hits, len(mask))
            weight_sums = np.bincount(words, weights, len(mask))
            scores.append(_log_odds(hit_sums, weight_sums, mask))
        return tuple(scores)

    def features(self, number: int, scores: WordScores) -> Floats:
        """All features of a sample's blocks, as `Reading.matrix` gives them, and its page's."""
        sample = self._samples[number]
        names, texts, headings, prose = (
            worded.summaries(kind)
            for worded, kind in zip(self._worded[number], scores, strict=True)
        )
        columns = {
            **name_columns(sample.layout, sample.names, names),
            **text_columns(texts, headings, prose, sample.reading.sections),
        }
        words = np.array(list(columns.values()), dtype=np.float32).T
        page = np.broadcast_to(sample.reading.page, (len(words), len(sample.reading.page)))
        return np.concatenate((sample.own, words, page), axis=1)

    def inner_features(self, number: int, inner: Sequence[WordScores]) -> Floats:
        """The features of a sample with scores that its own labels did not go into."""
        return self.features(number, inner[self._part[number]])

    def vocabulary(self, scores: WordScores) -> Vocabulary:
        return Vocabulary.of(
            *(
                {word: score for word, score in zip(numbers, kind.tolist(), strict=True) if score}
                for numbers, kind in zip(self._numbers, scores, strict=True)
            )
        )


def _numbered(strings: list[list[str]], numbers: dict[str, int]) -> tuple[Ints, Ints]:
    words = [numbers.setdefault(word, len(numbers)) for string in strings for word in string]
    return np.array(words, dtype=np.intp), np.array(list(map(len, strings)), dtype=np.intp)


def _sums(sample: Sample) -> tuple[tuple[Doubles, Doubles], ...]:
    """For each kind of word: the labelled weight of what its strings mark, and the whole weight."""
    weights, hits = sample.weights, sample.weights * sample.labels
    sections = sample.reading.sections.of_block
    heading = np.diff(sections, prepend=0) > 0
    size = len(sample.words[2])
    below = (
        np.bincount(sections, np.where(heading, 0, hits), size),
        np.bincount(sections, np.where(heading, 0, weights), size),
    )
    return (_under(sample, hits), _under(sample, weights)), (hits, weights), below, (hits, weights)


def _under(sample: Sample, values: Doubles) -> Doubles:
    """For each group of names, the sum over the blocks inside the elements that bear it."""
    outline = sample.reading.outline
    rows = np.bincount(sample.blocks.first, values, len(outline.code))
    running = np.concatenate(([0], np.cumsum(rows)))
    inside = running[outline.last + 1] - running[:-1]
    return np.bincount(sample.names.of_row, inside, len(sample.words[0]))


def _log_odds(hits: Doubles, weights: Doubles, known: npt.NDArray[np.bool_]) -> Doubles:
    if not known.any():
        return np.zeros(len(known))
    hits, weights = np.where(known, hits, 0), np.where(known, weights, 0)
    prior = np.clip(hits.sum() / weights.sum(), 0.01, 0.99)
    share = np.clip((hits + _PRIOR_PAGES * prior) / (weights + _PRIOR_PAGES), 0.01, 0.99)
    odds = np.log(share / (1 - share)) - np.log(prior / (1 - prior))
    return np.where(known, odds, 0.0)
