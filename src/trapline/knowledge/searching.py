"""Search: a query in, ranked passages or pages out, each with the reason for its rank."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

import numpy as np

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, NotFound, Unavailable
from trapline.knowledge import checking, fusion, legs, showing
from trapline.knowledge.asking import Asked, read
from trapline.knowledge.embedding.embedder import Embedder, Model, Vectors, unit
from trapline.knowledge.embedding.embedders import STATIC
from trapline.knowledge.filters import EVERYTHING, Filter, Scope, Widths, narrowed, scope_of
from trapline.knowledge.fusion import Leg, Method
from trapline.knowledge.keyword.analysis import language_of
from trapline.knowledge.keyword.searching import Found, KeywordIndex, KeywordQuery
from trapline.knowledge.legs import Ranked, SearchedModel
from trapline.knowledge.qdrant import Qdrant
from trapline.knowledge.showing import Granularity, Manner, Result
from trapline.knowledge.sql import searching as queries
from trapline.measure import Operation, Recorder
from trapline.model import OrganisationId, PageId
from trapline.settings import Settings

Mode = Literal["hybrid", "keyword", "vector"]

MOST_CHARACTERS: Final = 20_000
MOST_RESULTS: Final = 100
MOST_DEPTH: Final = 1_000
_LEAST_DEPTH: Final = 100
# Chosen on the odd queries of Cranfield: the light model knows less than the words do.
_OF_LIGHT: Final = 0.3
_OF_BETTER: Final = 0.5
# How many more passages are looked at where their text decides.
_SPARE: Final = 4


def share_of_meaning(model: Model) -> float:
    """How much of a hybrid search a model's vectors are by themselves (decision 063)."""
    return _OF_LIGHT if model.name == STATIC else _OF_BETTER


class Embedders(Protocol):
    """Gives the embedder of a model; None when it is not there."""

    def of(self, model: Model) -> Embedder | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for, and how."""

    words: str
    mode: Mode = "hybrid"
    method: Method = "weighted"
    keyword_weight: float | None = None
    vector_weight: float | None = None
    """By themselves, what suits the model of the texts."""
    wanted: Filter = EVERYTHING
    language: str | None = None
    """Of the words; every language of the texts is tried without it."""
    granularity: Granularity = "page"
    collapse: bool = True
    """Whether passages that say the same are shown once."""
    tolerant: bool = True
    most: int = 10
    depth: int = 0
    """How many passages each leg contributes; by itself, enough for a few pages of results."""
    after: tuple[float, int] | None = None
    """The score and the chunk of the last result that was seen."""

    def __post_init__(self) -> None:
        if not self.words.strip():
            raise InvalidInput("The query is empty: say what to search for.")
        if len(self.words) > MOST_CHARACTERS:
            raise InvalidInput(f"The query is longer than {MOST_CHARACTERS:,} characters.")
        if not 1 <= self.most <= MOST_RESULTS:
            raise InvalidInput(f"A search returns 1 to {MOST_RESULTS} results at a time.")
        given = [one for one in (self.keyword_weight, self.vector_weight) if one is not None]
        # What is not given is more than nothing.
        least = sum(given) if len(given) > 1 else 1.0
        if any(not 0 <= one < float("inf") for one in given) or not least:
            raise InvalidInput("Weights are not negative, and not both nothing.")

    @property
    def deep(self) -> int:
        return min(self.depth or max(_LEAST_DEPTH, 4 * self.most), MOST_DEPTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """One page of results; `more` says whether there are others after it."""

    items: list[Result]
    more: bool
    depth: int
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    milliseconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Searcher:
    """One for a process."""

    embedders: Embedders
    recorder: Recorder | None = None
    index: KeywordIndex = field(default_factory=KeywordIndex)
    qdrant: Qdrant | None = None
    """Where vectors are searched, if it has them all."""
    widths: Widths = field(default_factory=Widths)
    fallback: bool = True
    """Whether PostgreSQL is searched while that does not answer."""

    @classmethod
    def of(
        cls, settings: Settings, embedders: Embedders, recorder: Recorder | None = None
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
        self, conn: Connection, organisation_id: OrganisationId, query: Query
    ) -> Results:
        """Search in a transaction that sees the organisation's rows."""
        run = _Run(self, conn, organisation_id, query)
        scope = await run.demanded(await scope_of(conn, organisation_id, query.wanted, self.widths))
        if query.mode != "vector":
            await run.by_words(scope)
        if query.mode != "keyword":
            await run.by_meaning(scope)
        return await run.results()

    async def similar(
        self,
        conn: Connection,
        organisation_id: OrganisationId,
        to: "Likeness",
        *,
        wanted: Filter = EVERYTHING,
        most: int = 10,
    ) -> Results:
        """Find pages that are about the same as one that is searched."""
        entries = await queries.find_entries(
            conn,
            organisation_id=organisation_id,
            page_id=to.page_id,
            uri=to.uri,
            entry_id=to.entry_id,
        )
        if not entries:
            raise NotFound("There is no such page among those that are searched.")
        ids = [one.entry_id for one in entries]
        means = {
            row.model_id: unit(np.array([row.numbers], np.float32))
            for row in await queries.mean_vectors(conn, entry_ids=ids)
        }
        query = Query(words="similar", mode="vector", wanted=wanted, most=most, depth=0)
        run = _Run(self, conn, organisation_id, query)
        scope = await scope_of(conn, organisation_id, wanted, self.widths)
        for searched in await run.models():
            if searched.id in means:
                await run.near(scope, searched, means[searched.id])
        return await run.results(without=frozenset(ids))


@dataclass(frozen=True, slots=True)
class Likeness:
    """What pages are to be similar to: one of these."""

    page_id: PageId | None = None
    uri: str | None = None
    entry_id: int | None = None


@dataclass(slots=True)
class _Run:
    """One search, step by step."""

    searcher: Searcher
    conn: Connection
    organisation_id: OrganisationId
    query: Query
    legs: list[Leg] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    found: Found = field(default_factory=lambda: Found([]))
    warnings: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)
    asked: Asked = field(init=False)

    def __post_init__(self) -> None:
        self.asked = read(self.query.words)

    async def demanded(self, scope: Scope) -> Scope:
        """Make the scope narrower by the words that must be there and those that must not."""
        if self.asked.plain:
            return scope
        if not self.asked.words:
            self.warnings.append("The query only says what is not wanted: say what is, too.")
        demanded = await self.searcher.index.demanded(self.conn, self.organisation_id, self.asked)
        return await narrowed(self.conn, scope, demanded.among, demanded.barred)

    async def by_words(self, scope: Scope) -> None:
        query = self.query
        most = checking.MOST if self.asked.phrases else query.deep
        wanted = KeywordQuery(
            self.asked.words,
            most,
            None if query.language is None else language_of(query.language),
            tolerant=query.tolerant,
            exact=self.asked.exact,
        )
        begun = time.perf_counter()
        self.found = await legs.by_words(self.conn, self.searcher.index, scope, wanted)
        ranked = await self._as_asked([(hit.chunk_id, hit.score) for hit in self.found.hits])
        self._took("bm25", "search", begun)
        # It counts for what meaning leaves to it, which is known when all models were asked.
        self.legs.append(Leg("keyword", 1.0, ranked))
        if not self.found.terms and query.mode == "keyword" and self.asked.words:
            self.warnings.append("No word of the query is searched for: only stop words or signs.")

    async def _as_asked(self, ranked: Ranked) -> Ranked:
        """Leave out passages that lack a phrase; the index knows words and not their order."""
        if not self.asked.phrases:
            return ranked
        return await checking.holding(self.conn, self.asked, ranked, self.query.deep)

    async def by_meaning(self, scope: Scope) -> None:
        """One leg for each model that the texts are embedded with."""
        if not self.asked.words:
            return
        for searched in await self.models():
            embedder = self.searcher.embedders.of(searched.model)
            if embedder is None:
                self.warnings.append(
                    f"Texts embedded with {searched.model.name} are found by their words alone:"
                    " that model is not set up here."
                )
                continue
            begun = time.perf_counter()
            vectors = await embedder.embed([self.asked.words])
            self._took("embedding", searched.model.name, begun)
            await self.near(scope, searched, vectors)

    async def models(self) -> list[SearchedModel]:
        rows = await queries.searched_models(self.conn, organisation_id=self.organisation_id)
        return [SearchedModel.of(row, self.searcher.qdrant) for row in rows]

    async def near(self, scope: Scope, searched: SearchedModel, vectors: Vectors) -> None:
        if not vectors.any():
            # No word of it is known to the model: every passage would be as near as any other.
            return
        begun = time.perf_counter()
        most = self.query.deep * (_SPARE if self.asked.phrases else 1)
        ranked = await self._as_asked(await self._nearest(scope, searched, vectors, most))
        self._took("vector", "search", begun)
        several = any(leg.name.startswith("vector") for leg in self.legs)
        name = f"vector:{searched.model.name}" if several else "vector"
        share = share_of_meaning(searched.model)
        self.shares.append(share)
        self.legs.append(Leg(name, share, ranked))

    def _weighted(self) -> list[Leg]:
        """The legs, each with how much it counts."""
        query = self.query
        if query.mode != "hybrid":
            return [replace(leg, weight=1.0) for leg in self.legs]
        words = 1 - sum(self.shares) / len(self.shares) if self.shares else 1.0
        words = words if query.keyword_weight is None else query.keyword_weight
        return [
            replace(leg, weight=words)
            if leg.name == "keyword"
            else leg
            if query.vector_weight is None
            else replace(leg, weight=query.vector_weight)
            for leg in self.legs
        ]

    async def _nearest(
        self, scope: Scope, searched: SearchedModel, vectors: Vectors, most: int
    ) -> Ranked:
        numbers = vectors[0].tolist()
        try:
            return await legs.by_meaning(self.conn, searched, numbers, scope, most)
        except Unavailable as error:
            if searched.copy is None or not self.searcher.fallback:
                raise
            self.warnings.append(f"Vectors were searched in PostgreSQL. {error}")
        # It need not be waited for twice.
        searched = replace(searched, copy=None)
        return await legs.by_meaning(self.conn, searched, numbers, scope, most)

    async def results(self, without: frozenset[int] = frozenset()) -> Results:
        query = self.query
        scores = fusion.fuse(self._weighted(), query.method)
        candidates = showing.explained(scores, self.legs)
        manner = Manner(
            query.granularity, query.collapse, query.most, query.after, self.found.terms
        )
        items, more = await showing.page(self.conn, candidates, manner, without)
        return Results(
            items=items,
            more=more,
            depth=query.deep,
            corrected=self.found.corrected,
            warnings=tuple(self.warnings),
            milliseconds=self.times,
        )

    def _took(self, kind: str, name: str, begun: float) -> None:
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
