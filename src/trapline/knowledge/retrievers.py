"""Retrievers: passages by keyword (BM25) and by vector (cosine), each with its own score."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.embedding.embedder import EmbeddingModel
from trapline.knowledge.filters import (
    FEW_CHUNKS,
    SearchScope,
    list_chunks,
    matching_chunks,
    primary_subtag,
)
from trapline.knowledge.keyword.keyword_search import KeywordIndex, KeywordQuery, KeywordResult
from trapline.knowledge.qdrant import Condition, Qdrant, match
from trapline.knowledge.qdrant_mirror import collection_of
from trapline.knowledge.sql import qdrant_mirror as mirror_queries
from trapline.knowledge.sql import search as queries
from trapline.knowledge.sql.search import SearchedModelsRow

ScoredChunks = list[tuple[int, float]]
"""Chunks with their scores, best first."""

# Beyond this many candidates it is cheaper to list what matches the filter.
_MOST_CANDIDATES: Final = 20_000
# The most that the index returns at a time.
_MOST_NEAREST: Final = 1_000
# The filter may match the best passages less often than the rest: ask for more.
_SPARE: Final = 1.5


@dataclass(frozen=True, slots=True)
class MirrorCopy:
    """A complete copy of a model's vectors in Qdrant."""

    qdrant: Qdrant
    collection: str


@dataclass(frozen=True, slots=True)
class SearchedModel:
    """A model whose vectors are searched; `indexed` if they have an HNSW index."""

    id: int
    model: EmbeddingModel
    indexed: bool
    copy: MirrorCopy | None = None

    @classmethod
    def of(cls, row: SearchedModelsRow, qdrant: Qdrant | None) -> "SearchedModel":
        """Search `qdrant` if its copy is complete."""
        model = EmbeddingModel(row.name, row.dimension, row.digest)
        copied = None
        if qdrant is not None and row.mirror_id is not None and row.mirror_url == qdrant.url:
            copied = MirrorCopy(qdrant, collection_of(row.mirror_id, model))
        return cls(row.model_id, model, row.indexed, copied)


async def by_keyword(
    conn: Connection, index: KeywordIndex, scope: SearchScope, query: KeywordQuery
) -> KeywordResult:
    """Rank the passages of a scope by BM25; return the best `query.most`."""
    if scope.chunk_ids is not None:
        return await index.search(conn, scope.organisation_id, query.over(scope.chunk_ids))
    query = replace(
        query, allowed=scope.required, excluded=scope.excluded, entry_ids=scope.entry_ids
    )
    if scope.entry_ids is not None:
        return await index.search(conn, scope.organisation_id, query)
    most = query.most
    limit = most if scope.filters.empty else math.ceil(most / scope.share * _SPARE)
    while limit <= _MOST_CANDIDATES:
        found = await index.search(conn, scope.organisation_id, query.for_most(limit))
        fits = await matching_chunks(conn, scope, [hit.chunk_id for hit in found.hits])
        hits = [hit for hit in found.hits if hit.chunk_id in fits]
        if len(hits) >= most or len(found.hits) < limit:
            return KeywordResult(hits[:most], found.terms, found.corrected)
        limit *= 8
    return await by_keyword(conn, index, await list_chunks(conn, scope), query)


async def by_vector(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    """Rank by cosine: exactly over few passages, by the model's index over many."""
    if scope.chunk_ids is not None:
        return await _of_listed(conn, searched, numbers, scope.chunk_ids.tolist(), most)
    if scope.required is not None or scope.excluded is not None:
        return await _of_allowed(conn, searched, numbers, scope, most)
    if scope.few:
        return await _of_few(conn, searched, numbers, scope, most)
    if searched.copy is not None:
        rank = _by_copy
    elif not searched.indexed:
        rank = _of_all
    else:
        rank = _by_index if scope.entry_ids is None else _of_entries
    return await rank(conn, searched, numbers, scope, most)


async def _of_listed(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    chunk_ids: Sequence[int],
    most: int,
) -> ScoredChunks:
    rows = await queries.nearest_among(
        conn, numbers=numbers, chunk_ids=chunk_ids, model_id=searched.id, most=most
    )
    return _in_order((row.chunk_id, row.score) for row in rows)


async def _of_few(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    """Rank all passages of some texts, exactly."""
    rows = await queries.nearest_of_entries(
        conn, numbers=numbers, entry_ids=_entry_ids(scope), model_id=searched.id, most=most
    )
    return _in_order((row.chunk_id, row.score) for row in rows)


def _entry_ids(scope: SearchScope) -> list[int]:
    return [] if scope.entry_ids is None else scope.entry_ids.tolist()


async def _by_index(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    found = await queries.nearest_by_index(
        conn,
        model_id=searched.id,
        dimension=searched.model.dimension,
        numbers=numbers,
        most=most,
        scanned=_MOST_CANDIDATES,
        **scope.arguments,
    )
    if len(found) < most and not scope.filters.empty:
        return await by_vector(conn, searched, numbers, await list_chunks(conn, scope), most)
    return _in_order((row.chunk_id, row.score) for row in found)


async def _of_entries(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    rows = await queries.nearest_in_entries_by_index(
        conn,
        model_id=searched.id,
        dimension=searched.model.dimension,
        numbers=numbers,
        most=most,
        scanned=_MOST_CANDIDATES,
        entry_ids=_entry_ids(scope),
    )
    if len(rows) < most:
        return await by_vector(conn, searched, numbers, await list_chunks(conn, scope), most)
    return _in_order((row.chunk_id, row.score) for row in rows)


async def _by_copy(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    """Rank by the copy, checked against PostgreSQL, and by the vectors that it lacks yet."""
    late = await mirror_queries.changed_chunks(conn, model_id=searched.id, most=FEW_CHUNKS + 1)
    copy = searched.copy
    if copy is None or len(late) > FEW_CHUNKS:
        return await by_vector(conn, replace(searched, copy=None), numbers, scope, most)
    new = await queries.nearest_among(
        conn, numbers=numbers, chunk_ids=late, model_id=searched.id, most=len(late)
    )
    must = _conditions(scope)
    limit = math.ceil(most / scope.share * _SPARE)
    while limit <= _MOST_CANDIDATES:
        found = await copy.qdrant.nearest(copy.collection, numbers, must, limit)
        every = dict(found) | {row.chunk_id: row.score for row in new}
        fits = await matching_chunks(conn, scope, list(every))
        hits = _in_order((chunk, score) for chunk, score in every.items() if chunk in fits)
        if len(hits) >= most or len(found) < limit:
            return hits[:most]
        limit *= 8
    return await by_vector(conn, searched, numbers, await list_chunks(conn, scope), most)


def _conditions(scope: SearchScope) -> list[Condition]:
    """The conditions that Qdrant checks; PostgreSQL checks the rest of the filter."""
    filters = scope.filters
    found = [match("organisation", [str(scope.organisation_id)])]
    for key, values in (
        ("source", [str(one) for one in filters.sources]),
        ("language", [primary_subtag(tag) for tag in filters.languages]),
        ("type", filters.types),
    ):
        if values:
            found.append(match(key, values))
    return found


async def _of_allowed(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    """Rank the nearest passages that have the required words and none of the excluded ones."""
    every = replace(scope, required=None, excluded=None)
    limit = _MOST_CANDIDATES if scope.few else min(most * 4, _MOST_NEAREST)
    found = await by_vector(conn, searched, numbers, every, limit)
    return [hit for hit in found if _allowed(scope, hit[0])][:most]


def _allowed(scope: SearchScope, chunk_id: int) -> bool:
    return (scope.required is None or _has(scope.required, chunk_id)) and (
        scope.excluded is None or not _has(scope.excluded, chunk_id)
    )


def _has(ids: NDArray[np.int64], chunk_id: int) -> bool:
    place = int(np.searchsorted(ids, chunk_id))
    return place < len(ids) and int(ids[place]) == chunk_id


def _in_order(hits: Iterable[tuple[int, float]]) -> ScoredChunks:
    """Sort hits: the index returns them almost in order. Ties are stable."""
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


async def _of_all(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: SearchScope,
    most: int,
) -> ScoredChunks:
    limit = most if scope.filters.empty else math.ceil(most / scope.share * _SPARE)
    while limit <= _MOST_CANDIDATES:
        rows = await queries.nearest_of_all(conn, numbers=numbers, model_id=searched.id, most=limit)
        fits = await matching_chunks(conn, scope, [row.chunk_id for row in rows])
        hits = _in_order((row.chunk_id, row.score) for row in rows if row.chunk_id in fits)
        if len(hits) >= most or len(rows) < limit:
            return hits[:most]
        limit *= 8
    return await by_vector(conn, searched, numbers, await list_chunks(conn, scope), most)
