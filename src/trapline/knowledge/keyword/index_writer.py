"""Index writer: adds segments to the keyword index, merges small ones and compacts sparse ones."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.knowledge.keyword.analysis import ANALYSIS_VERSION, term_counts
from trapline.knowledge.keyword.postings import Postings, unpack
from trapline.knowledge.keyword.ranking import posting_head
from trapline.knowledge.keyword.segments import Renumbering, build_segment, merge_postings, renumber
from trapline.knowledge.sql import keyword as queries
from trapline.model import OrganisationId

# Each merge rewrites its texts: with eight at a time a million texts are written seven times.
_MANY: Final = 8
_LARGEST: Final = 1_000_000
# A segment is rewritten when more than this share of its texts is deleted.
_SPARSE_SHARE: Final = 0.25
_SAMPLE: Final = 500
_SEGMENTS_A_LOOK: Final = 8
_TERMS_A_PAGE: Final = 2_000
_ROWS_A_STATEMENT: Final = 2_000


@dataclass(frozen=True, slots=True)
class ChunkText:
    """The indexed text of a chunk, and its entry."""

    entry_id: int
    text: str


async def add_segment(
    conn: Connection, organisation_id: OrganisationId, language: str, texts: Mapping[int, ChunkText]
) -> None:
    """Add a segment of texts by chunk, in the transaction that writes the chunks."""
    if not texts:
        return
    segment = build_segment(
        {chunk: term_counts(one.text, language) for chunk, one in texts.items()}
    )
    entry_ids = [texts[chunk].entry_id for chunk in segment.chunk_ids.tolist()]
    segment_id = await queries.add_segment(
        conn,
        organisation_id=organisation_id,
        language=language,
        analysis_version=ANALYSIS_VERSION,
        texts=len(segment.chunk_ids),
        length=segment.length,
        chunk_ids=segment.chunk_ids.tobytes(),
        entry_ids=np.array(entry_ids, np.int64).tobytes(),
    )
    await write_postings(conn, organisation_id, segment_id, segment.postings.items())


async def merge_segments(database: Database) -> int:
    """Merge groups of many segments of similar size; the next call merges more."""
    async with database.system_tx() as conn:
        crowded = await queries.mergeable_segments(
            conn, analysis_version=ANALYSIS_VERSION, largest=_LARGEST, many=_MANY, most=10
        )
    for one in crowded:
        async with database.system_tx() as conn:
            await _merge(conn, one.organisation_id, one.language, one.segment_ids)
    return len(crowded)


async def compact_segments(database: Database) -> int:
    """Rewrite segments with many deleted texts, judged by a sample."""
    after, renewed = 0, 0
    while True:
        async with database.system_tx() as conn:
            found = await queries.segments_after(conn, after=after, most=_SEGMENTS_A_LOOK)
            hollow = [one for one in found if await _is_sparse(conn, one.chunk_ids)]
        for one in hollow:
            async with database.system_tx() as conn:
                await _merge(conn, one.organisation_id, one.language, [one.segment_id])
        renewed += len(hollow)
        if len(found) < _SEGMENTS_A_LOOK:
            return renewed
        after = found[-1].segment_id


async def _is_sparse(conn: Connection, packed: bytes) -> bool:
    every = np.frombuffer(packed, np.int64)
    sample = every[:: max(1, len(every) // _SAMPLE)]
    gone = await queries.missing_chunks(conn, chunk_ids=sample.tolist())
    return len(gone) > len(sample) * _SPARSE_SHARE


async def _merge(
    conn: Connection, organisation_id: OrganisationId, language: str, segment_ids: Sequence[int]
) -> None:
    old = await queries.lock_segments(conn, segment_ids=segment_ids)
    if len(old) < len(segment_ids):
        return
    chunks = [np.frombuffer(one.chunk_ids, np.int64) for one in old]
    gone = await queries.missing_chunks(conn, chunk_ids=np.concatenate(chunks).tolist())
    new = renumber(chunks, gone)
    if not len(new.chunk_ids):
        await queries.drop_segments(conn, segment_ids=segment_ids)
        return
    kept = len(new.chunk_ids) / max(sum(one.texts for one in old), 1)
    segment_id = await queries.add_segment(
        conn,
        organisation_id=organisation_id,
        language=language,
        analysis_version=ANALYSIS_VERSION,
        texts=len(new.chunk_ids),
        # The mean length is only a scale: the deleted texts' share is estimated.
        length=round(sum(one.length for one in old) * kept),
        chunk_ids=new.chunk_ids.tobytes(),
        entry_ids=np.frombuffer(b"".join(one.entry_ids for one in old), np.int64)[
            new.alive
        ].tobytes(),
    )
    async for page in _merged_pages(conn, segment_ids, new):
        await write_postings(conn, organisation_id, segment_id, page)
    await queries.drop_segments(conn, segment_ids=segment_ids)


async def _merged_pages(
    conn: Connection, segment_ids: Sequence[int], new: Renumbering
) -> AsyncIterator[list[tuple[str, Postings]]]:
    numbers = {segment_id: number for number, segment_id in enumerate(sorted(segment_ids))}
    after = ""
    while terms := await queries.terms_after(
        conn, segment_ids=segment_ids, after=after, most=_TERMS_A_PAGE
    ):
        rows = await queries.postings_after(
            conn, segment_ids=segment_ids, after=after, until=terms[-1]
        )
        yield list(
            merge_postings(((r.term, numbers[r.segment_id], unpack(r.postings)) for r in rows), new)
        )
        after = terms[-1]


async def write_postings(
    conn: Connection,
    organisation_id: OrganisationId,
    segment_id: int,
    postings: Iterable[tuple[str, Postings]],
) -> None:
    rows = [row for term, whole in postings for row in _rows(term, whole)]
    for at in range(0, len(rows), _ROWS_A_STATEMENT):
        terms, parts, texts, mosts, shortests, starts, packed = zip(
            *rows[at : at + _ROWS_A_STATEMENT], strict=True
        )
        await queries.add_postings(
            conn,
            organisation_id=organisation_id,
            segment_id=segment_id,
            terms=terms,
            parts=parts,
            texts=texts,
            mosts=mosts,
            shortests=shortests,
            starts=starts,
            postings=packed,
        )


_Row = tuple[str, int, int, int, int, bytes | None, bytes]


def _rows(term: str, whole: Postings) -> Iterable[_Row]:
    head = posting_head(whole)
    starts = None if head.starts is None else head.starts.tobytes()
    yield term, 0, head.texts, head.most, head.shortest, starts, head.first.packed()
    if head.starts is not None:
        for number, part in enumerate(whole.parts()[1:], start=1):
            yield term, number, head.texts, head.most, head.shortest, None, part.packed()
