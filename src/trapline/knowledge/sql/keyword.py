"""Typed functions of keyword.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId


class ListSegmentsRow(Struct, frozen=True, gc=False):
    segment_id: int
    language: str
    texts: int
    length: int


class SegmentChunksRow(Struct, frozen=True, gc=False):
    segment_id: int
    chunk_ids: bytes
    entry_ids: bytes


class PostingHeadsRow(Struct, frozen=True, gc=False):
    segment_id: int
    term: str
    texts: int
    most: int
    shortest: int
    starts: bytes | None
    postings: bytes


class PostingPartsRow(Struct, frozen=True, gc=False):
    segment_id: int
    term: str
    postings: bytes


class MergeableSegmentsRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    language: str
    segment_ids: list[int]


class SegmentsAfterRow(Struct, frozen=True, gc=False):
    segment_id: int
    organisation_id: OrganisationId
    language: str
    chunk_ids: bytes


class LockSegmentsRow(Struct, frozen=True, gc=False):
    segment_id: int
    texts: int
    length: int
    chunk_ids: bytes
    entry_ids: bytes


class PostingsAfterRow(Struct, frozen=True, gc=False):
    term: str
    segment_id: int
    part: int
    postings: bytes


_ADD_SEGMENT: Final = """
-- name: AddSegment
INSERT INTO knowledge.segment (
    organisation_id, language, analysis_version, texts, length, chunk_ids, entry_ids
)
VALUES (
    $1, $2, $3, $4,
    $5, $6, $7
)
RETURNING id AS segment_id
"""


async def add_segment(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    language: str,
    analysis_version: int,
    texts: int,
    length: int,
    chunk_ids: bytes,
    entry_ids: bytes,
) -> int:
    """Insert a segment of the keyword index."""
    value: int = await conn.fetchval(
        _ADD_SEGMENT,
        organisation_id,
        language,
        analysis_version,
        texts,
        length,
        chunk_ids,
        entry_ids,
    )
    return value


_ADD_POSTINGS: Final = """
-- name: AddPostings
INSERT INTO knowledge.posting (
    organisation_id, segment_id, term, part, texts, most, shortest, starts, postings
)
SELECT $1, $2, term, part, texts, most, shortest, starts, postings
FROM unnest(
    $3::text[],
    $4::integer[],
    $5::integer[],
    $6::smallint[],
    $7::smallint[],
    $8::bytea[],
    $9::bytea[]
) AS new (term, part, texts, most, shortest, starts, postings)
"""


async def add_postings(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    segment_id: int,
    terms: Sequence[str],
    parts: Sequence[int],
    texts: Sequence[int],
    mosts: Sequence[int],
    shortests: Sequence[int],
    starts: Sequence[bytes | None] | None,
    postings: Sequence[bytes],
) -> None:
    """Insert parts of postings."""
    await conn.execute(
        _ADD_POSTINGS,
        organisation_id,
        segment_id,
        terms,
        parts,
        texts,
        mosts,
        shortests,
        starts,
        postings,
    )


_LIST_SEGMENTS: Final = """
-- name: ListSegments
SELECT id AS segment_id, language, texts, length
FROM knowledge.segment
WHERE organisation_id = $1 AND analysis_version = $2
ORDER BY id
"""


async def list_segments(
    conn: Connection, *, organisation_id: OrganisationId, analysis_version: int
) -> list[ListSegmentsRow]:
    """The segments of an organisation."""
    return [
        ListSegmentsRow(*row)
        for row in await conn.fetch(_LIST_SEGMENTS, organisation_id, analysis_version)
    ]


_MAIN_LANGUAGE: Final = """
-- name: MainLanguage
SELECT language FROM knowledge.segment
WHERE organisation_id = $1 AND language <> 'xx'
GROUP BY language
ORDER BY sum(texts) DESC, language
LIMIT 1
"""


async def main_language(conn: Connection, *, organisation_id: OrganisationId) -> str | None:
    """The language of most indexed texts of an organisation."""
    value: str | None = await conn.fetchval(_MAIN_LANGUAGE, organisation_id)
    return value


_COUNT_SEGMENTS: Final = """
-- name: CountSegments
SELECT count(*) FROM knowledge.segment WHERE id = ANY($1::bigint[])
"""


async def count_segments(conn: Connection, *, segment_ids: Sequence[int]) -> int:
    """How many of these segments still exist."""
    value: int = await conn.fetchval(_COUNT_SEGMENTS, segment_ids)
    return value


_SEGMENT_CHUNKS: Final = """
-- name: SegmentChunks
SELECT id AS segment_id, chunk_ids, entry_ids FROM knowledge.segment WHERE id = ANY($1::bigint[])
"""


async def segment_chunks(conn: Connection, *, segment_ids: Sequence[int]) -> list[SegmentChunksRow]:
    """The chunk and entry of each ordinal of segments."""
    return [SegmentChunksRow(*row) for row in await conn.fetch(_SEGMENT_CHUNKS, segment_ids)]


_POSTING_HEADS: Final = """
-- name: PostingHeads
SELECT segment_id, term, texts, most, shortest, starts, postings
FROM knowledge.posting
WHERE
    segment_id = ANY($1::bigint[])
    AND term = ANY($2::text[])
    AND part = 0
"""


async def posting_heads(
    conn: Connection, *, segment_ids: Sequence[int], terms: Sequence[str]
) -> list[PostingHeadsRow]:
    """The first part of each term's postings in each segment."""
    return [PostingHeadsRow(*row) for row in await conn.fetch(_POSTING_HEADS, segment_ids, terms)]


_POSTING_PARTS: Final = """
-- name: PostingParts
SELECT p.segment_id, p.term, p.postings
FROM unnest(
    $1::bigint[], $2::text[], $3::integer[]
) AS wanted (segment_id, term, part)
INNER JOIN knowledge.posting AS p
    ON wanted.segment_id = p.segment_id AND wanted.term = p.term AND wanted.part = p.part
ORDER BY p.segment_id, p.term, p.part
"""


async def posting_parts(
    conn: Connection, *, segment_ids: Sequence[int], terms: Sequence[str], parts: Sequence[int]
) -> list[PostingPartsRow]:
    """Further parts of postings, in order."""
    return [
        PostingPartsRow(*row) for row in await conn.fetch(_POSTING_PARTS, segment_ids, terms, parts)
    ]


_MERGEABLE_SEGMENTS: Final = """
-- name: MergeableSegments
SELECT
    organisation_id,
    language,
    array_agg(id ORDER BY id) AS segment_ids
FROM knowledge.segment
WHERE analysis_version = $1 AND texts < $2::integer
GROUP BY organisation_id, language, floor(log(8, greatest(texts, 8)))
HAVING count(*) >= $3::integer
ORDER BY count(*) DESC
LIMIT $4
"""


async def mergeable_segments(
    conn: Connection, *, analysis_version: int, largest: int, many: int, most: int
) -> list[MergeableSegmentsRow]:
    """Groups of many segments of similar size in one organisation and language."""
    return [
        MergeableSegmentsRow(*row)
        for row in await conn.fetch(_MERGEABLE_SEGMENTS, analysis_version, largest, many, most)
    ]


_SEGMENTS_AFTER: Final = """
-- name: SegmentsAfter
SELECT id AS segment_id, organisation_id, language, chunk_ids
FROM knowledge.segment
WHERE id > $1::bigint
ORDER BY id
LIMIT $2
"""


async def segments_after(conn: Connection, *, after: int, most: int) -> list[SegmentsAfterRow]:
    """The next segments of all organisations, with their chunks."""
    return [SegmentsAfterRow(*row) for row in await conn.fetch(_SEGMENTS_AFTER, after, most)]


_LOCK_SEGMENTS: Final = """
-- name: LockSegments
SELECT id AS segment_id, texts, length, chunk_ids, entry_ids
FROM knowledge.segment
WHERE id = ANY($1::bigint[])
ORDER BY id
FOR UPDATE SKIP LOCKED
"""


async def lock_segments(conn: Connection, *, segment_ids: Sequence[int]) -> list[LockSegmentsRow]:
    """Lock segments to merge; those that another merge has locked are not returned."""
    return [LockSegmentsRow(*row) for row in await conn.fetch(_LOCK_SEGMENTS, segment_ids)]


_MISSING_CHUNKS: Final = """
-- name: MissingChunks
SELECT wanted.id::bigint AS "id!"
FROM unnest($1::bigint[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM knowledge.chunk AS c WHERE c.id = wanted.id)
"""


async def missing_chunks(conn: Connection, *, chunk_ids: Sequence[int]) -> list[int]:
    """Those of these chunks that were deleted."""
    return [row[0] for row in await conn.fetch(_MISSING_CHUNKS, chunk_ids)]


_POSTINGS_AFTER: Final = """
-- name: PostingsAfter
SELECT term, segment_id, part, postings
FROM knowledge.posting
WHERE
    segment_id = ANY($1::bigint[])
    AND term > $2::text
    AND term <= $3::text
ORDER BY term, segment_id, part
"""


async def postings_after(
    conn: Connection, *, segment_ids: Sequence[int], after: str, until: str
) -> list[PostingsAfterRow]:
    """The postings of segments, in order of term, segment and part; a page of them."""
    return [
        PostingsAfterRow(*row)
        for row in await conn.fetch(_POSTINGS_AFTER, segment_ids, after, until)
    ]


_TERMS_AFTER: Final = """
-- name: TermsAfter
SELECT DISTINCT term FROM knowledge.posting
WHERE segment_id = ANY($1::bigint[]) AND part = 0 AND term > $2::text
ORDER BY term
LIMIT $3
"""


async def terms_after(
    conn: Connection, *, segment_ids: Sequence[int], after: str, most: int
) -> list[str]:
    """The next terms of segments, so that their postings can be read a page at a time."""
    return [row[0] for row in await conn.fetch(_TERMS_AFTER, segment_ids, after, most)]


_DROP_SEGMENTS: Final = """
-- name: DropSegments
DELETE FROM knowledge.segment WHERE id = ANY($1::bigint[])
"""


async def drop_segments(conn: Connection, *, segment_ids: Sequence[int]) -> None:
    """Delete segments with their postings."""
    await conn.execute(_DROP_SEGMENTS, segment_ids)
