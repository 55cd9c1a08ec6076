"""LRU cache of segments: their chunk ids and postings. Segments are immutable, so it is never stale."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.keyword.postings import PART, Postings, concatenate, unpack
from trapline.knowledge.keyword.ranking import PostingHead
from trapline.knowledge.sql import keyword as queries
from trapline.knowledge.sql.keyword import PostingHeadsRow, SegmentChunksRow

_MOST_TEXTS: Final = 4_000_000
# Six bytes each: most queries use few, frequent terms.
_MOST_POSTINGS: Final = 10_000_000
# The overhead of a term, in postings.
_ENTRY: Final = 200

_WIDEST_TABLE: Final = 20_000_000

_Term = tuple[int, str]


@dataclass(frozen=True, slots=True)
class SegmentTexts:
    """The chunk and entry of each ordinal of a segment."""

    chunk_ids: NDArray[np.int64]
    order: NDArray[np.int64] | None
    entry_ids: NDArray[np.int64]
    # Whether entry_ids is sorted.
    grouped: bool

    @classmethod
    def of(cls, row: SegmentChunksRow) -> "SegmentTexts":
        ids = np.frombuffer(row.chunk_ids, np.int64)
        entry_ids = np.frombuffer(row.entry_ids, np.int64)
        ordered = bool(np.all(ids[1:] > ids[:-1]))
        grouped = bool(np.all(entry_ids[1:] >= entry_ids[:-1]))
        return cls(ids, None if ordered else np.argsort(ids), entry_ids, grouped)

    def ordinals_of(self, among: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The ordinals of these sorted chunks."""
        if not len(self.chunk_ids) or not len(among):
            return np.zeros(0, np.uint32)
        places = np.searchsorted(self.chunk_ids, among, sorter=self.order)
        places = np.minimum(places, len(self.chunk_ids) - 1)
        if self.order is not None:
            places = self.order[places]
        return np.sort(places[self.chunk_ids[places] == among]).astype(np.uint32)

    def ordinals_in(self, entries: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The ordinals of the chunks of these sorted entries."""
        if not len(entries) or not len(self.entry_ids):
            return np.zeros(0, np.uint32)
        if self.grouped:
            return _ranges(
                np.searchsorted(self.entry_ids, entries),
                np.searchsorted(self.entry_ids, entries, "right"),
            )
        # A table is faster than sorting: entries that are indexed together have near ids.
        first, last = int(self.entry_ids.min()), int(self.entry_ids.max())
        if last - first > _WIDEST_TABLE:
            return np.flatnonzero(np.isin(self.entry_ids, entries)).astype(np.uint32)
        wanted = np.zeros(last - first + 1, np.bool_)
        near = entries[np.searchsorted(entries, first) : np.searchsorted(entries, last, "right")]
        wanted[near - first] = True
        return np.flatnonzero(wanted[self.entry_ids - first]).astype(np.uint32)


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint32]:
    """All numbers from each start to its end."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return (np.repeat(starts - before, lengths) + np.arange(lengths.sum())).astype(np.uint32)


@dataclass(slots=True)
class _CachedTerm:
    """What was read of a term in a segment; `head` is None when it is not there."""

    head: PostingHead | None
    rest: Postings | None = None

    def __len__(self) -> int:
        first = 0 if self.head is None else len(self.head.first)
        return _ENTRY + first + (0 if self.rest is None else len(self.rest))


@dataclass(slots=True)
class SegmentCache:
    """The latest used, as far as there is room.

    Nothing is looked up in it that was not named by the reader's own, visible segments. A segment
    has a number of its own for ever, so that what is remembered of it is never out of date.
    """

    _texts: OrderedDict[int, SegmentTexts] = field(default_factory=OrderedDict)
    _terms: OrderedDict[_Term, _CachedTerm] = field(default_factory=OrderedDict)
    _size: int = 0
    reads: int = 0
    """The number of cache misses."""

    async def texts(self, conn: Connection, segment_ids: Sequence[int]) -> dict[int, SegmentTexts]:
        unknown = [segment for segment in segment_ids if segment not in self._texts]
        if unknown:
            self.reads += 1
            for row in await queries.segment_chunks(conn, segment_ids=unknown):
                self._texts[row.segment_id] = SegmentTexts.of(row)
        found = {segment: self._texts[segment] for segment in segment_ids if segment in self._texts}
        for segment in found:
            self._texts.move_to_end(segment)
        while sum(len(t.chunk_ids) for t in self._texts.values()) > _MOST_TEXTS:
            if len(self._texts) <= len(found):
                break
            self._texts.popitem(last=False)
        return found

    async def heads(
        self, conn: Connection, segment_ids: Sequence[int], names: Iterable[str]
    ) -> dict[_Term, PostingHead]:
        """The posting heads of terms in segments, in one round trip at most."""
        wanted = list(product(segment_ids, names))
        unknown = [term for term in wanted if term not in self._terms]
        fresh: dict[_Term, PostingHead] = {}
        if unknown:
            self.reads += 1
            rows = await queries.posting_heads(
                conn,
                segment_ids=sorted({segment for segment, _ in unknown}),
                terms=sorted({name for _, name in unknown}),
            )
            fresh = {(row.segment_id, row.term): _head(row) for row in rows}
        known = {term: self._terms[term].head for term in wanted if term in self._terms}
        for term in known:
            self._terms.move_to_end(term)
        for term in unknown:
            self._keep(term, _CachedTerm(fresh.get(term)))
        return fresh | {term: head for term, head in known.items() if head is not None}

    def rest(self, term: _Term) -> Postings | None:
        """The cached postings of a term without its first part."""
        found = self._terms.get(term)
        return None if found is None else found.rest

    def keep_rest(self, term: _Term, rest: Postings) -> None:
        known = self._terms.get(term)
        if known is not None and known.rest is None and len(rest) <= _MOST_POSTINGS // 4:
            self._keep(term, _CachedTerm(known.head, rest))

    def _keep(self, term: _Term, known: _CachedTerm) -> None:
        before = self._terms.pop(term, None)
        self._size += len(known) - (0 if before is None else len(before))
        self._terms[term] = known
        while self._size > _MOST_POSTINGS:
            _, gone = self._terms.popitem(last=False)
            self._size -= len(gone)


def _head(row: PostingHeadsRow) -> PostingHead:
    starts = None if row.starts is None else np.frombuffer(row.starts, np.uint32)
    return PostingHead(row.texts, row.most, row.shortest, unpack(row.postings), starts)


@dataclass(frozen=True, slots=True)
class PostingReader:
    """Reads parts of postings; cache misses in one round trip."""

    conn: Connection
    cache: SegmentCache

    async def __call__(
        self, wanted: Mapping[_Term, Sequence[int]]
    ) -> Mapping[_Term, list[Postings]]:
        found: dict[_Term, list[Postings]] = {}
        missing: dict[_Term, Sequence[int]] = {}
        for term, parts in wanted.items():
            rest = self.cache.rest(term)
            if rest is None:
                missing[term] = parts
            elif isinstance(parts, range):
                found[term] = [rest]
            else:
                found[term] = [rest.part((n - 1) * PART, n * PART) for n in parts]
        return found | await self._read(missing)

    async def _read(self, wanted: Mapping[_Term, Sequence[int]]) -> dict[_Term, list[Postings]]:
        if not wanted:
            return {}
        self.cache.reads += 1
        every = [(segment, term, part) for (segment, term), ps in wanted.items() for part in ps]
        segment_ids, terms, parts = zip(*every, strict=True)
        rows = await queries.posting_parts(
            self.conn, segment_ids=segment_ids, terms=terms, parts=parts
        )
        found: dict[_Term, list[Postings]] = {}
        for row in rows:
            found.setdefault((row.segment_id, row.term), []).append(unpack(row.postings))
        for term, pieces in found.items():
            # A range means all of them.
            if isinstance(wanted[term], range):
                found[term] = [concatenate(pieces)]
                self.cache.keep_rest(term, found[term][0])
        return found
