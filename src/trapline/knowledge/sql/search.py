"""Typed functions of search.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import ApplicationId, OrganisationId, PageId, SiteId, SourceId


class SearchedModelsRow(Struct, frozen=True, gc=False):
    model_id: int
    name: str
    dimension: int
    digest: str
    indexed: bool
    mirror_id: UUID | None
    mirror_url: str | None


class FilterChunksRow(Struct, frozen=True, gc=False):
    chunk_id: int
    entry_id: int


class NearestByIndexRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestAmongRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestOfEntriesRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestInEntriesByIndexRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestOfAllRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class ChunkEntriesRow(Struct, frozen=True, gc=False):
    chunk_id: int
    entry_id: int
    hash: bytes
    content_hash: bytes
    uri: str


class ChunkDetailsRow(Struct, frozen=True, gc=False):
    chunk_id: int
    entry_id: int
    source_id: SourceId
    ordinal: int
    starts_at: int
    ends_at: int
    headings: list[str]
    words: str
    tokens: int
    hash: bytes
    uri: str
    path: str
    title: str | None
    language: str
    content_type: str | None
    page_id: PageId | None
    version_id: int | None
    content_hash: bytes
    dated_at: datetime
    source_name: str
    source_kind: str
    site_id: SiteId | None
    application_id: ApplicationId | None


class ChunkTextsRow(Struct, frozen=True, gc=False):
    chunk_id: int
    headings: list[str]
    words: str
    title: str | None
    language: str


class FindEntriesRow(Struct, frozen=True, gc=False):
    entry_id: int
    title: str | None
    uri: str


class MeanVectorsRow(Struct, frozen=True, gc=False):
    model_id: int
    numbers: list[float]


class SimilarTermsRow(Struct, frozen=True, gc=False):
    term: str
    texts: int


class ModelsToIndexRow(Struct, frozen=True, gc=False):
    model_id: int
    dimension: int
    vectors: int


_SEARCHED_MODELS: Final = """
-- name: SearchedModels
SELECT
    m.id AS model_id, m.name, m.dimension, m.digest, (i.indexrelid IS NOT NULL)::boolean AS "indexed!",
    copy.id AS mirror_id, copy.url AS mirror_url
FROM knowledge.model AS m
LEFT JOIN knowledge.mirror AS copy ON copy.whole_at IS NOT NULL
LEFT JOIN pg_catalog.pg_index AS i
    ON i.indexrelid = to_regclass('knowledge.vector_hnsw_' || m.id) AND i.indisvalid
WHERE
    m.organisation_id = $1
    AND EXISTS (
        SELECT FROM knowledge.generation AS g
        INNER JOIN knowledge.source AS s ON g.source_id = s.id AND g.generation = s.generation
        WHERE g.model_id = m.id
    )
ORDER BY m.id
"""


async def searched_models(
    conn: Connection, *, organisation_id: OrganisationId
) -> list[SearchedModelsRow]:
    """The models of the searched generations: whether they have an HNSW index, and where a complete copy is."""
    return [SearchedModelsRow(*row) for row in await conn.fetch(_SEARCHED_MODELS, organisation_id)]


_LIST_CONTENT_TYPES: Final = """
-- name: ListContentTypes
WITH RECURSIVE hops AS (
    (
        SELECT e.content_type FROM knowledge.entry AS e
        WHERE e.organisation_id = $1 AND e.content_type IS NOT NULL
        ORDER BY e.content_type LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT e.content_type FROM knowledge.entry AS e
        WHERE e.organisation_id = $1 AND e.content_type > h.content_type
        ORDER BY e.content_type LIMIT 1
    )
    FROM hops AS h WHERE h.content_type IS NOT NULL
)
SELECT content_type AS "content_type!" FROM hops WHERE content_type IS NOT NULL
"""


async def list_content_types(conn: Connection, *, organisation_id: OrganisationId) -> list[str]:
    """The media types of an organisation's texts, by a loose index scan."""
    return [row[0] for row in await conn.fetch(_LIST_CONTENT_TYPES, organisation_id)]


_ESTIMATE_MATCHING: Final = """
-- name: EstimateMatching
SELECT knowledge.estimate_matching_entries(
    $1::uuid,
    $2::uuid[],
    $3::uuid[],
    $4::uuid[],
    $5::text[],
    $6::text[],
    $7::text[],
    $8::text[],
    $9::text[],
    $10::text,
    $11::timestamptz,
    $12::timestamptz
) AS "texts!"
"""


async def estimate_matching(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    sources: Sequence[UUID | None] | None,
    sites: Sequence[UUID | None] | None,
    applications: Sequence[UUID | None] | None,
    kinds: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    types: Sequence[str | None] | None,
    hosts: Sequence[str | None] | None,
    not_hosts: Sequence[str | None] | None,
    path: str | None,
    since: datetime | None,
    until: datetime | None,
) -> int:
    """The estimated number of texts that match a filter."""
    value: int = await conn.fetchval(
        _ESTIMATE_MATCHING,
        organisation_id,
        sources,
        sites,
        applications,
        kinds,
        languages,
        types,
        hosts,
        not_hosts,
        path,
        since,
        until,
    )
    return value


_INDEXED_PASSAGES: Final = """
-- name: IndexedPassages
SELECT coalesce(sum(texts), 0)::bigint AS "passages!"
FROM knowledge.segment WHERE organisation_id = $1
"""


async def indexed_passages(conn: Connection, *, organisation_id: OrganisationId) -> int:
    """The number of passages in an organisation's keyword index, including deleted ones."""
    value: int = await conn.fetchval(_INDEXED_PASSAGES, organisation_id)
    return value


_MATCHING_CHUNKS: Final = """
-- name: MatchingChunks
SELECT c.id AS chunk_id
FROM knowledge.matching_entries(
    $1::uuid,
    $2::uuid[],
    $3::uuid[],
    $4::uuid[],
    $5::text[],
    $6::text[],
    $7::text[],
    $8::text[],
    $9::text[],
    $10::text,
    $11::timestamptz,
    $12::timestamptz
) AS m
INNER JOIN knowledge.chunk AS c ON m.entry_id = c.entry_id
LIMIT $13::integer
"""


async def matching_chunks(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    sources: Sequence[UUID | None] | None,
    sites: Sequence[UUID | None] | None,
    applications: Sequence[UUID | None] | None,
    kinds: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    types: Sequence[str | None] | None,
    hosts: Sequence[str | None] | None,
    not_hosts: Sequence[str | None] | None,
    path: str | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> list[int]:
    """Passages of texts that match a filter, up to a limit."""
    return [
        row[0]
        for row in await conn.fetch(
            _MATCHING_CHUNKS,
            organisation_id,
            sources,
            sites,
            applications,
            kinds,
            languages,
            types,
            hosts,
            not_hosts,
            path,
            since,
            until,
            most,
        )
    ]


_MATCHING_ENTRIES: Final = """
-- name: MatchingEntries
SELECT coalesce(array_agg(fits.entry_id), '{}')::bigint[] AS "entry_ids!"
FROM (
    SELECT m.entry_id
    FROM knowledge.matching_entries(
        $1::uuid,
        $2::uuid[],
        $3::uuid[],
        $4::uuid[],
        $5::text[],
        $6::text[],
        $7::text[],
        $8::text[],
        $9::text[],
        $10::text,
        $11::timestamptz,
        $12::timestamptz
    ) AS m
    LIMIT $13::integer
) AS fits
"""


async def matching_entries(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    sources: Sequence[UUID | None] | None,
    sites: Sequence[UUID | None] | None,
    applications: Sequence[UUID | None] | None,
    kinds: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    types: Sequence[str | None] | None,
    hosts: Sequence[str | None] | None,
    not_hosts: Sequence[str | None] | None,
    path: str | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> list[int]:
    """Texts that match a filter, in one array, up to a limit."""
    value: list[int] = await conn.fetchval(
        _MATCHING_ENTRIES,
        organisation_id,
        sources,
        sites,
        applications,
        kinds,
        languages,
        types,
        hosts,
        not_hosts,
        path,
        since,
        until,
        most,
    )
    return value


_FILTER_CHUNKS: Final = """
-- name: FilterChunks
SELECT c.id AS chunk_id, c.entry_id
FROM knowledge.chunk AS c
CROSS JOIN LATERAL (
    SELECT m.entry_id
    FROM knowledge.matching_entries(
        $1::uuid,
        $2::uuid[],
        $3::uuid[],
        $4::uuid[],
        $5::text[],
        $6::text[],
        $7::text[],
        $8::text[],
        $9::text[],
        $10::text,
        $11::timestamptz,
        $12::timestamptz
    ) AS m
    WHERE m.entry_id = c.entry_id
    OFFSET 0
) AS fits
WHERE c.id = ANY($13::bigint[])
"""


async def filter_chunks(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    sources: Sequence[UUID | None] | None,
    sites: Sequence[UUID | None] | None,
    applications: Sequence[UUID | None] | None,
    kinds: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    types: Sequence[str | None] | None,
    hosts: Sequence[str | None] | None,
    not_hosts: Sequence[str | None] | None,
    path: str | None,
    since: datetime | None,
    until: datetime | None,
    chunk_ids: Sequence[int],
) -> list[FilterChunksRow]:
    """Those of these passages that match a filter: one lookup for each, no scan."""
    return [
        FilterChunksRow(*row)
        for row in await conn.fetch(
            _FILTER_CHUNKS,
            organisation_id,
            sources,
            sites,
            applications,
            kinds,
            languages,
            types,
            hosts,
            not_hosts,
            path,
            since,
            until,
            chunk_ids,
        )
    ]


_NEAREST_BY_INDEX: Final = """
-- name: NearestByIndex
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest_chunks(
    $1::integer,
    $2::integer,
    $3::real[],
    $4::integer,
    $5::integer,
    $6::uuid,
    $7::uuid[],
    $8::uuid[],
    $9::uuid[],
    $10::text[],
    $11::text[],
    $12::text[],
    $13::text[],
    $14::text[],
    $15::text,
    $16::timestamptz,
    $17::timestamptz
)
"""


async def nearest_by_index(
    conn: Connection,
    *,
    model_id: int,
    dimension: int,
    numbers: Sequence[float],
    most: int,
    scanned: int,
    organisation_id: OrganisationId,
    sources: Sequence[UUID | None] | None,
    sites: Sequence[UUID | None] | None,
    applications: Sequence[UUID | None] | None,
    kinds: Sequence[str | None] | None,
    languages: Sequence[str | None] | None,
    types: Sequence[str | None] | None,
    hosts: Sequence[str | None] | None,
    not_hosts: Sequence[str | None] | None,
    path: str | None,
    since: datetime | None,
    until: datetime | None,
) -> list[NearestByIndexRow]:
    """The passages nearest to a vector that match a filter, by a model's HNSW index."""
    return [
        NearestByIndexRow(*row)
        for row in await conn.fetch(
            _NEAREST_BY_INDEX,
            model_id,
            dimension,
            numbers,
            most,
            scanned,
            organisation_id,
            sources,
            sites,
            applications,
            kinds,
            languages,
            types,
            hosts,
            not_hosts,
            path,
            since,
            until,
        )
    ]


_NEAREST_AMONG: Final = """
-- name: NearestAmong
SELECT v.chunk_id, (-(v.embedding <#> $1::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.chunk_id = ANY($2::bigint[]) AND v.model_id = $3
ORDER BY v.embedding <#> $1::real[]::halfvec
LIMIT $4::integer
"""


async def nearest_among(
    conn: Connection,
    *,
    numbers: Sequence[float],
    chunk_ids: Sequence[int],
    model_id: int,
    most: int,
) -> list[NearestAmongRow]:
    """The nearest of some passages to a vector, exact."""
    return [
        NearestAmongRow(*row)
        for row in await conn.fetch(_NEAREST_AMONG, numbers, chunk_ids, model_id, most)
    ]


_NEAREST_OF_ENTRIES: Final = """
-- name: NearestOfEntries
SELECT v.chunk_id, (-(v.embedding <#> $1::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.entry_id = ANY($2::bigint[]) AND v.model_id = $3
ORDER BY v.embedding <#> $1::real[]::halfvec
LIMIT $4::integer
"""


async def nearest_of_entries(
    conn: Connection,
    *,
    numbers: Sequence[float],
    entry_ids: Sequence[int],
    model_id: int,
    most: int,
) -> list[NearestOfEntriesRow]:
    """The nearest passages of some texts to a vector, exact."""
    return [
        NearestOfEntriesRow(*row)
        for row in await conn.fetch(_NEAREST_OF_ENTRIES, numbers, entry_ids, model_id, most)
    ]


_NEAREST_IN_ENTRIES_BY_INDEX: Final = """
-- name: NearestInEntriesByIndex
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest_chunks_in_entries(
    $1::integer,
    $2::integer,
    $3::real[],
    $4::integer,
    $5::integer,
    $6::bigint[]
)
"""


async def nearest_in_entries_by_index(
    conn: Connection,
    *,
    model_id: int,
    dimension: int,
    numbers: Sequence[float],
    most: int,
    scanned: int,
    entry_ids: Sequence[int],
) -> list[NearestInEntriesByIndexRow]:
    """The nearest passages of some texts to a vector, by a model's HNSW index."""
    return [
        NearestInEntriesByIndexRow(*row)
        for row in await conn.fetch(
            _NEAREST_IN_ENTRIES_BY_INDEX, model_id, dimension, numbers, most, scanned, entry_ids
        )
    ]


_NEAREST_OF_ALL: Final = """
-- name: NearestOfAll
SELECT v.chunk_id, (-(v.embedding <#> $1::real[]::halfvec))::real AS "score!"
FROM knowledge.vector AS v
WHERE v.model_id = $2
ORDER BY v.embedding <#> $1::real[]::halfvec
LIMIT $3::integer
"""


async def nearest_of_all(
    conn: Connection, *, numbers: Sequence[float], model_id: int, most: int
) -> list[NearestOfAllRow]:
    """The nearest passages of a model to a vector, exact."""
    return [
        NearestOfAllRow(*row) for row in await conn.fetch(_NEAREST_OF_ALL, numbers, model_id, most)
    ]


_CHUNK_ENTRIES: Final = """
-- name: ChunkEntries
SELECT c.id AS chunk_id, c.entry_id, c.hash, e.content_hash, e.uri
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY($1::bigint[])
"""


async def chunk_entries(conn: Connection, *, chunk_ids: Sequence[int]) -> list[ChunkEntriesRow]:
    """The texts of passages, with the hashes that tell duplicates."""
    return [ChunkEntriesRow(*row) for row in await conn.fetch(_CHUNK_ENTRIES, chunk_ids)]


_CHUNK_DETAILS: Final = """
-- name: ChunkDetails
SELECT
    c.id AS chunk_id, c.entry_id, c.source_id, c.ordinal, c.starts_at, c.ends_at, c.headings, c.words,
    c.tokens, c.hash, e.uri, e.path, e.title, e.language, e.content_type, e.page_id, e.version_id,
    e.content_hash, e.dated_at, s.name AS source_name, s.kind AS source_kind, s.site_id, s.application_id
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
INNER JOIN knowledge.source AS s ON c.source_id = s.id
WHERE c.id = ANY($1::bigint[])
"""


async def chunk_details(conn: Connection, *, chunk_ids: Sequence[int]) -> list[ChunkDetailsRow]:
    """Passages with everything that a result shows."""
    return [ChunkDetailsRow(*row) for row in await conn.fetch(_CHUNK_DETAILS, chunk_ids)]


_CHUNK_TEXTS: Final = """
-- name: ChunkTexts
SELECT c.id AS chunk_id, c.headings, c.words, e.title, e.language
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY($1::bigint[])
"""


async def chunk_texts(conn: Connection, *, chunk_ids: Sequence[int]) -> list[ChunkTextsRow]:
    """The words and headings of passages."""
    return [ChunkTextsRow(*row) for row in await conn.fetch(_CHUNK_TEXTS, chunk_ids)]


_FIND_ENTRIES: Final = """
-- name: FindEntries
SELECT e.id AS entry_id, e.title, e.uri
FROM knowledge.entry AS e
INNER JOIN knowledge.source AS s ON e.source_id = s.id AND e.generation = s.generation
WHERE
    s.organisation_id = $1
    AND (
        e.page_id = $2::uuid OR e.uri = $3::text
        OR e.id = $4::bigint
    )
ORDER BY e.id
LIMIT 100
"""


async def find_entries(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    page_id: PageId | None,
    uri: str | None,
    entry_id: int | None,
) -> list[FindEntriesRow]:
    """The searched texts of a page, a URI or an id."""
    return [
        FindEntriesRow(*row)
        for row in await conn.fetch(_FIND_ENTRIES, organisation_id, page_id, uri, entry_id)
    ]


_MEAN_VECTORS: Final = """
-- name: MeanVectors
SELECT v.model_id, avg(v.embedding)::real[] AS "numbers!"
FROM knowledge.vector AS v
WHERE v.entry_id = ANY($1::bigint[])
GROUP BY v.model_id
"""


async def mean_vectors(conn: Connection, *, entry_ids: Sequence[int]) -> list[MeanVectorsRow]:
    """The mean vector of texts, for each model."""
    return [MeanVectorsRow(*row) for row in await conn.fetch(_MEAN_VECTORS, entry_ids)]


_SIMILAR_TERMS: Final = """
-- name: SimilarTerms
SELECT p.term, sum(p.texts)::bigint AS "texts!"
FROM knowledge.posting AS p
WHERE
    p.segment_id = ANY($1::bigint[]) AND p.part = 0
    AND p.term >= $2::text AND p.term < $3::text
    AND length(p.term) BETWEEN $4::integer AND $5::integer
    AND similarity(p.term, $6::text) >= $7::real
GROUP BY p.term
ORDER BY similarity(p.term, $6::text) DESC
LIMIT 200
"""


async def similar_terms(
    conn: Connection,
    *,
    segment_ids: Sequence[int],
    first: str,
    last: str,
    shortest: int,
    longest: int,
    word: str,
    least: float,
) -> list[SimilarTermsRow]:
    """Terms that are spelt like a word, with their document frequency."""
    return [
        SimilarTermsRow(*row)
        for row in await conn.fetch(
            _SIMILAR_TERMS, segment_ids, first, last, shortest, longest, word, least
        )
    ]


_MODELS_TO_INDEX: Final = """
-- name: ModelsToIndex
SELECT m.id AS model_id, m.dimension, n.vectors AS "vectors!"
FROM knowledge.model AS m
CROSS JOIN LATERAL (
    SELECT count(*) AS vectors FROM (
        SELECT FROM knowledge.vector AS v WHERE v.model_id = m.id LIMIT $1::integer
    ) AS counted
) AS n
WHERE
    NOT EXISTS (
        SELECT FROM pg_catalog.pg_index AS i
        WHERE i.indexrelid = to_regclass('knowledge.vector_hnsw_' || m.id) AND i.indisvalid
    )
    AND n.vectors >= $1::integer
"""


async def models_to_index(conn: Connection, *, many: int) -> list[ModelsToIndexRow]:
    """Models with many vectors and no index."""
    return [ModelsToIndexRow(*row) for row in await conn.fetch(_MODELS_TO_INDEX, many)]


_OBSOLETE_INDEXES: Final = r"""
-- name: ObsoleteIndexes
SELECT c.relname::text AS "name!"
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_index AS i ON c.oid = i.indexrelid
WHERE
    c.relnamespace = 'knowledge'::regnamespace AND c.relname LIKE 'vector_hnsw_%'
    AND (
        NOT i.indisvalid
        OR (
            SELECT count(*) FROM (
                SELECT FROM knowledge.vector AS v
                WHERE v.model_id = substring(c.relname FROM '\d+$')::integer
                LIMIT $1::integer
            ) AS counted
        ) < $1::integer
    )
"""


async def obsolete_indexes(conn: Connection, *, few: int) -> list[str]:
    """HNSW indexes to drop: the model is deleted or has few vectors, or the build did not finish."""
    return [row[0] for row in await conn.fetch(_OBSOLETE_INDEXES, few)]
