"""Searches the keyword index of one organisation."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.keyword.analysis import ANALYSIS_VERSION, terms
from trapline.knowledge.keyword.postings import Postings, unpacked
from trapline.knowledge.keyword.ranking import Corpus, Head, Ranking
from trapline.knowledge.sql import keyword as queries
from trapline.knowledge.sql.keyword import HeadsRow, SegmentsRow
from trapline.model import OrganisationId

_CACHED_TEXTS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk and its BM25 score."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """`language` is that of the words, else every language of the organisation's texts is tried.

    `among`, sorted, are the only chunks wanted.
    """

    words: str
    most: int = 10
    language: str | None = None
    among: NDArray[np.int64] | None = None


@dataclass(slots=True)
class KeywordIndex:
    """Remembers which chunks the ordinals of segments mean: that never changes."""

    _chunks: OrderedDict[int, NDArray[np.int64]] = field(default_factory=OrderedDict)

    async def search(
        self, conn: Connection, organisation_id: OrganisationId, query: KeywordQuery
    ) -> list[Hit]:
        """Return the best chunks for a query, best first."""
        segments = await queries.segments(
            conn, organisation_id=organisation_id, analysis_version=ANALYSIS_VERSION
        )
        languages = {one.language for one in segments}
        if query.language is not None:
            languages &= {query.language}
        wanted = {name: set(terms(query.words, name)) for name in languages}
        weights = dict.fromkeys(set().union(*wanted.values()), 1.0)
        if not weights:
            return []
        chunks = await self._chunk_ids(conn, [one.segment_id for one in segments])
        ranking = Ranking(await _corpus(conn, segments, wanted), weights, _Reader(conn))
        allowed = None
        if query.among is not None:
            allowed = {segment: np.isin(ids, query.among) for segment, ids in chunks.items()}
        best = await ranking.best(query.most, allowed)
        return [Hit(int(chunks[one.segment][one.ordinal]), one.score) for one in best]

    async def _chunk_ids(
        self, conn: Connection, segment_ids: Sequence[int]
    ) -> dict[int, NDArray[np.int64]]:
        unknown = [segment for segment in segment_ids if segment not in self._chunks]
        if unknown:
            for row in await queries.chunk_ids(conn, segment_ids=unknown):
                self._chunks[row.segment_id] = np.frombuffer(row.chunk_ids, np.int64)
        found = {segment: self._chunks[segment] for segment in segment_ids}
        for segment in segment_ids:
            self._chunks.move_to_end(segment)
        while sum(map(len, self._chunks.values())) > _CACHED_TEXTS and len(self._chunks) > 1:
            self._chunks.popitem(last=False)
        return found


async def _corpus(
    conn: Connection, segments: Sequence[SegmentsRow], wanted: Mapping[str, set[str]]
) -> Corpus:
    rows: list[HeadsRow] = []
    for language, names in wanted.items():
        of_language = [one.segment_id for one in segments if one.language == language]
        if of_language and names:
            rows += await queries.heads(conn, segment_ids=of_language, terms=sorted(names))
    return Corpus(
        sizes={one.segment_id: one.texts for one in segments if one.language in wanted},
        texts=sum(one.texts for one in segments),
        length=sum(one.length for one in segments),
        heads={(row.segment_id, row.term): _head(row) for row in rows},
    )


def _head(row: HeadsRow) -> Head:
    starts = None if row.starts is None else np.frombuffer(row.starts, np.uint32)
    return Head(row.texts, row.most, row.shortest, unpacked(row.postings), starts)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads parts of postings in one round trip."""

    conn: Connection

    async def __call__(
        self, wanted: Mapping[tuple[int, str], Sequence[int]]
    ) -> Mapping[tuple[int, str], list[Postings]]:
        every = [
            (segment, term, part) for (segment, term), parts in wanted.items() for part in parts
        ]
        segment_ids, terms_, parts = zip(*every, strict=True)
        rows = await queries.parts(self.conn, segment_ids=segment_ids, terms=terms_, parts=parts)
        found: dict[tuple[int, str], list[Postings]] = {}
        for row in rows:
            found.setdefault((row.segment_id, row.term), []).append(unpacked(row.postings))
        return found
