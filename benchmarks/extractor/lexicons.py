"""Scores of words, learned from labels: the mean label of what a word marks, page by page.

A page that is trained on must not see scores that its own labels went into: `inner_scores` are
made without the part of the pages that the page belongs to.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.extractor.samples import Sample
from trapline.extract.outline import Floats
from trapline.extract.vocabulary import Scores, Vocabulary, name_columns, text_columns

KINDS = 4
INNER = 5
_MIN_DOMAINS = 4
_PRIOR_PAGES = 3.0
_SURE_WEIGHT = 3.0

Counts = dict[str, tuple[float, float]]


def inner_part(sample: Sample) -> int:
    return (
        int(hashlib.md5(sample.page.domain.encode(), usedforsecurity=False).hexdigest(), 16) % INNER
    )


def page_counts(sample: Sample) -> tuple[Counts, ...]:
    """For each kind of word: what the page says of it, and with how much weight."""
    weights, hits = sample.weights, sample.weights * sample.labels
    names = _under(sample, hits), _under(sample, weights)
    heading = np.diff(sample.reading.sections.of_block, prepend=0) > 0
    sections = sample.reading.sections.of_block
    size = len(sample.words[2])
    below = (
        np.bincount(sections, np.where(heading, 0, hits), size),
        np.bincount(sections, np.where(heading, 0, weights), size),
    )
    sums = (names, (hits, weights), below, (hits, weights))
    return tuple(_counts(words, *pair) for words, pair in zip(sample.words, sums, strict=True))


def _under(sample: Sample, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """For each group of names, the sum over the blocks inside the elements that bear it."""
    outline = sample.reading.outline
    rows = np.bincount(sample.blocks.first, values, len(outline.code))
    running = np.concatenate(([0], np.cumsum(rows)))
    inside = running[outline.last + 1] - running[:-1]
    return np.bincount(sample.names.of_row, inside, len(sample.words[0]))


def _counts(
    words: list[list[str]], hits: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> Counts:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for group, hit, weight in zip(words, hits.tolist(), weights.tolist(), strict=True):
        for word in group:
            sums[word][0] += hit
            sums[word][1] += weight
    return {
        word: (hit / weight * weight / (weight + _SURE_WEIGHT), weight / (weight + _SURE_WEIGHT))
        for word, (hit, weight) in sums.items()
        if weight > 0
    }


def known_words(samples: Iterable[Sample]) -> tuple[frozenset[str], ...]:
    """Words that occur on several sites."""
    domains: list[dict[str, set[str]]] = [defaultdict(set) for _ in range(KINDS)]
    for sample in samples:
        domain = sample.page.domain
        for kind in range(KINDS):
            for group in sample.words[kind]:
                for word in group:
                    domains[kind][word].add(domain)
    return tuple(
        frozenset(word for word, seen in kind.items() if len(seen) >= _MIN_DOMAINS)
        for kind in domains
    )


def learn_scores(
    counts: Sequence[tuple[Counts, ...]], known: tuple[frozenset[str], ...]
) -> tuple[Scores, ...]:
    scores = []
    for kind in range(KINDS):
        sums = {word: [0.0, 0.0] for word in known[kind]}
        for page in counts:
            for word, (hit, weight) in page[kind].items():
                if word in sums:
                    sums[word][0] += hit
                    sums[word][1] += weight
        scores.append(_log_odds(sums))
    return tuple(scores)


def _log_odds(sums: dict[str, list[float]]) -> Scores:
    hits, weights = (np.array(column) for column in zip(*sums.values(), strict=True))
    prior = hits.sum() / weights.sum()
    share = np.clip((hits + _PRIOR_PAGES * prior) / (weights + _PRIOR_PAGES), 0.01, 0.99)
    odds = np.log(share / (1 - share)) - np.log(prior / (1 - prior))
    return dict(zip(sums, odds.tolist(), strict=True))


def features(sample: Sample, scores: tuple[Scores, ...]) -> Floats:
    """All features of a sample's blocks, as `Reading.matrix` gives them."""
    names, texts, headings, prose = (
        _summaries(words, kind) for words, kind in zip(sample.words, scores, strict=True)
    )
    columns = {
        **name_columns(sample.layout, sample.names, names),
        **text_columns(texts, headings, prose, sample.reading.sections),
    }
    worded = np.array(list(columns.values()), dtype=np.float32).T
    page = np.broadcast_to(sample.reading.page, (len(worded), len(sample.reading.page)))
    return np.concatenate((sample.own, worded, page), axis=1)


def _summaries(words: list[list[str]], scores: Scores) -> Floats:
    rows = []
    for group in words:
        known = [score for word in group if (score := scores.get(word))]
        rows.append((sum(known) / len(known), min(known), max(known)) if known else (0.0, 0.0, 0.0))
    return np.array(rows, dtype=np.float32).reshape(-1, 3)


def vocabulary(scores: tuple[Scores, ...]) -> Vocabulary:
    return Vocabulary.of(*scores)
