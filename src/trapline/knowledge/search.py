"""Hybrid search: a query in, ranked passages or pages out, each with its rank by keyword and vector."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

import numpy as np

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, NotFound, Unavailable
from trapline.knowledge import fusion, phrase_match, retrievers
from trapline.knowledge import results as result_pages
from trapline.knowledge.embedding.embedder import Embedder, EmbeddingModel, Vectors, normalise
from trapline.knowledge.embedding.embedders import STATIC
from trapline.knowledge.filters import (
    NO_FILTER,
    FilterEstimates,
    SearchFilter,
    SearchScope,
    narrow,
    resolve_scope,
)
from trapline.knowledge.fusion import Method, RankedList
from trapline.knowledge.keyword.analysis import language_of
from trapline.knowledge.keyword.keyword_search import KeywordIndex, KeywordQuery, KeywordResult
from trapline.knowledge.qdrant import Qdrant
from trapline.knowledge.query_syntax import ParsedQuery, parse
from trapline.knowledge.results import Granularity, Result, ResultOptions
from trapline.knowledge.retrievers import ScoredChunks, SearchedModel
from trapline.knowledge.sql import search as queries
from trapline.measure import Operation, Recorder
from trapline.model import OrganisationId, PageId
from trapline.settings import VectorSettings

Mode = Literal["hybrid", "keyword", "vector"]

MOST_CHARACTERS: Final = 20_000
MOST_RESULTS: Final = 100
MOST_DEPTH: Final = 1_000
_LEAST_DEPTH: Final = 100
# Chosen on the odd queries of Cranfield: the static model is weaker than BM25.
_OF_LIGHT: Final = 0.3
_OF_BETTER: Final = 0.5
# How many times more passages are read where a phrase decides.
_SPARE: Final = 4


def default_vector_weight(model: EmbeddingModel) -> float:
    """The default weight of a model's vectors in hybrid search (decision 063)."""
    return _OF_LIGHT if model.name == STATIC else _OF_BETTER


class EmbedderLookup(Protocol):
    """Returns the embedder of a model; None if it is not installed."""

    def of(self, model: EmbeddingModel) -> Embedder | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query, its filters and how to rank."""

    words: str
    mode: Mode = "hybrid"
    method: Method = "weighted"
    keyword_weight: float | None = None
    vector_weight: float | None = None
    """None: the default weight of the texts' model."""
    filters: SearchFilter = NO_FILTER
    language: str | None = None
    """The language of the words; None: every language of the texts."""
    granularity: Granularity = "page"
    collapse: bool = True
    """Whether identical passages are shown once."""
    tolerant: bool = True
    most: int = 10
    depth: int = 0
    """How many passages each retriever contributes; 0: enough for a few pages of results."""
    after: tuple[float, int] | None = None
    """The score and chunk of the last result of the page before."""

    def __post_init__(self) -> None:
        if not self.words.strip():
            raise InvalidInput("The query is empty: say what to search for.")
        if len(self.words) > MOST_CHARACTERS:
            raise InvalidInput(f"The query is longer than {MOST_CHARACTERS:,} characters.")
        if not 1 <= self.most <= MOST_RESULTS:
            raise InvalidInput(f"A search returns 1 to {MOST_RESULTS} results at a time.")
        given = [one for one in (self.keyword_weight, self.vector_weight) if one is not None]
        # A weight that is not given is positive.
        least = sum(given) if len(given) > 1 else 1.0
        if any(not 0 <= one < float("inf") for one in given) or not least:
            raise InvalidInput("Weights must not be negative, nor both zero.")

    @property
    def deep(self) -> int:
        return min(self.depth or max(_LEAST_DEPTH, 4 * self.most), MOST_DEPTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """One page of results; `more` if there is a next page."""

    items: list[Result]
    more: bool
    depth: int
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    milliseconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Searcher:
    """One for a process."""

    embedders: EmbedderLookup
    recorder: Recorder | None = None
    index: KeywordIndex = field(default_factory=KeywordIndex)
    qdrant: Qdrant | None = None
    """Where vectors are searched, if its copy is complete."""
    estimates: FilterEstimates = field(default_factory=FilterEstimates)
    fallback: bool = True
    """Whether PostgreSQL is searched while Qdrant does not answer."""

    @classmethod
    def of(
        cls, settings: VectorSettings, embedders: EmbedderLookup, recorder: Recorder | None = None
    ) -> "Searcher":
        return cls(
            embedders,
            recorder,
            qdrant=Qdrant.of(settings),
            fallback=settings.qdrant_fallback,
        )

    async def aclose(self) -> None:
        if self.qdrant is not None:
            await self.qdrant.aclose()

    async def search(
        self, conn: Connection, organisation_id: OrganisationId, query: SearchQuery
    ) -> SearchResults:
        """Search in a transaction that sees the organisation's rows."""
        run = _Run(self, conn, organisation_id, query)
        scope = await run.restrict(
            await resolve_scope(conn, organisation_id, query.filters, self.estimates)
        )
        if query.mode != "vector":
            await run.search_keywords(scope)
        if query.mode != "keyword":
            await run.search_vectors(scope)
        return await run.results()

    async def similar(
        self,
        conn: Connection,
        organisation_id: OrganisationId,
        to: "SimilarTo",
        *,
        filters: SearchFilter = NO_FILTER,
        most: int = 10,
    ) -> SearchResults:
        """Find pages similar to an indexed page, by the mean of its vectors."""
        entries = await queries.find_entries(
            conn,
            organisation_id=organisation_id,
            page_id=to.page_id,
            uri=to.uri,
            entry_id=to.entry_id,
        )
        if not entries:
            raise NotFound("No indexed page matches: index it first, or check its id or URL.")
        ids = [one.entry_id for one in entries]
        means = {
            row.model_id: normalise(np.array([row.numbers], np.float32))
            for row in await queries.mean_vectors(conn, entry_ids=ids)
        }
        query = SearchQuery(words="similar", mode="vector", filters=filters, most=most, depth=0)
        run = _Run(self, conn, organisation_id, query)
        scope = await resolve_scope(conn, organisation_id, filters, self.estimates)
        for searched in await run.models():
            if searched.id in means:
                await run.rank_by_vector(scope, searched, means[searched.id])
        return await run.results(without=frozenset(ids))


@dataclass(frozen=True, slots=True)
class SimilarTo:
    """The page to compare with: one of these."""

    page_id: PageId | None = None
    uri: str | None = None
    entry_id: int | None = None


@dataclass(slots=True)
class _Run:
    """One search, step by step."""

    searcher: Searcher
    conn: Connection
    organisation_id: OrganisationId
    query: SearchQuery
    rankings: list[RankedList] = field(default_factory=list)
    vector_weights: list[float] = field(default_factory=list)
    keyword_result: KeywordResult = field(default_factory=lambda: KeywordResult([]))
    warnings: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)
    parsed: ParsedQuery = field(init=False)

    def __post_init__(self) -> None:
        self.parsed = parse(self.query.words)

    async def restrict(self, scope: SearchScope) -> SearchScope:
        """Narrow the scope by the query's required and excluded words."""
        if self.parsed.plain:
            return scope
        if not self.parsed.words:
            self.warnings.append("The query has only exclusions: add words to search for.")
        demanded = await self.searcher.index.boolean_matches(
            self.conn, self.organisation_id, self.parsed
        )
        return await narrow(self.conn, scope, demanded.allowed, demanded.excluded)

    async def search_keywords(self, scope: SearchScope) -> None:
        query = self.query
        most = phrase_match.MOST_READ if self.parsed.phrases else query.deep
        wanted = KeywordQuery(
            self.parsed.words,
            most,
            None if query.language is None else language_of(query.language),
            tolerant=query.tolerant,
            exact=self.parsed.exact,
        )
        begun = time.perf_counter()
        self.keyword_result = await retrievers.by_keyword(
            self.conn, self.searcher.index, scope, wanted
        )
        ranked = await self._with_phrases(
            [(hit.chunk_id, hit.score) for hit in self.keyword_result.hits]
        )
        self._record_time("bm25", "search", begun)
        # Its weight is set when the weights of all models are known.
        self.rankings.append(RankedList("keyword", 1.0, ranked))
        if not self.keyword_result.terms and query.mode == "keyword" and self.parsed.words:
            self.warnings.append("The query has only stop words or signs: no word is searched for.")

    async def _with_phrases(self, ranked: ScoredChunks) -> ScoredChunks:
        """Drop passages that lack a phrase; the index has words, not their order."""
        if not self.parsed.phrases:
            return ranked
        return await phrase_match.filter_by_phrases(self.conn, self.parsed, ranked, self.query.deep)

    async def search_vectors(self, scope: SearchScope) -> None:
        """Add a ranking for each model of the texts."""
        if not self.parsed.words:
            return
        for searched in await self.models():
            embedder = self.searcher.embedders.of(searched.model)
            if embedder is None:
                self.warnings.append(
                    f"Texts embedded with {searched.model.name} are found by keyword only:"
                    " that model is not set up here."
                )
                continue
            begun = time.perf_counter()
            vectors = await embedder.embed([self.parsed.words])
            self._record_time("embedding", searched.model.name, begun)
            await self.rank_by_vector(scope, searched, vectors)

    async def models(self) -> list[SearchedModel]:
        rows = await queries.searched_models(self.conn, organisation_id=self.organisation_id)
        return [SearchedModel.of(row, self.searcher.qdrant) for row in rows]

    async def rank_by_vector(
        self, scope: SearchScope, searched: SearchedModel, vectors: Vectors
    ) -> None:
        if not vectors.any():
            # The model knows no word of the query: every passage would be equally near.
            return
        begun = time.perf_counter()
        most = self.query.deep * (_SPARE if self.parsed.phrases else 1)
        ranked = await self._with_phrases(await self._nearest(scope, searched, vectors, most))
        self._record_time("vector", "search", begun)
        several = any(ranking.name.startswith("vector") for ranking in self.rankings)
        name = f"vector:{searched.model.name}" if several else "vector"
        weight = default_vector_weight(searched.model)
        self.vector_weights.append(weight)
        self.rankings.append(RankedList(name, weight, ranked))

    def _weighted(self) -> list[RankedList]:
        """The rankings with their weights."""
        query = self.query
        if query.mode != "hybrid":
            return [replace(ranking, weight=1.0) for ranking in self.rankings]
        words = (
            1 - sum(self.vector_weights) / len(self.vector_weights) if self.vector_weights else 1.0
        )
        words = words if query.keyword_weight is None else query.keyword_weight
        return [
            replace(ranking, weight=words)
            if ranking.name == "keyword"
            else ranking
            if query.vector_weight is None
            else replace(ranking, weight=query.vector_weight)
            for ranking in self.rankings
        ]

    async def _nearest(
        self, scope: SearchScope, searched: SearchedModel, vectors: Vectors, most: int
    ) -> ScoredChunks:
        numbers = vectors[0].tolist()
        try:
            return await retrievers.by_vector(self.conn, searched, numbers, scope, most)
        except Unavailable as error:
            if searched.copy is None or not self.searcher.fallback:
                raise
            self.warnings.append(f"Vectors were searched in PostgreSQL. {error}")
        # Do not wait for Qdrant a second time.
        searched = replace(searched, copy=None)
        return await retrievers.by_vector(self.conn, searched, numbers, scope, most)

    async def results(self, without: frozenset[int] = frozenset()) -> SearchResults:
        query = self.query
        scores = fusion.fuse(self._weighted(), query.method)
        candidates = result_pages.rank_candidates(scores, self.rankings)
        options = ResultOptions(
            query.granularity, query.collapse, query.most, query.after, self.keyword_result.terms
        )
        items, more = await result_pages.result_page(self.conn, candidates, options, without)
        return SearchResults(
            items=items,
            more=more,
            depth=query.deep,
            corrected=self.keyword_result.corrected,
            warnings=tuple(self.warnings),
            milliseconds=self.times,
        )

    def _record_time(self, kind: str, name: str, begun: float) -> None:
        milliseconds = (time.perf_counter() - begun) * 1000
        self.times[kind] = self.times.get(kind, 0.0) + milliseconds
        if self.searcher.recorder is not None:
            self.searcher.recorder.operation(
                Operation(
                    type=kind,
                    name=name,
                    organisation_id=self.organisation_id,
                    milliseconds=milliseconds,
                )
            )
