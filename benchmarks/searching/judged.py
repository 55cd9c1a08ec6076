"""Search quality: the abstracts through the real index, beside other ways to rank them."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import bm25s
import numpy as np
import Stemmer

from benchmarks.searching.cranfield import Cranfield, Quality, Ranked
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge import passage_index
from trapline.knowledge.chunking import ChunkSize, passages
from trapline.knowledge.embedding.embedder import Embedder, EmbeddingModel
from trapline.knowledge.fusion import Method, RankedList, fuse
from trapline.knowledge.passage_index import IndexableText, IndexEntry, SourceGeneration
from trapline.knowledge.results import Result
from trapline.knowledge.search import Searcher, SearchQuery
from trapline.model import OrganisationId, SourceId

# An abstract is one passage, as it is one document for the others.
WHOLE = ChunkSize(4096, 0)
WEIGHTS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)
BATCH = 200


@dataclass(frozen=True, slots=True)
class Only:
    """The one embedder of a run."""

    embedder: Embedder

    def of(self, model: EmbeddingModel) -> Embedder | None:
        return self.embedder if model == self.embedder.model else None


@dataclass(frozen=True, slots=True)
class Judged:
    """The collection in the index of one organisation, with one embedder."""

    database: Database
    organisation_id: OrganisationId
    data: Cranfield
    embedder: Embedder

    async def index(self) -> None:
        source_id = SourceId(uuid4())
        async with self.database.system_tx() as conn:
            await conn.execute(
                "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
                " VALUES ($1, $2, 'file', 'Cranfield', 'cran.all.1400')",
                source_id,
                self.organisation_id,
            )
        place = SourceGeneration(self.organisation_id, source_id, 0)
        texts = list(zip(self.data.titles, self.data.bodies, strict=True))
        for at in range(0, len(texts), BATCH):
            ready = [
                await self._ready(at + number, title, body)
                for number, (title, body) in enumerate(texts[at : at + BATCH], start=1)
            ]
            async with self.database.system_tx() as conn:
                await passage_index.store_entries(conn, place, ready, self.embedder.model)

    async def _ready(self, number: int, title: str, body: str) -> IndexableText:
        # One of them is empty: its title stands for it.
        cut = list(passages(body or title or "nothing", WHOLE))[:1]
        vectors = await self.embedder.embed([passage_index.indexed_text(title, one) for one in cut])
        digest = hashlib.sha256(f"{number}".encode()).digest()
        return IndexableText(
            IndexEntry(uri=str(number), title=title, language="en", content_hash=digest),
            cut,
            vectors,
        )

    async def found(self, **wishes: object) -> dict[int, list[Result]]:
        """Ask every query through the real search."""
        searcher = Searcher(Only(self.embedder))
        found: dict[int, list[Result]] = {}
        async with self.database.tenant_tx(self.organisation_id) as conn:
            for number, words in enumerate(self.data.queries, start=1):
                query = SearchQuery(words=words, most=100, depth=100, collapse=False, **wishes)  # type: ignore[arg-type]
                results = await searcher.search(conn, self.organisation_id, query)
                found[number] = results.items
        return found

    async def rankings(self, **wishes: object) -> dict[int, Ranked]:
        found = await self.found(**wishes)
        return {number: _numbers(items) for number, items in found.items()}

    def best_weight(self, legs: "Legs", method: Method) -> float:
        """Choose the weight of meaning on the odd queries."""
        quality = {}
        for weight in WEIGHTS:
            mixed = {number: legs.fused(number, method, weight) for number in self.data.relevant}
            quality[weight] = self.data.quality(mixed, even=False).ndcg
        return max(quality, key=lambda weight: quality[weight])

    async def exact_vectors(self) -> dict[int, Ranked]:
        """Compare every query with every abstract, in full precision."""
        texts = [
            passage_index.indexed_text(
                title, next(iter(passages(body or title or "nothing", WHOLE)))
            )
            for title, body in zip(self.data.titles, self.data.bodies, strict=True)
        ]
        scores = await self.embedder.embed(self.data.queries) @ (await self.embedder.embed(texts)).T
        return _ranked(scores)

    async def full_text(self) -> dict[int, Ranked]:
        """PostgreSQL's own: ts_rank_cd over what has any of the words."""
        async with self.database.system_tx() as conn:
            await conn.execute("CREATE TEMP TABLE abstract (number integer, words tsvector)")
            await conn.executemany(
                "INSERT INTO abstract VALUES ($1, to_tsvector('english', $2))",
                [
                    (number, f"{title}\n{body}")
                    for number, (title, body) in enumerate(
                        zip(self.data.titles, self.data.bodies, strict=True), start=1
                    )
                ],
            )
            found = {}
            for number, words in enumerate(self.data.queries, start=1):
                rows = await conn.fetch(
                    "SELECT number FROM abstract, (SELECT replace(plainto_tsquery('english', $1)::text,"
                    " ' & ', ' | ')::tsquery AS q) AS asked WHERE words @@ q"
                    " ORDER BY ts_rank_cd(words, q) DESC, number LIMIT 100",
                    words,
                )
                found[number] = [row["number"] for row in rows]
            await conn.execute("DROP TABLE abstract")
        return found


@dataclass(frozen=True, slots=True)
class Legs:
    """What words and meaning found, each for itself."""

    words: Mapping[int, list[Result]]
    meaning: Mapping[int, list[Result]]

    def fused(self, query: int, method: Method, weight: float) -> Ranked:
        """As the search itself does it."""
        scores = fuse(
            [
                RankedList("keyword", 1 - weight, _scored(self.words[query], "keyword")),
                RankedList("vector", weight, _scored(self.meaning[query], "vector")),
            ],
            method,
        )
        return sorted(scores, key=lambda number: -scores[number])


def _scored(items: Sequence[Result], leg: str) -> list[tuple[int, float]]:
    return [(int(one.uri), one.reasons[leg].score) for one in items]


def _numbers(items: Sequence[Result]) -> Ranked:
    return [int(one.uri) for one in items]


def peer_bm25(data: Cranfield) -> dict[int, Ranked]:
    """bm25s with its own English stop words and the same stemmer."""
    stemmer = Stemmer.Stemmer("english")
    texts = [f"{title}\n{body}" for title, body in zip(data.titles, data.bodies, strict=True)]
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False),
        show_progress=False,
    )
    asked = bm25s.tokenize(data.queries, stopwords="en", stemmer=stemmer, show_progress=False)
    places, _ = index.retrieve(asked, k=100, show_progress=False)
    return {number: [int(one) + 1 for one in row] for number, row in enumerate(places, start=1)}


def _ranked(scores: np.ndarray) -> dict[int, Ranked]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :100] + 1
    return {number: row.tolist() for number, row in enumerate(order, start=1)}


def row(name: str, data: Cranfield, rankings: Mapping[int, Ranked]) -> dict[str, object]:
    """One line of the table: over all queries, and over the even ones."""
    every, even = data.quality(rankings), data.quality(rankings, even=True)
    return {
        "ranking": name,
        "nDCG@10": every.ndcg,
        "recall@100": every.recall,
        "nDCG@10 even": even.ndcg,
        "recall@100 even": even.recall,
    }


def even(data: Cranfield, rankings: Mapping[int, Ranked]) -> Quality:
    return data.quality(rankings, even=True)


async def together(
    database: Database, tiers: Sequence[tuple[str, Embedder]]
) -> tuple[list[dict[str, object]], dict[str, float]]:
    """Measure all rankings; one organisation a tier, so that each has its own index."""
    data = Cranfield.read()
    peers = await asyncio.to_thread(peer_bm25, data)
    rows, figures = [row("bm25s", data, peers)], {}
    for number, (tier, embedder) in enumerate(tiers):
        async with database.system_tx() as conn:
            own = (await tenancy.create_organisation(conn, f"cranfield {tier}")).id
        judged = Judged(database, own, data, embedder)
        await judged.index()
        words = await judged.found(mode="keyword")
        if number == 0:
            ranked = {query: _numbers(items) for query, items in words.items()}
            rows += [row("keyword", data, ranked)]
            rows += [row("ts_rank_cd", data, await judged.full_text())]
            figures["bm25_minus_bm25s"] = data.quality(ranked).ndcg - data.quality(peers).ndcg
        more, measured = await _tier(judged, tier, words)
        rows += more
        figures |= measured
    return rows, figures


async def _tier(
    judged: Judged, tier: str, words: Mapping[int, list[Result]]
) -> tuple[list[dict[str, object]], dict[str, float]]:
    data = judged.data
    legs = Legs(words, await judged.found(mode="vector"))
    meaning = {query: _numbers(items) for query, items in legs.meaning.items()}
    rows = [
        row(f"vectors, exact: {tier}", data, await judged.exact_vectors()),
        row(f"vector: {tier}", data, meaning),
    ]
    by_words = {query: _numbers(items) for query, items in words.items()}
    best_leg = max(even(data, by_words).ndcg, even(data, meaning).ndcg)
    figures: dict[str, float] = {}
    methods: tuple[Method, ...] = ("weighted", "rrf")
    for method in methods:
        weight = judged.best_weight(legs, method)
        mixed = await judged.rankings(
            method=method, keyword_weight=1 - weight, vector_weight=weight
        )
        rows.append(row(f"hybrid, {method}, {weight:g} of {tier}", data, mixed))
        figures[f"hybrid_{method}_minus_best_leg_{tier}"] = even(data, mixed).ndcg - best_leg
        figures[f"hybrid_{method}_{tier}"] = data.quality(mixed).ndcg
    figures[f"hybrid_minus_best_leg_{tier}"] = figures[f"hybrid_weighted_minus_best_leg_{tier}"]
    default = await judged.rankings()
    rows.append(row(f"hybrid as it is by default: {tier}", data, default))
    return rows, figures
