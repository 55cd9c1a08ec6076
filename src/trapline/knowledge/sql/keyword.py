"""Typed functions of keyword.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId


class SegmentsRow(Struct, frozen=True, gc=False):
    segment_id: int
    language: str
    texts: int
    length: int


class ChunkIdsRow(Struct, frozen=True, gc=False):
    segment_id: int
    chunk_ids: bytes
    entry_ids: bytes


class HeadsRow(Struct, frozen=True, gc=False):
    segment_id: int
    term: str
    texts: int
    most: int
    shortest: int
    starts: bytes | None
    postings: bytes


class PartsRow(Struct, frozen=True, gc=False):
    segment_id: int
    term: str
    postings: bytes


class CrowdedLanguagesRow(Struct, frozen=True, gc=False):
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
    """Begin a segment of the keyword index."""
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
    """Write parts of postings."""
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


_SEGMENTS: Final = """
-- name: Segments
SELECT id AS segment_id, language, texts, length
FROM knowledge.segment
WHERE organisation_id = $1 AND analysis_version = $2
ORDER BY id
"""


async def segments(
    conn: Connection, *, organisation_id: OrganisationId, analysis_version: int
) -> list[SegmentsRow]:
    """The segments of an organisation: what a query runs over."""
    return [
        SegmentsRow(*row) for row in await conn.fetch(_SEGMENTS, organisation_id, analysis_version)
    ]


_COUNT_SEGMENTS: Final = """
-- name: CountSegments
SELECT count(*) FROM knowledge.segment WHERE id = ANY($1::bigint[])
"""


async def count_segments(conn: Connection, *, segment_ids: Sequence[int]) -> int:
    """How many of these segments are still there."""
    value: int = await conn.fetchval(_COUNT_SEGMENTS, segment_ids)
    return value


_CHUNK_IDS: Final = """
-- name: ChunkIds
SELECT id AS segment_id, chunk_ids, entry_ids FROM knowledge.segment WHERE id = ANY($1::bigint[])
"""


async def chunk_ids(conn: Connection, *, segment_ids: Sequence[int]) -> list[ChunkIdsRow]:
    """Which chunks the ordinals of segments mean, and of which texts."""
    return [ChunkIdsRow(*row) for row in await conn.fetch(_CHUNK_IDS, segment_ids)]


_HEADS: Final = """
-- name: Heads
SELECT segment_id, term, texts, most, shortest, starts, postings
FROM knowledge.posting
WHERE
    segment_id = ANY($1::bigint[])
    AND term = ANY($2::text[])
    AND part = 0
"""


async def heads(
    conn: Connection, *, segment_ids: Sequence[int], terms: Sequence[str]
) -> list[HeadsRow]:
    """The first part of each term's postings in each segment."""
    return [HeadsRow(*row) for row in await conn.fetch(_HEADS, segment_ids, terms)]


_PARTS: Final = """
-- name: Parts
SELECT p.segment_id, p.term, p.postings
FROM unnest(
    $1::bigint[], $2::text[], $3::integer[]
) AS wanted (segment_id, term, part)
INNER JOIN knowledge.posting AS p
    ON wanted.segment_id = p.segment_id AND wanted.term = p.term AND wanted.part = p.part
ORDER BY p.segment_id, p.term, p.part
"""


async def parts(
    conn: Connection, *, segment_ids: Sequence[int], terms: Sequence[str], parts: Sequence[int]
) -> list[PartsRow]:
    """Further parts of postings, in order."""
    return [PartsRow(*row) for row in await conn.fetch(_PARTS, segment_ids, terms, parts)]


_CROWDED_LANGUAGES: Final = """
-- name: CrowdedLanguages
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


async def crowded_languages(
    conn: Connection, *, analysis_version: int, largest: int, many: int, most: int
) -> list[CrowdedLanguagesRow]:
    """Where an organisation has many segments of about the same size: each set is worth merging."""
    return [
        CrowdedLanguagesRow(*row)
        for row in await conn.fetch(_CROWDED_LANGUAGES, analysis_version, largest, many, most)
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
    """The next segments of all organisations, with the chunks that they are over."""
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
    """Hold segments that are to be merged; those that another merge took are not returned."""
    return [LockSegmentsRow(*row) for row in await conn.fetch(_LOCK_SEGMENTS, segment_ids)]


_MISSING_CHUNKS: Final = """
-- name: MissingChunks
SELECT wanted.id::bigint AS "id!"
FROM unnest($1::bigint[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM knowledge.chunk AS c WHERE c.id = wanted.id)
"""


async def missing_chunks(conn: Connection, *, chunk_ids: Sequence[int]) -> list[int]:
    """Which of these chunks are gone."""
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
    """Remove segments with their postings."""
    await conn.execute(_DROP_SEGMENTS, segment_ids)
