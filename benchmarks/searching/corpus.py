"""A corpus out of nothing: Zipf-like words in topics, texts of realistic lengths, vectors that agree.

A word's vector leans to its topic's; a text's vector is the mean of those of its first words, so
that texts of one topic lie together, as real ones do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors, normalise
from trapline.knowledge.keyword.analysis import terms

DIMENSION = 256
TOPICS = 300
WORDS = 100_000
# Passages of a text, and words of a text that its vector is made of.
PASSAGES = 5
TOLD_BY = 12
# What filters ask for: media types with their shares of all texts.
TYPES = {
    "text/html": 0.5,
    "text/plain": 0.445,
    "application/pdf": 0.05,
    "application/epub+zip": 0.005,
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages: their words as numbers, one after the other, and their vectors."""

    first: int
    lengths: NDArray[np.int64]
    words: NDArray[np.int32]
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.lengths)

    def parts(self, size: int) -> "Iterator[Batch]":
        """The same in smaller ones."""
        ends = [0, *self.ends.tolist()]
        for at in range(0, len(self), size):
            last = min(at + size, len(self))
            yield Batch(
                self.first + at,
                self.lengths[at:last],
                self.words[ends[at] : ends[last]],
                self.vectors[at:last],
            )

    @property
    def ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.lengths)


@dataclass(frozen=True, slots=True)
class Question:
    """A query: the words that somebody who wants one of the texts might type."""

    words: str


class Corpus:
    """The same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self.chance = np.random.default_rng(seed)
        self.centres = self._normal(TOPICS)
        self.topic_of_word = self.chance.integers(0, TOPICS, WORDS)
        self.meanings = normalise(
            0.7 * self.centres[self.topic_of_word] + 0.7 * self._normal(WORDS)
        )
        weights = 1 / (np.arange(WORDS) + 2.7) ** 1.07
        self.commonness = np.cumsum(weights / weights.sum())
        self.of_topic = [np.flatnonzero(self.topic_of_word == topic) for topic in range(TOPICS)]

    def _normal(self, rows: int) -> Vectors:
        return normalise(self.chance.standard_normal((rows, DIMENSION), np.float32))

    @cached_property
    def vocabulary(self) -> list[str]:
        """Words that a stemmer leaves as they are, so that a number is a term."""
        consonants, vowels = "bcdfgklmnprtvz", "aiou"
        found: dict[str, None] = {}
        chance = np.random.default_rng(1)
        while len(found) < WORDS:
            letters = chance.integers(0, 56, (WORDS, 4))
            for row in letters:
                word = "".join(consonants[n % 14] + vowels[n // 14] for n in row) + "k"
                if terms(word, "en") == [word]:
                    found[word] = None
        return list(found)[:WORDS]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.vocabulary)}

    def batches(self, first: int, last: int, size: int = 450_000) -> Iterator[Batch]:
        for at in range(first, last, size):
            yield self._batch(at, min(size, last - at))

    def _batch(self, first: int, count: int) -> Batch:
        chance = self.chance
        lengths = np.clip(chance.lognormal(4.6, 0.45, count), 20, 250).astype(np.int64)
        every = int(lengths.sum())
        words = np.searchsorted(self.commonness, chance.random(every)).astype(np.int32)
        # A third of a text's words are of its topic, the common ones of it more often.
        topics = np.repeat(chance.integers(0, TOPICS, count), lengths)
        own = np.flatnonzero(chance.random(every) < 1 / 3)
        sizes = np.array([len(words) for words in self.of_topic])
        place = (chance.random(len(own)) ** 3 * sizes[topics[own]]).astype(np.int64)
        table = np.zeros((TOPICS, sizes.max()), np.int32)
        for topic, members in enumerate(self.of_topic):
            table[topic, : len(members)] = members
        words[own] = table[topics[own], place]
        return Batch(first, lengths, np.minimum(words, WORDS - 1), self._vectors(words, lengths))

    def _vectors(self, words: NDArray[np.int32], lengths: NDArray[np.int64]) -> Vectors:
        starts = np.cumsum(lengths) - lengths
        sums = np.zeros((len(lengths), DIMENSION), np.float32)
        for place in range(TOLD_BY):
            chosen = np.minimum(starts + place % lengths.min(), len(words) - 1)
            common = self.commonness[words[chosen]] < 0.3
            sums += np.where(common[:, None], 0.1, 1.0) * self.meanings[words[chosen]]
        return normalise(sums)

    def questions(self, count: int) -> list[Question]:
        """Two to five words of a topic, seldom the most common ones."""
        chance = np.random.default_rng(99)
        found = []
        for _ in range(count):
            members = self.of_topic[int(chance.integers(TOPICS))]
            size = int(chance.integers(2, 6))
            places = (chance.random(size) ** 2 * len(members)).astype(np.int64)
            chosen = [int(members[place]) for place in places]
            if chance.random() < 0.5:
                chosen.append(int(np.searchsorted(self.commonness, chance.random())))
            found.append(Question(" ".join(self.vocabulary[word] for word in chosen)))
        return found

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel("generated", DIMENSION)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        numbers = self.numbers
        rows = [
            self.meanings[[numbers[word] for word in text.split() if word in numbers]].sum(axis=0)
            for text in texts
        ]
        return normalise(np.array(rows, np.float32))


def types_of(texts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The media type of each text, by its number: spread evenly, with their shares."""
    spread = (texts * 0.6180339887498949) % 1
    return np.searchsorted(np.cumsum(list(TYPES.values()))[:-1], spread, side="right")
