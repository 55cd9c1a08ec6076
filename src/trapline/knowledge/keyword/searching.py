"""Searches the keyword index of one organisation."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.asking import Asked
from trapline.knowledge.keyword import spelling
from trapline.knowledge.keyword.analysis import ANALYSIS_VERSION, terms, words_of
from trapline.knowledge.keyword.demanding import Demand, Holders
from trapline.knowledge.keyword.ranking import Corpus, Head, Ranking
from trapline.knowledge.keyword.remembering import Memory, Reader, Texts
from trapline.knowledge.sql import keyword as queries
from trapline.knowledge.sql.keyword import SegmentsRow
from trapline.model import OrganisationId

# A pasted page is a query too; its first words say what it is about.
_MOST_WORDS: Final = 64
_MOST_TRIES: Final = 3
# Each costs a look at part of the vocabulary.
_MOST_CORRECTED: Final = 4

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk and its BM25 score."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """`language` is that of the words, else every language of the organisation's texts is tried.

    `among`, sorted, are the only chunks wanted, `entries`, sorted, the only texts; `barred`, sorted,
    are chunks that are not. With `tolerant`, a word
    that is nowhere stands for those that are written almost like it, unless it is in `exact`.
    """

    words: str
    most: int = 10
    language: str | None = None
    among: NDArray[np.int64] | None = None
    barred: NDArray[np.int64] | None = None
    entries: NDArray[np.int64] | None = None
    tolerant: bool = True
    exact: str = ""

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
        return await self._over_segments(
            conn, organisation_id, lambda segments: self._best(conn, segments, query)
        )

    async def demanded(
        self, conn: Connection, organisation_id: OrganisationId, asked: Asked
    ) -> "Demanded":
        """Return which chunks have the words that a query insists on, and which it has ruled out."""
        return await self._over_segments(
            conn, organisation_id, lambda segments: self._having(conn, segments, asked)
        )

    async def _over_segments(
        self,
        conn: Connection,
        organisation_id: OrganisationId,
        work: Callable[[Sequence[SegmentsRow]], Awaitable[_T]],
    ) -> _T:
        """Do work over all segments; again, if some were merged meanwhile and could not be read."""
        for _ in range(_MOST_TRIES):
            reads = self.memory.reads
            segments = await queries.segments(
                conn, organisation_id=organisation_id, analysis_version=ANALYSIS_VERSION
            )
            found = await work(segments)
            if self.memory.reads == reads:
                break
            ids = [one.segment_id for one in segments]
            if await queries.count_segments(conn, segment_ids=ids) == len(ids):
                break
        return found

    async def _best(
        self, conn: Connection, segments: Sequence[SegmentsRow], query: KeywordQuery
    ) -> Found:
        asked = _Asked.of(self.memory, query, segments)
        if not asked.wanted:
            return Found([])
        await asked.look_up(conn)
        if query.tolerant:
            await asked.correct(conn, frozenset(words_of(query.exact)))
        texts = await self.memory.texts(conn, [one.segment_id for one in segments])
        ranking = Ranking(
            asked.corpus(),
            asked.weights,
            Reader(conn, self.memory),
            _allowed(texts, query),
            _ordinals(texts, query.barred),
        )
        best = await ranking.best(query.most)
        hits = [
            Hit(int(texts[o.segment].chunk_ids[o.ordinal]), o.score)
            for o in best
            if o.segment in texts
        ]
        return Found(hits, asked.by_language(), asked.corrected)

    async def _having(
        self, conn: Connection, segments: Sequence[SegmentsRow], asked: Asked
    ) -> "Demanded":
        demands = {one.language: Demand.of(asked, one.language) for one in segments}
        words = _Asked(self.memory, segments, {})
        for language, demand in demands.items():
            await words.read(conn, language, demand.terms())
        texts = await self.memory.texts(conn, [one.segment_id for one in segments])
        among, barred = [], []
        for one in segments:
            if one.segment_id not in texts:
                continue
            demand, ids = demands[one.language], texts[one.segment_id].chunk_ids
            holders = Holders(one.segment_id, words.heads, Reader(conn, self.memory))
            meeting = await holders.meeting(demand)
            among.append(ids if meeting is None else ids[meeting])
            barred.append(ids[await holders.barred(demand)])
        return Demanded(_sorted(among) if asked.required else None, _sorted(barred))


@dataclass(frozen=True, slots=True)
class Demanded:
    """Chunks, sorted: the only ones that may fit, where a query insists on words, and some that do not."""

    among: NDArray[np.int64] | None
    barred: NDArray[np.int64]


def _sorted(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _allowed(
    texts: Mapping[int, Texts], query: KeywordQuery
) -> dict[int, NDArray[np.uint32]] | None:
    among = _ordinals(texts, query.among)
    if query.entries is None:
        return among
    listed = {segment: one.ordinals_in(query.entries) for segment, one in texts.items()}
    if among is None:
        return listed
    return {segment: np.intersect1d(listed[segment], ours) for segment, ours in among.items()}


def _ordinals(
    texts: Mapping[int, Texts], chunk_ids: NDArray[np.int64] | None
) -> dict[int, NDArray[np.uint32]] | None:
    if chunk_ids is None:
        return None
    return {segment: one.ordinals_of(chunk_ids) for segment, one in texts.items()}


@dataclass(slots=True)
class _Asked:
    """A query's words in the languages of the texts."""

    memory: Memory
    segments: Sequence[SegmentsRow]
    # For each word its terms in each language that does not call it a stop word.
    wanted: dict[str, dict[str, list[str]]]
    weights: dict[str, float] = field(default_factory=dict)
    heads: dict[tuple[int, str], Head] = field(default_factory=dict)
    corrected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    added: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, memory: Memory, query: KeywordQuery, segments: Sequence[SegmentsRow]) -> "_Asked":
        languages = sorted({one.language for one in segments})
        if query.language is not None:
            languages = [name for name in languages if name == query.language]
        wanted = {}
        for word in islice(dict.fromkeys(words_of(query.words)), _MOST_WORDS):
            found = {name: terms(word, name) for name in languages}
            if any(found.values()):
                wanted[word] = {name: list_ for name, list_ in found.items() if list_}
        asked = cls(memory, [one for one in segments if one.language in languages], wanted)
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
            await self.read(conn, language, names)

    async def correct(self, conn: Connection, exact: frozenset[str]) -> None:
        """Look for words that are written like those that are nowhere. A stop word is everywhere."""
        known = {term for _, term in self.heads}
        languages = {one.language for one in self.segments}
        strange = [
            word
            for word, found in self.wanted.items()
            if word not in exact
            and len(found) == len(languages)
            and not any(term in known for list_ in found.values() for term in list_)
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
                    await self.read(conn, language, names)

    def _segments_of(self, language: str) -> list[int]:
        return [one.segment_id for one in self.segments if one.language == language]

    async def read(self, conn: Connection, language: str, names: Iterable[str]) -> None:
        self.heads |= await self.memory.heads(conn, self._segments_of(language), names)

    def corpus(self) -> Corpus:
        return Corpus(
            sizes={one.segment_id: one.texts for one in self.segments},
            texts=sum(one.texts for one in self.segments),
            length=sum(one.length for one in self.segments),
            heads=self.heads,
            having=self._having(),
        )

    def _having(self) -> dict[str, int]:
        """Count the texts that have each word, in the form that it has in their language.

        Where it is a stop word, all of them are taken to have it. Else one text without a language
        among thousands in English would be first for whatever has "the" or "a" in it.
        """
        texts = Counter[str]()
        found = Counter[tuple[str, str]]()
        language_of = {one.segment_id: one.language for one in self.segments}
        for one in self.segments:
            texts[one.language] += one.texts
        for (segment, term), head in self.heads.items():
            found[language_of[segment], term] += head.texts
        having: dict[str, int] = {}
        for forms in self.wanted.values():
            count = sum(
                max(found[language, term] for term in forms[language])
                if language in forms
                else texts[language]
                for language in texts
            )
            for term in {term for list_ in forms.values() for term in list_}:
                having[term] = max(count, having.get(term, 0))
        return having
