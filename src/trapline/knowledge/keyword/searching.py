"""Searches the keyword index of one organisation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.keyword import spelling
from trapline.knowledge.keyword.analysis import ANALYSIS_VERSION, terms, words_of
from trapline.knowledge.keyword.postings import unpacked
from trapline.knowledge.keyword.ranking import Corpus, Head, Ranking
from trapline.knowledge.keyword.remembering import Memory, Reader
from trapline.knowledge.sql import keyword as queries
from trapline.knowledge.sql.keyword import HeadsRow, SegmentsRow
from trapline.model import OrganisationId

# A pasted page is a query too; its first words say what it is about.
_MOST_WORDS: Final = 64
# Each costs a look at part of the vocabulary.
_MOST_CORRECTED: Final = 4


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk and its BM25 score."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """`language` is that of the words, else every language of the organisation's texts is tried.

    `among`, sorted, are the only chunks wanted. With `tolerant`, a word that is nowhere stands for
    those that are written almost like it.
    """

    words: str
    most: int = 10
    language: str | None = None
    among: NDArray[np.int64] | None = None
    tolerant: bool = True

    def over(self, among: NDArray[np.int64]) -> "KeywordQuery":
        return replace(self, among=among)

    def for_most(self, most: int) -> "KeywordQuery":
        return replace(self, most=most)


@dataclass(frozen=True, slots=True)
class Found:
    """The best chunks, best first; the terms looked for, by language; what was taken for what."""

    hits: list[Hit]
    terms: Mapping[str, frozenset[str]] = field(default_factory=dict)
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class KeywordIndex:
    """One for a process, for it remembers what it read."""

    memory: Memory = field(default_factory=Memory)

    async def search(
        self, conn: Connection, organisation_id: OrganisationId, query: KeywordQuery
    ) -> Found:
        """Return the best chunks for a query, best first."""
        segments = await queries.segments(
            conn, organisation_id=organisation_id, analysis_version=ANALYSIS_VERSION
        )
        asked = _Asked.of(query, segments)
        if not asked.wanted:
            return Found([])
        await asked.look_up(conn)
        if query.tolerant:
            await asked.correct(conn)
        texts = await self.memory.texts(conn, [one.segment_id for one in segments])
        among = None
        if query.among is not None:
            among = {segment: one.ordinals_of(query.among) for segment, one in texts.items()}
        ranking = Ranking(asked.corpus(), asked.weights, Reader(conn, self.memory), among)
        best = await ranking.best(query.most)
        hits = [Hit(int(texts[o.segment].chunk_ids[o.ordinal]), o.score) for o in best]
        return Found(hits, asked.by_language(), asked.corrected)


@dataclass(slots=True)
class _Asked:
    """A query's words in the languages of the texts."""

    segments: Sequence[SegmentsRow]
    # For each word its terms in each language that does not call it a stop word.
    wanted: dict[str, dict[str, list[str]]]
    weights: dict[str, float] = field(default_factory=dict)
    heads: dict[tuple[int, str], Head] = field(default_factory=dict)
    corrected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    added: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, query: KeywordQuery, segments: Sequence[SegmentsRow]) -> "_Asked":
        languages = sorted({one.language for one in segments})
        if query.language is not None:
            languages = [name for name in languages if name == query.language]
        wanted = {}
        for word in islice(dict.fromkeys(words_of(query.words)), _MOST_WORDS):
            found = {name: terms(word, name) for name in languages}
            if any(found.values()):
                wanted[word] = {name: list_ for name, list_ in found.items() if list_}
        asked = cls([one for one in segments if one.language in languages], wanted)
        asked.weights = dict.fromkeys(
            (term for found in wanted.values() for list_ in found.values() for term in list_), 1.0
        )
        return asked

    def by_language(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {name: set(added) for name, added in self.added.items()}
        for of_word in self.wanted.values():
            for language, list_ in of_word.items():
                found.setdefault(language, set()).update(list_)
        return {language: frozenset(names) for language, names in found.items()}

    async def look_up(self, conn: Connection) -> None:
        for language, names in self.by_language().items():
            await self._read(conn, language, names)

    async def correct(self, conn: Connection) -> None:
        """Look for words that are written like those that are nowhere."""
        known = {term for _, term in self.heads}
        strange = [
            word
            for word, found in self.wanted.items()
            if not any(term in known for list_ in found.values() for term in list_)
        ]
        for word in strange[:_MOST_CORRECTED]:
            for language, (term, *_) in self.wanted[word].items():
                if not spelling.correctable(term):
                    continue
                meant = await spelling.meant(conn, self._segments_of(language), term)
                if meant:
                    names = tuple(one.term for one in meant)
                    self.corrected[word] = self.corrected.get(word, ()) + names
                    self.weights |= {m.term: m.weight for m in meant if m.term not in self.weights}
                    self.added.setdefault(language, set()).update(names)
                    await self._read(conn, language, names)

    def _segments_of(self, language: str) -> list[int]:
        return [one.segment_id for one in self.segments if one.language == language]

    async def _read(self, conn: Connection, language: str, names: Iterable[str]) -> None:
        rows = await queries.heads(
            conn, segment_ids=self._segments_of(language), terms=sorted(names)
        )
        self.heads |= {(row.segment_id, row.term): _head(row) for row in rows}

    def corpus(self) -> Corpus:
        return Corpus(
            sizes={one.segment_id: one.texts for one in self.segments},
            texts=sum(one.texts for one in self.segments),
            length=sum(one.length for one in self.segments),
            heads=self.heads,
        )


def _head(row: HeadsRow) -> Head:
    starts = None if row.starts is None else np.frombuffer(row.starts, np.uint32)
    return Head(row.texts, row.most, row.shortest, unpacked(row.postings), starts)
