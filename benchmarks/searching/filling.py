"""Fills the index: through the real write path, or, for what would take too long, beside it.

Beside it means: the same rows by COPY as the owner, and postings sorted by numpy from the numbers
of words instead of from text. Both ways leave the same tables behind.
"""

import hashlib
import struct
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from benchmarks.searching.corpus import DIMENSION, PASSAGES, TYPES, Batch, Corpus, types_of
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.knowledge import passage_index
from trapline.knowledge.chunking import Passage
from trapline.knowledge.keyword.analysis import ANALYSIS_VERSION
from trapline.knowledge.keyword.index_writer import write_postings
from trapline.knowledge.keyword.postings import Postings, length_codes
from trapline.knowledge.passage_index import IndexableText, IndexEntry, SourceGeneration
from trapline.knowledge.sql import keyword as queries

_NAMES = list(TYPES)
_DATED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Library:
    """The index of one organisation."""

    database: Database
    place: SourceGeneration
    corpus: Corpus

    async def write(self, batches: Iterator[Batch], texts: int = 40) -> float:
        """Write passages as a worker does, so many texts a transaction; return the seconds."""
        spent = 0.0
        for batch in batches:
            ready = list(self._indexables(batch))
            begun = time.perf_counter()
            for at in range(0, len(ready), texts):
                async with self.database.system_tx() as conn:
                    some = ready[at : at + texts]
                    await passage_index.store_entries(conn, self.place, some, self.corpus.model)
            spent += time.perf_counter() - begun
        return spent

    def _indexables(self, batch: Batch) -> Iterator[IndexableText]:
        words = self._texts(batch)
        kinds = types_of(np.arange(batch.first, batch.first + len(batch)) // PASSAGES)
        for at in range(0, len(batch), PASSAGES):
            cut = [Passage(text, text, 0, len(text), (), 100) for text in words[at : at + PASSAGES]]
            number = (batch.first + at) // PASSAGES
            entry = IndexEntry(
                uri=f"https://bench.test/{number}",
                path=f"/{number}",
                content_hash=hashlib.sha256(str(number).encode()).digest(),
                language="en",
                content_type=_NAMES[kinds[at]],
                dated_at=_DATED,
            )
            yield IndexableText(entry, cut, batch.vectors[at : at + PASSAGES])

    def _texts(self, batch: Batch) -> list[str]:
        vocabulary = np.array(self.corpus.vocabulary, dtype=object)
        every = vocabulary[batch.words]
        starts = [0, *batch.ends[:-1].tolist()]
        return [
            " ".join(every[start:end])
            for start, end in zip(starts, batch.ends.tolist(), strict=True)
        ]

    async def copy(self, batches: Iterator[Batch]) -> None:
        """Write passages by COPY, and their postings as one segment a batch."""
        async with self.database.owner() as conn:
            model_id = await conn.fetchval(
                "SELECT model_id FROM knowledge.generation WHERE source_id = $1",
                self.place.source_id,
            )
            for batch in batches:
                async with conn.transaction():
                    await self._copy(conn, model_id, batch)

    async def _copy(self, conn: OwnConnection, model_id: int, batch: Batch) -> None:
        entries, chunks = await _reserved(conn, len(batch) // PASSAGES, len(batch))
        owner = self.place.organisation_id
        for table, columns, records in (
            ("entry", _ENTRY, self._entries(batch, entries)),
            ("chunk", _CHUNK, self._chunks(batch, entries, chunks)),
        ):
            await conn.copy_records_to_table(
                table, schema_name="knowledge", columns=columns.split(), records=records
            )
        await conn.copy_to_table(
            "vector",
            schema_name="knowledge",
            columns=_VECTOR.split(),
            source=_binary(batch.vectors, chunks, entries, owner.bytes, model_id),
            format="binary",
        )
        segment_id = await queries.add_segment(
            conn,
            organisation_id=owner,
            language="en",
            analysis_version=ANALYSIS_VERSION,
            texts=len(batch),
            length=int(batch.lengths.sum()),
            chunk_ids=np.arange(chunks, chunks + len(batch), dtype=np.int64).tobytes(),
            entry_ids=(entries + np.arange(len(batch), dtype=np.int64) // PASSAGES).tobytes(),
        )
        await write_postings(conn, owner, segment_id, _postings(self.corpus, batch))

    def _entries(self, batch: Batch, entries: int) -> Iterator[tuple[object, ...]]:
        place = (self.place.organisation_id, self.place.source_id, 0)
        first = batch.first // PASSAGES
        kinds = types_of(np.arange(first, first + len(batch) // PASSAGES))
        for n, kind in enumerate(kinds):
            name = f"/{first + n}"
            digest = hashlib.sha256(name[1:].encode()).digest()
            uri = f"https://bench.test{name}"
            yield (entries + n, *place, uri, name, "en", _NAMES[kind], digest, _DATED)

    def _chunks(self, batch: Batch, entries: int, chunks: int) -> Iterator[tuple[object, ...]]:
        place = (self.place.organisation_id, self.place.source_id)
        for n, text in enumerate(self._texts(batch)):
            entry, ordinal = divmod(n, PASSAGES)
            digest = hashlib.sha256(text.encode()).digest()
            where = (entries + entry, ordinal, 0, len(text))
            yield (chunks + n, *place, *where, [], text, 100, digest)


_ENTRY = (
    "id organisation_id source_id generation uri path language content_type content_hash dated_at"
)
_CHUNK = (
    "id organisation_id source_id entry_id ordinal starts_at ends_at headings words tokens hash"
)
_VECTOR = "chunk_id organisation_id model_id entry_id embedding"


async def _reserved(conn: OwnConnection, entries: int, chunks: int) -> tuple[int, int]:
    """Take ids from the sequences; return the first of each."""
    found = []
    for table, count in (("entry", entries), ("chunk", chunks)):
        last = await conn.fetchval(
            "SELECT setval(s, nextval(s) + $2) FROM pg_get_serial_sequence($1, 'id') AS s",
            f"knowledge.{table}",
            count,
        )
        found.append(last - count)
    return found[0], found[1]


def _postings(corpus: Corpus, batch: Batch) -> Iterator[tuple[str, Postings]]:
    """Sort the words of a batch into postings."""
    ordinals = np.repeat(np.arange(len(batch), dtype=np.int64), batch.lengths)
    keys, counts = np.unique(batch.words.astype(np.int64) << 32 | ordinals, return_counts=True)
    words, texts = keys >> 32, (keys & 0xFFFFFFFF).astype(np.uint32)
    every = Postings(
        texts,
        np.minimum(counts, 255).astype(np.uint8),
        length_codes(batch.lengths)[texts],
    )
    edges = np.flatnonzero(np.diff(words)) + 1
    starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(words)]
    for start, end in zip(starts, ends, strict=True):
        yield corpus.vocabulary[int(words[start])], every.part(start, end)


async def _binary(
    vectors: NDArray[np.float32], chunks: int, entries: int, owner: bytes, model_id: int
) -> AsyncIterator[bytes]:
    """Rows of vectors as COPY's binary format has them, made by numpy."""
    size = 4 + 2 * DIMENSION
    kind = np.dtype(
        [
            ("fields", ">i2"), ("chunk_size", ">i4"), ("chunk", ">i8"), ("owner_size", ">i4"),
            ("owner", "V16"), ("model_size", ">i4"), ("model", ">i4"), ("entry_size", ">i4"),
            ("entry", ">i8"), ("vector_size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"),
            ("numbers", ">f2", DIMENSION),
        ]
    )  # fmt: skip
    rows = np.zeros(len(vectors), kind)
    numbers = np.arange(len(vectors))
    for name, value in {
        "fields": 5, "chunk_size": 8, "chunk": chunks + numbers, "owner_size": 16,
        "owner": np.void(owner), "model_size": 4, "model": model_id, "entry_size": 8,
        "entry": entries + numbers // PASSAGES, "vector_size": size, "dimension": DIMENSION,
        "numbers": vectors,
    }.items():  # fmt: skip
        rows[name] = value
    yield b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
    for at in range(0, len(rows), 1000):
        yield rows[at : at + 1000].tobytes()
    yield struct.pack(">h", -1)
