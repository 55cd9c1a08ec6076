"""Typed functions of passage_index.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, PageId, SourceId


class ListModelsRow(Struct, frozen=True, gc=False):
    model_id: int
    name: str
    dimension: int
    digest: str


class GenerationModelRow(Struct, frozen=True, gc=False):
    model_id: int
    name: str
    dimension: int
    digest: str


class AddEntriesRow(Struct, frozen=True, gc=False):
    entry_id: int
    uri: str


class AddChunksRow(Struct, frozen=True, gc=False):
    chunk_id: int
    entry_id: int
    ordinal: int


class ReusableVectorsRow(Struct, frozen=True, gc=False):
    hash: bytes
    numbers: list[float]


_FIND_MODEL: Final = """
-- name: FindModel
SELECT id AS model_id FROM knowledge.model
WHERE
    organisation_id = $1 AND name = $2
    AND dimension = $3 AND digest = $4
"""


async def find_model(
    conn: Connection, *, organisation_id: OrganisationId, name: str, dimension: int, digest: str
) -> int | None:
    """The id of a model of an organisation."""
    value: int | None = await conn.fetchval(_FIND_MODEL, organisation_id, name, dimension, digest)
    return value


_ADD_MODEL: Final = """
-- name: AddModel
INSERT INTO knowledge.model (organisation_id, name, dimension, digest)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
"""


async def add_model(
    conn: Connection, *, organisation_id: OrganisationId, name: str, dimension: int, digest: str
) -> None:
    """Insert a model of an organisation, unless another transaction did."""
    await conn.execute(_ADD_MODEL, organisation_id, name, dimension, digest)


_LIST_MODELS: Final = """
-- name: ListModels
SELECT id AS model_id, name, dimension, digest FROM knowledge.model
WHERE organisation_id = $1
ORDER BY id
"""


async def list_models(conn: Connection, *, organisation_id: OrganisationId) -> list[ListModelsRow]:
    """The models of an organisation; of one name, older weights first."""
    return [ListModelsRow(*row) for row in await conn.fetch(_LIST_MODELS, organisation_id)]


_BEGIN_GENERATION: Final = """
-- name: BeginGeneration
INSERT INTO knowledge.generation (source_id, generation, organisation_id, model_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
"""


async def begin_generation(
    conn: Connection,
    *,
    source_id: SourceId,
    generation: int,
    organisation_id: OrganisationId,
    model_id: int,
) -> None:
    """Record the model of a source's generation, unless it has one."""
    await conn.execute(_BEGIN_GENERATION, source_id, generation, organisation_id, model_id)


_GENERATION_MODEL: Final = """
-- name: GenerationModel
SELECT g.model_id, m.name, m.dimension, m.digest
FROM knowledge.generation AS g
INNER JOIN knowledge.model AS m ON g.model_id = m.id
WHERE g.source_id = $1 AND g.generation = $2
"""


async def generation_model(
    conn: Connection, *, source_id: SourceId, generation: int
) -> GenerationModelRow | None:
    """The embedding model of a source's generation."""
    row = await conn.fetchrow(_GENERATION_MODEL, source_id, generation)
    return None if row is None else GenerationModelRow(*row)


_DROP_ENTRIES: Final = """
-- name: DropEntries
DELETE FROM knowledge.entry
WHERE
    source_id = $1 AND generation = $2
    AND uri = ANY($3::text[])
"""


async def drop_entries(
    conn: Connection, *, source_id: SourceId, generation: int, uris: Sequence[str]
) -> int:
    """Delete texts of a source's generation with their passages."""
    return int((await conn.execute(_DROP_ENTRIES, source_id, generation, uris)).rpartition(" ")[2])


_DROP_ENTRIES_OF_ALL_GENERATIONS: Final = """
-- name: DropEntriesOfAllGenerations
DELETE FROM knowledge.entry
WHERE source_id = $1 AND uri = ANY($2::text[])
"""


async def drop_entries_of_all_generations(
    conn: Connection, *, source_id: SourceId, uris: Sequence[str]
) -> int:
    """Remove texts of a source with their passages, in all generations."""
    return int(
        (await conn.execute(_DROP_ENTRIES_OF_ALL_GENERATIONS, source_id, uris)).rpartition(" ")[2]
    )


_ADD_ENTRIES: Final = """
-- name: AddEntries
INSERT INTO knowledge.entry (
    organisation_id, source_id, generation, uri, path, title, language, content_type, page_id,
    version_id, content_hash, markdown, dated_at
)
SELECT
    $1, $2, $3, new.uri, new.path, new.title,
    new.language, new.content_type, new.page_id, new.version_id, new.content_hash, new.markdown,
    coalesce(new.dated_at, now())
FROM unnest(
    $4::text[],
    $5::text[],
    $6::text[],
    $7::text[],
    $8::text[],
    $9::uuid[],
    $10::bigint[],
    $11::bytea[],
    $12::text[],
    $13::timestamptz[]
) AS new (
    uri, path, title, language, content_type, page_id, version_id, content_hash, markdown, dated_at
)
RETURNING id AS entry_id, uri
"""


async def add_entries(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    source_id: SourceId,
    generation: int,
    uris: Sequence[str],
    paths: Sequence[str],
    titles: Sequence[str | None] | None,
    languages: Sequence[str],
    content_types: Sequence[str | None] | None,
    page_ids: Sequence[PageId | None] | None,
    version_ids: Sequence[int | None] | None,
    content_hashes: Sequence[bytes],
    markdowns: Sequence[str | None] | None,
    dates: Sequence[datetime | None] | None,
) -> list[AddEntriesRow]:
    """Insert texts of a source."""
    return [
        AddEntriesRow(*row)
        for row in await conn.fetch(
            _ADD_ENTRIES,
            organisation_id,
            source_id,
            generation,
            uris,
            paths,
            titles,
            languages,
            content_types,
            page_ids,
            version_ids,
            content_hashes,
            markdowns,
            dates,
        )
    ]


_ADD_CHUNKS: Final = """
-- name: AddChunks
INSERT INTO knowledge.chunk (
    organisation_id, source_id, entry_id, ordinal, starts_at, ends_at, headings, words, tokens, hash
)
SELECT
    $1, $2, new.entry_id, new.ordinal, new.starts_at, new.ends_at,
    string_to_array(new.headings, chr(31)), new.words, new.tokens, new.hash
FROM unnest(
    $3::bigint[],
    $4::integer[],
    $5::integer[],
    $6::integer[],
    $7::text[],
    $8::text[],
    $9::integer[],
    $10::bytea[]
) AS new (entry_id, ordinal, starts_at, ends_at, headings, words, tokens, hash)
RETURNING id AS chunk_id, entry_id, ordinal
"""


async def add_chunks(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    source_id: SourceId,
    entry_ids: Sequence[int],
    ordinals: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    headings: Sequence[str],
    words: Sequence[str],
    tokens: Sequence[int],
    hashes: Sequence[bytes],
) -> list[AddChunksRow]:
    """Insert passages. The headings of a passage are one text, separated by unit separators."""
    return [
        AddChunksRow(*row)
        for row in await conn.fetch(
            _ADD_CHUNKS,
            organisation_id,
            source_id,
            entry_ids,
            ordinals,
            starts,
            ends,
            headings,
            words,
            tokens,
            hashes,
        )
    ]


_ADD_VECTORS: Final = """
-- name: AddVectors
INSERT INTO knowledge.vector (chunk_id, organisation_id, model_id, entry_id, embedding)
SELECT
    new.chunk_id, $1, $2, new.entry_id,
    ($3::real[])[
        (new.place - 1) * $4::integer + 1:new.place * $4::integer
    ]::halfvec
FROM unnest($5::bigint[], $6::bigint[])
WITH ORDINALITY AS new (chunk_id, entry_id, place)
"""


async def add_vectors(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    model_id: int,
    numbers: Sequence[float],
    dimension: int,
    chunk_ids: Sequence[int],
    entry_ids: Sequence[int],
) -> None:
    """Insert vectors; their numbers are concatenated."""
    await conn.execute(
        _ADD_VECTORS, organisation_id, model_id, numbers, dimension, chunk_ids, entry_ids
    )


_REUSABLE_VECTORS: Final = """
-- name: ReusableVectors
SELECT DISTINCT ON (c.hash) c.hash, v.embedding::real[] AS "numbers!"
FROM knowledge.chunk AS c
INNER JOIN knowledge.vector AS v ON c.id = v.chunk_id
WHERE
    c.hash = ANY($1::bytea[]) AND c.organisation_id = $2
    AND v.model_id = $3
ORDER BY c.hash, c.id
"""


async def reusable_vectors(
    conn: Connection, *, hashes: Sequence[bytes], organisation_id: OrganisationId, model_id: int
) -> list[ReusableVectorsRow]:
    """Vectors of passages with the same fingerprint and model."""
    return [
        ReusableVectorsRow(*row)
        for row in await conn.fetch(_REUSABLE_VECTORS, hashes, organisation_id, model_id)
    ]


_SWAP_GENERATION: Final = """
-- name: SwapGeneration
UPDATE knowledge.source SET generation = $1, updated_at = now()
WHERE id = $2 AND generation <= $1
"""


async def swap_generation(conn: Connection, *, generation: int, source_id: SourceId) -> int:
    """Make a generation the searched one; an older one never replaces a newer one."""
    return int((await conn.execute(_SWAP_GENERATION, generation, source_id)).rpartition(" ")[2])


_DROP_OLDER_ENTRIES: Final = """
-- name: DropOlderEntries
DELETE FROM knowledge.entry
WHERE id IN (
    SELECT e.id FROM knowledge.entry AS e
    INNER JOIN knowledge.source AS s ON e.source_id = s.id
    WHERE s.id = $1 AND e.generation < s.generation
    LIMIT $2
)
"""


async def drop_older_entries(conn: Connection, *, source_id: SourceId, most: int) -> int:
    """Delete a batch of a source's texts of older generations."""
    return int((await conn.execute(_DROP_OLDER_ENTRIES, source_id, most)).rpartition(" ")[2])


_DROP_OLDER_GENERATIONS: Final = """
-- name: DropOlderGenerations
DELETE FROM knowledge.generation AS g
USING knowledge.source AS s
WHERE
    g.source_id = $1 AND s.id = g.source_id AND g.generation < s.generation
    AND NOT EXISTS (
        SELECT FROM knowledge.entry AS e
        WHERE e.source_id = g.source_id AND e.generation = g.generation
    )
"""


async def drop_older_generations(conn: Connection, *, source_id: SourceId) -> None:
    """Delete a source's older generations that have no texts left."""
    await conn.execute(_DROP_OLDER_GENERATIONS, source_id)


_SOURCES_WITH_OLD_GENERATIONS: Final = """
-- name: SourcesWithOldGenerations
SELECT DISTINCT g.source_id
FROM knowledge.generation AS g
INNER JOIN knowledge.source AS s ON g.source_id = s.id
WHERE g.generation < s.generation
LIMIT $1
"""


async def sources_with_old_generations(conn: Connection, *, most: int) -> list[SourceId]:
    """Sources that still have older generations."""
    return [row[0] for row in await conn.fetch(_SOURCES_WITH_OLD_GENERATIONS, most)]
