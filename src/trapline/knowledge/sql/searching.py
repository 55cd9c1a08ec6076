"""Typed functions of searching.sql, made by `make sql`: edit that file instead."""

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


class MatchingRow(Struct, frozen=True, gc=False):
    chunk_id: int
    entry_id: int


class NearestRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestAmongRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestOfEntriesRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestInEntriesRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class NearestOfAllRow(Struct, frozen=True, gc=False):
    chunk_id: int
    score: float


class PlaceChunksRow(Struct, frozen=True, gc=False):
    chunk_id: int
    entry_id: int
    hash: bytes
    content_hash: bytes
    uri: str


class ShowChunksRow(Struct, frozen=True, gc=False):
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


class PassageTextsRow(Struct, frozen=True, gc=False):
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


class CrowdedModelsRow(Struct, frozen=True, gc=False):
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
    """The models of what is searched: whether an HNSW index is over their vectors, and where a whole copy is."""
    return [SearchedModelsRow(*row) for row in await conn.fetch(_SEARCHED_MODELS, organisation_id)]


_CONTENT_TYPES: Final = """
-- name: ContentTypes
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


async def content_types(conn: Connection, *, organisation_id: OrganisationId) -> list[str]:
    """The media types that texts of an organisation have, by hopping from one to the next in the index."""
    return [row[0] for row in await conn.fetch(_CONTENT_TYPES, organisation_id)]


_ESTIMATE_MATCHING: Final = """
-- name: EstimateMatching
SELECT knowledge.estimate_matching(
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
    """About how many texts fit a filter."""
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
    """How many passages an organisation's keyword index is over, some of which may be gone."""
    value: int = await conn.fetchval(_INDEXED_PASSAGES, organisation_id)
    return value


_MATCHING_CHUNKS: Final = """
-- name: MatchingChunks
SELECT c.id AS chunk_id
FROM knowledge.matching(
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
    """Passages of texts that fit a filter, as far as there are not too many."""
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
    FROM knowledge.matching(
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
    """Texts that fit a filter, in one array, as far as there are not too many."""
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


_MATCHING: Final = """
-- name: Matching
SELECT c.id AS chunk_id, c.entry_id
FROM knowledge.chunk AS c
CROSS JOIN LATERAL (
    SELECT m.entry_id
    FROM knowledge.matching(
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


async def matching(
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
) -> list[MatchingRow]:
    """Which of these passages fit a filter: a look at the text of each, not at all texts."""
    return [
        MatchingRow(*row)
        for row in await conn.fetch(
            _MATCHING,
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


_NEAREST: Final = """
-- name: Nearest
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest(
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


async def nearest(
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
) -> list[NearestRow]:
    """The passages that fit a filter and are nearest to a vector, by a model's HNSW index."""
    return [
        NearestRow(*row)
        for row in await conn.fetch(
            _NEAREST,
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
    """Of some passages the nearest to a vector, exactly."""
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
    """Of all passages of some texts the nearest to a vector, exactly."""
    return [
        NearestOfEntriesRow(*row)
        for row in await conn.fetch(_NEAREST_OF_ENTRIES, numbers, entry_ids, model_id, most)
    ]


_NEAREST_IN_ENTRIES: Final = """
-- name: NearestInEntries
SELECT chunk_id AS "chunk_id!", score AS "score!"
FROM knowledge.nearest_in_entries(
    $1::integer,
    $2::integer,
    $3::real[],
    $4::integer,
    $5::integer,
    $6::bigint[]
)
"""


async def nearest_in_entries(
    conn: Connection,
    *,
    model_id: int,
    dimension: int,
    numbers: Sequence[float],
    most: int,
    scanned: int,
    entry_ids: Sequence[int],
) -> list[NearestInEntriesRow]:
    """Of the passages of some texts the nearest to a vector, by a model's HNSW index."""
    return [
        NearestInEntriesRow(*row)
        for row in await conn.fetch(
            _NEAREST_IN_ENTRIES, model_id, dimension, numbers, most, scanned, entry_ids
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
    """Of all passages of a model the nearest to a vector, exactly."""
    return [
        NearestOfAllRow(*row) for row in await conn.fetch(_NEAREST_OF_ALL, numbers, model_id, most)
    ]


_PLACE_CHUNKS: Final = """
-- name: PlaceChunks
SELECT c.id AS chunk_id, c.entry_id, c.hash, e.content_hash, e.uri
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY($1::bigint[])
"""


async def place_chunks(conn: Connection, *, chunk_ids: Sequence[int]) -> list[PlaceChunksRow]:
    """Which texts passages are of, and what tells the same from others."""
    return [PlaceChunksRow(*row) for row in await conn.fetch(_PLACE_CHUNKS, chunk_ids)]


_SHOW_CHUNKS: Final = """
-- name: ShowChunks
SELECT
    c.id AS chunk_id, c.entry_id, c.source_id, c.ordinal, c.starts_at, c.ends_at, c.headings, c.words,
    c.tokens, c.hash, e.uri, e.path, e.title, e.language, e.content_type, e.page_id, e.version_id,
    e.content_hash, e.dated_at, s.name AS source_name, s.kind AS source_kind, s.site_id, s.application_id
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
INNER JOIN knowledge.source AS s ON c.source_id = s.id
WHERE c.id = ANY($1::bigint[])
"""


async def show_chunks(conn: Connection, *, chunk_ids: Sequence[int]) -> list[ShowChunksRow]:
    """Passages with what people are shown of them."""
    return [ShowChunksRow(*row) for row in await conn.fetch(_SHOW_CHUNKS, chunk_ids)]


_PASSAGE_TEXTS: Final = """
-- name: PassageTexts
SELECT c.id AS chunk_id, c.headings, c.words, e.title, e.language
FROM knowledge.chunk AS c
INNER JOIN knowledge.entry AS e ON c.entry_id = e.id
WHERE c.id = ANY($1::bigint[])
"""


async def passage_texts(conn: Connection, *, chunk_ids: Sequence[int]) -> list[PassageTextsRow]:
    """All that is written in and above passages."""
    return [PassageTextsRow(*row) for row in await conn.fetch(_PASSAGE_TEXTS, chunk_ids)]


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
    """The searched texts that a page, a URI or an id means."""
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
    """The mean of the vectors of texts, for each model that they have vectors of."""
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
    """Terms that are written much like a word, and in how many texts they are."""
    return [
        SimilarTermsRow(*row)
        for row in await conn.fetch(
            _SIMILAR_TERMS, segment_ids, first, last, shortest, longest, word, least
        )
    ]


_CROWDED_MODELS: Final = """
-- name: CrowdedModels
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


async def crowded_models(conn: Connection, *, many: int) -> list[CrowdedModelsRow]:
    """Models with many vectors and no index, and how many they are about."""
    return [CrowdedModelsRow(*row) for row in await conn.fetch(_CROWDED_MODELS, many)]


_FORSAKEN_INDEXES: Final = r"""
-- name: ForsakenIndexes
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


async def forsaken_indexes(conn: Connection, *, few: int) -> list[str]:
    """HNSW indexes whose model is gone or has hardly any vectors left, and such as were not finished."""
    return [row[0] for row in await conn.fetch(_FORSAKEN_INDEXES, few)]
