"""The two ways to find passages, each by its own measure: by their words, and by their meaning."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.embedding.embedder import Model
from trapline.knowledge.filters import SMALL, Scope, fitting, listed, primary
from trapline.knowledge.keyword.searching import Found, KeywordIndex, KeywordQuery
from trapline.knowledge.mirroring import collection_of
from trapline.knowledge.qdrant import Condition, Qdrant, match
from trapline.knowledge.sql import mirroring as mirror_queries
from trapline.knowledge.sql import searching as queries
from trapline.knowledge.sql.searching import SearchedModelsRow

Ranked = list[tuple[int, float]]
"""Chunks with their scores, best first."""

# Beyond this many candidates it is cheaper to list what fits the filter.
_MOST_CANDIDATES: Final = 20_000
# The index gives no more at a time.
_MOST_NEAREST: Final = 1_000
# How much a filter may fit the best matches worse than it fits the rest.
_SPARE: Final = 1.5


@dataclass(frozen=True, slots=True)
class Copy:
    """A whole copy of a model's vectors."""

    qdrant: Qdrant
    collection: str


@dataclass(frozen=True, slots=True)
class SearchedModel:
    """A model whose vectors are searched; `indexed` when an HNSW index is over them."""

    id: int
    model: Model
    indexed: bool
    copy: Copy | None = None

    @classmethod
    def of(cls, row: SearchedModelsRow, qdrant: Qdrant | None) -> "SearchedModel":
        """`qdrant` is searched where it has a whole copy."""
        model = Model(row.name, row.dimension, row.digest)
        copied = None
        if qdrant is not None and row.mirror_id is not None and row.mirror_url == qdrant.url:
            copied = Copy(qdrant, collection_of(row.mirror_id, model))
        return cls(row.model_id, model, row.indexed, copied)


async def by_words(
    conn: Connection, index: KeywordIndex, scope: Scope, query: KeywordQuery
) -> Found:
    """Rank by BM25. `query.most` passages of the scope are returned, if there are so many."""
    if scope.among is not None:
        return await index.search(conn, scope.organisation_id, query.over(scope.among))
    query = replace(query, among=scope.only, barred=scope.barred, entries=scope.entries)
    if scope.entries is not None:
        return await index.search(conn, scope.organisation_id, query)
    most = query.most
    asked = most if scope.wanted.empty else math.ceil(most / scope.share * _SPARE)
    while asked <= _MOST_CANDIDATES:
        found = await index.search(conn, scope.organisation_id, query.for_most(asked))
        fits = await fitting(conn, scope, [hit.chunk_id for hit in found.hits])
        hits = [hit for hit in found.hits if hit.chunk_id in fits]
        if len(hits) >= most or len(found.hits) < asked:
            return Found(hits[:most], found.terms, found.corrected)
        asked *= 8
    return await by_words(conn, index, await listed(conn, scope), query)


async def by_meaning(
    conn: Connection, searched: SearchedModel, numbers: Sequence[float], scope: Scope, most: int
) -> Ranked:
    """Rank by cosine: exactly over few passages, by the model's index over many."""
    if scope.among is not None:
        return await _of_listed(conn, searched, numbers, scope.among.tolist(), most)
    if scope.only is not None or scope.barred is not None:
        return await _of_allowed(conn, searched, numbers, scope, most)
    if scope.few:
        return await _of_few(conn, searched, numbers, scope, most)
    if searched.copy is not None:
        rank = _by_copy
    elif not searched.indexed:
        rank = _of_all
    else:
        rank = _by_index if scope.entries is None else _of_entries
    return await rank(conn, searched, numbers, scope, most)


async def _of_listed(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    chunk_ids: Sequence[int],
    most: int,
) -> Ranked:
    rows = await queries.nearest_among(
        conn, numbers=numbers, chunk_ids=chunk_ids, model_id=searched.id, most=most
    )
    return _in_order((row.chunk_id, row.score) for row in rows)


async def _of_few(
    conn: Connection, searched: SearchedModel, numbers: Sequence[float], scope: Scope, most: int
) -> Ranked:
    """Rank all passages of some texts, exactly."""
    rows = await queries.nearest_of_entries(
        conn, numbers=numbers, entry_ids=_entry_ids(scope), model_id=searched.id, most=most
    )
    return _in_order((row.chunk_id, row.score) for row in rows)


def _entry_ids(scope: Scope) -> list[int]:
    return [] if scope.entries is None else scope.entries.tolist()


async def _by_index(
    conn: Connection, searched: SearchedModel, numbers: Sequence[float], scope: Scope, most: int
) -> Ranked:
    found = await queries.nearest(
        conn,
        model_id=searched.id,
        dimension=searched.model.dimension,
        numbers=numbers,
        most=most,
        scanned=_MOST_CANDIDATES,
        **scope.arguments,
    )
    if len(found) < most and not scope.wanted.empty:
        return await by_meaning(conn, searched, numbers, await listed(conn, scope), most)
    return _in_order((row.chunk_id, row.score) for row in found)


async def _of_entries(
    conn: Connection, searched: SearchedModel, numbers: Sequence[float], scope: Scope, most: int
) -> Ranked:
    rows = await queries.nearest_in_entries(
        conn,
        model_id=searched.id,
        dimension=searched.model.dimension,
        numbers=numbers,
        most=most,
        scanned=_MOST_CANDIDATES,
        entry_ids=_entry_ids(scope),
    )
    if len(rows) < most:
        return await by_meaning(conn, searched, numbers, await listed(conn, scope), most)
    return _in_order((row.chunk_id, row.score) for row in rows)


async def _by_copy(
    conn: Connection,
    searched: SearchedModel,
    numbers: Sequence[float],
    scope: Scope,
    most: int,
) -> Ranked:
    """Rank by the copy, whose answer counts as far as PostgreSQL agrees, and by what it lacks yet."""
    late = await mirror_queries.changed_chunks(conn, model_id=searched.id, most=SMALL + 1)
    copy = searched.copy
    if copy is None or len(late) > SMALL:
        return await by_meaning(conn, replace(searched, copy=None), numbers, scope, most)
    new = await queries.nearest_among(
        conn, numbers=numbers, chunk_ids=late, model_id=searched.id, most=len(late)
    )
    must = _conditions(scope)
    asked = math.ceil(most / scope.share * _SPARE)
    while asked <= _MOST_CANDIDATES:
        found = await copy.qdrant.nearest(copy.collection, numbers, must, asked)
        every = dict(found) | {row.chunk_id: row.score for row in new}
        fits = await fitting(conn, scope, list(every))
        hits = _in_order((chunk, score) for chunk, score in every.items() if chunk in fits)
        if len(hits) >= most or len(found) < asked:
            return hits[:most]
        asked *= 8
    return await by_meaning(conn, searched, numbers, await listed(conn, scope), most)


def _conditions(scope: Scope) -> list[Condition]:
    """What a point must have; the rest of the filter is checked where the texts are."""
    wanted = scope.wanted
    found = [match("organisation", [str(scope.organisation_id)])]
    for key, values in (
        ("source", [str(one) for one in wanted.sources]),
        ("language", [primary(tag) for tag in wanted.languages]),
        ("type", wanted.types),
    ):
        if values:
            found.append(match(key, values))
    return found


async def _of_allowed(
    conn: Connection, searched: SearchedModel, numbers: Sequence[float], scope: Scope, most: int
) -> Ranked:
    """Rank the nearest of all, and leave out what a query's words rule out."""
    every = replace(scope, only=None, barred=None)
    asked = _MOST_CANDIDATES if scope.few else min(most * 4, _MOST_NEAREST)
    found = await by_meaning(conn, searched, numbers, every, asked)
    return [hit for hit in found if _allowed(scope, hit[0])][:most]


def _allowed(scope: Scope, chunk_id: int) -> bool:
    return (scope.only is None or _has(scope.only, chunk_id)) and (
        scope.barred is None or not _has(scope.barred, chunk_id)
    )


def _has(ids: NDArray[np.int64], chunk_id: int) -> bool:
    place = int(np.searchsorted(ids, chunk_id))
    return place < len(ids) and int(ids[place]) == chunk_id


def _in_order(hits: Iterable[tuple[int, float]]) -> Ranked:
    """The index gives them almost in order; what is equally near keeps one order."""
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


async def _of_all(
    conn: Connection, searched: SearchedModel, numbers: Sequence[float], scope: Scope, most: int
) -> Ranked:
    asked = most if scope.wanted.empty else math.ceil(most / scope.share * _SPARE)
    while asked <= _MOST_CANDIDATES:
        rows = await queries.nearest_of_all(conn, numbers=numbers, model_id=searched.id, most=asked)
        fits = await fitting(conn, scope, [row.chunk_id for row in rows])
        hits = _in_order((row.chunk_id, row.score) for row in rows if row.chunk_id in fits)
        if len(hits) >= most or len(rows) < asked:
            return hits[:most]
        asked *= 8
    return await by_meaning(conn, searched, numbers, await listed(conn, scope), most)
