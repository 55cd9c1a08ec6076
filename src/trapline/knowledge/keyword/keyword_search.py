"""Keyword search over the segments of one organisation: BM25 and boolean filters."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.keyword import spelling
from trapline.knowledge.keyword.analysis import ANALYSIS_VERSION, terms, words_of
from trapline.knowledge.keyword.boolean_filter import BooleanFilter, SegmentMatcher
from trapline.knowledge.keyword.ranking import Bm25Ranker, Corpus, PostingHead
from trapline.knowledge.keyword.segment_cache import PostingReader, SegmentCache, SegmentTexts
from trapline.knowledge.query_syntax import ParsedQuery
from trapline.knowledge.sql import keyword as queries
from trapline.knowledge.sql.keyword import ListSegmentsRow
from trapline.model import OrganisationId

# A pasted page may be a query; its first words say what it is about.
_MOST_WORDS: Final = 64
_MOST_TRIES: Final = 3
# How fast repeated query terms saturate: chosen over five collections (docs/benchmarks.md).
_K3: Final = 8.0
# Each correction reads part of the vocabulary.
_MOST_CORRECTED: Final = 4

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """A chunk and its BM25 score."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """A keyword query. All arrays are sorted.

    `language`: that of the words; None: every language of the organisation's texts. `allowed` and
    `entry_ids`: the only chunks and texts to search. `excluded`: chunks to leave out. With `tolerant`
    a word that no text has is replaced by similar ones, unless it is in `exact`.
    """

    words: str
    most: int = 10
    language: str | None = None
    allowed: NDArray[np.int64] | None = None
    excluded: NDArray[np.int64] | None = None
    entry_ids: NDArray[np.int64] | None = None
    tolerant: bool = True
    exact: str = ""

    def over(self, allowed: NDArray[np.int64]) -> "KeywordQuery":
        return replace(self, allowed=allowed)

    def for_most(self, most: int) -> "KeywordQuery":
        return replace(self, most=most)


@dataclass(frozen=True, slots=True)
class KeywordResult:
    """The best chunks, best first; the query's terms by language; the corrections by word."""

    hits: list[KeywordHit]
    terms: Mapping[str, frozenset[str]] = field(default_factory=dict)
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class KeywordIndex:
    """The keyword index with its cache; one for a process."""

    cache: SegmentCache = field(default_factory=SegmentCache)

    async def search(
        self, conn: Connection, organisation_id: OrganisationId, query: KeywordQuery
    ) -> KeywordResult:
        """Return the best chunks for a query, best first."""
        return await self._over_segments(
            conn, organisation_id, lambda segments: self._best(conn, segments, query)
        )

    async def boolean_matches(
        self, conn: Connection, organisation_id: OrganisationId, asked: ParsedQuery
    ) -> "BooleanMatches":
        """Return the chunks with the query's required words, and those with its excluded ones."""
        return await self._over_segments(
            conn, organisation_id, lambda segments: self._having(conn, segments, asked)
        )

    async def _over_segments(
        self,
        conn: Connection,
        organisation_id: OrganisationId,
        work: Callable[[Sequence[ListSegmentsRow]], Awaitable[_T]],
    ) -> _T:
        """Run work over all segments; again if a merge deleted some meanwhile."""
        for _ in range(_MOST_TRIES):
            reads = self.cache.reads
            segments = await queries.list_segments(
                conn, organisation_id=organisation_id, analysis_version=ANALYSIS_VERSION
            )
            found = await work(segments)
            if self.cache.reads == reads:
                break
            ids = [one.segment_id for one in segments]
            if await queries.count_segments(conn, segment_ids=ids) == len(ids):
                break
        return found

    async def _best(
        self, conn: Connection, segments: Sequence[ListSegmentsRow], query: KeywordQuery
    ) -> KeywordResult:
        asked = _QueryTerms.of(self.cache, query, segments)
        if not asked.wanted:
            return KeywordResult([])
        await asked.look_up(conn)
        if query.tolerant:
            await asked.correct(conn, frozenset(words_of(query.exact)))
        texts = await self.cache.texts(conn, [one.segment_id for one in asked.segments])
        ranking = Bm25Ranker(
            asked.corpus(),
            asked.weights,
            PostingReader(conn, self.cache),
            _allowed(texts, query),
            _ordinals(texts, query.excluded),
        )
        best = await ranking.best(query.most)
        hits = [
            KeywordHit(int(texts[o.segment].chunk_ids[o.ordinal]), o.score)
            for o in best
            if o.segment in texts
        ]
        return KeywordResult(hits, asked.by_language(), asked.corrected)

    async def _having(
        self, conn: Connection, segments: Sequence[ListSegmentsRow], asked: ParsedQuery
    ) -> "BooleanMatches":
        filters = {one.language: BooleanFilter.of(asked, one.language) for one in segments}
        words = _QueryTerms(self.cache, segments, {})
        for language, filter_ in filters.items():
            await words.read(conn, language, filter_.terms())
        texts = await self.cache.texts(conn, [one.segment_id for one in segments])
        allowed, excluded = [], []
        for one in segments:
            if one.segment_id not in texts:
                continue
            filter_, ids = filters[one.language], texts[one.segment_id].chunk_ids
            matcher = SegmentMatcher(one.segment_id, words.heads, PostingReader(conn, self.cache))
            matching = await matcher.matching(filter_)
            allowed.append(ids if matching is None else ids[matching])
            excluded.append(ids[await matcher.excluded(filter_)])
        return BooleanMatches(_sorted(allowed) if asked.required else None, _sorted(excluded))


@dataclass(frozen=True, slots=True)
class BooleanMatches:
    """Sorted chunks: those with the required words (None if nothing is required), and the excluded ones."""

    allowed: NDArray[np.int64] | None
    excluded: NDArray[np.int64]


def _sorted(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _allowed(
    texts: Mapping[int, SegmentTexts], query: KeywordQuery
) -> dict[int, NDArray[np.uint32]] | None:
    allowed = _ordinals(texts, query.allowed)
    if query.entry_ids is None:
        return allowed
    listed = {segment: one.ordinals_in(query.entry_ids) for segment, one in texts.items()}
    if allowed is None:
        return listed
    return {segment: np.intersect1d(listed[segment], ours) for segment, ours in allowed.items()}


def _ordinals(
    texts: Mapping[int, SegmentTexts], chunk_ids: NDArray[np.int64] | None
) -> dict[int, NDArray[np.uint32]] | None:
    if chunk_ids is None:
        return None
    return {segment: one.ordinals_of(chunk_ids) for segment, one in texts.items()}


def _term_weights(
    wanted: Mapping[str, Mapping[str, Sequence[str]]], counts: Mapping[str, int]
) -> dict[str, float]:
    """Return BM25's weight of each term by its frequency in the query, saturated by K3."""
    frequencies: dict[str, Counter[str]] = {}
    for word, forms in wanted.items():
        for language, list_ in forms.items():
            for term in set(list_):
                frequencies.setdefault(language, Counter())[term] += counts[word]
    most: Counter[str] = Counter()
    for of_language in frequencies.values():
        most |= of_language
    return {term: (_K3 + 1) * count / (_K3 + count) for term, count in most.items()}


@dataclass(slots=True)
class _QueryTerms:
    """A query's words in the languages of the texts."""

    cache: SegmentCache
    segments: Sequence[ListSegmentsRow]
    # For each word its terms in each language where it is no stop word.
    wanted: dict[str, dict[str, list[str]]]
    weights: dict[str, float] = field(default_factory=dict)
    heads: dict[tuple[int, str], PostingHead] = field(default_factory=dict)
    corrected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    added: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, cache: SegmentCache, query: KeywordQuery, segments: Sequence[ListSegmentsRow]
    ) -> "_QueryTerms":
        languages = sorted({one.language for one in segments})
        if query.language is not None:
            languages = [name for name in languages if name == query.language]
        counts = Counter(words_of(query.words))
        wanted = {}
        for word in islice(counts, _MOST_WORDS):
            found = {name: terms(word, name) for name in languages}
            if any(found.values()):
                wanted[word] = {name: list_ for name, list_ in found.items() if list_}
        asked = cls(cache, [one for one in segments if one.language in languages], wanted)
        asked.weights = _term_weights(wanted, counts)
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
        """Correct words that no text has. A stop word counts as one that all have."""
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
                meant = await spelling.corrections(conn, self._segments_of(language), term)
                if meant:
                    names = tuple(one.term for one in meant)
                    self.corrected[word] = self.corrected.get(word, ()) + names
                    self.weights |= {m.term: m.weight for m in meant if m.term not in self.weights}
                    self.added.setdefault(language, set()).update(names)
                    await self.read(conn, language, names)

    def _segments_of(self, language: str) -> list[int]:
        return [one.segment_id for one in self.segments if one.language == language]

    async def read(self, conn: Connection, language: str, names: Iterable[str]) -> None:
        self.heads |= await self.cache.heads(conn, self._segments_of(language), names)

    def corpus(self) -> Corpus:
        return Corpus(
            sizes={one.segment_id: one.texts for one in self.segments},
            texts=sum(one.texts for one in self.segments),
            length=sum(one.length for one in self.segments),
            heads=self.heads,
            having=self._having(),
        )

    def _having(self) -> dict[str, int]:
        """Count the texts that have each word, in the form of their language.

        Where it is a stop word, all texts count. Otherwise one text without a language among
        thousands in English would rank first for every query with "the" or "a".
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
