"""Typed functions of qdrant_mirror.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, SourceId


class FindMirrorRow(Struct, frozen=True, gc=False):
    id: UUID
    url: str
    copied_to: int
    whole_at: datetime | None
    tended_at: datetime


class BeginMirrorRow(Struct, frozen=True, gc=False):
    id: UUID
    url: str
    copied_to: int
    whole_at: datetime | None
    tended_at: datetime


class NextMirrorChangesRow(Struct, frozen=True, gc=False):
    id: int
    chunk_id: int


class VectorsOfChunksRow(Struct, frozen=True, gc=False):
    chunk_id: int
    model_id: int
    organisation_id: OrganisationId
    entry_id: int
    numbers: list[float]
    source_id: SourceId
    language: str
    content_type: str | None


class MirroredModelsRow(Struct, frozen=True, gc=False):
    model_id: int
    name: str
    dimension: int
    digest: str


_FIND_MIRROR: Final = """
-- name: FindMirror
SELECT id, url, copied_to, whole_at, tended_at FROM knowledge.mirror
"""


async def find_mirror(conn: Connection) -> FindMirrorRow | None:
    """The mirror, and how far its first copy is."""
    row = await conn.fetchrow(_FIND_MIRROR)
    return None if row is None else FindMirrorRow(*row)


_BEGIN_MIRROR: Final = """
-- name: BeginMirror
INSERT INTO knowledge.mirror (url) VALUES ($1) RETURNING id, url, copied_to, whole_at, tended_at
"""


async def begin_mirror(conn: Connection, *, url: str) -> BeginMirrorRow:
    """Start a mirror."""
    (row,) = await conn.fetch(_BEGIN_MIRROR, url)
    return BeginMirrorRow(*row)


_DROP_MIRROR: Final = """
-- name: DropMirror
DELETE FROM knowledge.mirror
"""


async def drop_mirror(conn: Connection) -> None:
    """Delete the mirror."""
    await conn.execute(_DROP_MIRROR)


_CLEAR_MIRROR_CHANGES: Final = """
-- name: ClearMirrorChanges
DELETE FROM knowledge.mirror_change
"""


async def clear_mirror_changes(conn: Connection) -> None:
    """Delete all recorded changes."""
    await conn.execute(_CLEAR_MIRROR_CHANGES)


_UPDATE_MIRROR_PROGRESS: Final = """
-- name: UpdateMirrorProgress
UPDATE knowledge.mirror
SET
    copied_to = $1::bigint,
    whole_at = CASE WHEN $2::boolean THEN coalesce(whole_at, now()) END
WHERE id = $3
"""


async def update_mirror_progress(
    conn: Connection, *, copied_to: int, whole: bool, mirror_id: UUID
) -> None:
    """Record how far the first copy is, and whether it is complete."""
    await conn.execute(_UPDATE_MIRROR_PROGRESS, copied_to, whole, mirror_id)


_TOUCH_MIRROR: Final = """
-- name: TouchMirror
UPDATE knowledge.mirror SET tended_at = now() WHERE id = $1
"""


async def touch_mirror(conn: Connection, *, mirror_id: UUID) -> None:
    """Record that a process syncs the mirror."""
    await conn.execute(_TOUCH_MIRROR, mirror_id)


_NEXT_MIRROR_CHANGES: Final = """
-- name: NextMirrorChanges
SELECT id, chunk_id FROM knowledge.mirror_change ORDER BY id LIMIT $1::integer
"""


async def next_mirror_changes(conn: Connection, *, most: int) -> list[NextMirrorChangesRow]:
    """The next changes, oldest first."""
    return [NextMirrorChangesRow(*row) for row in await conn.fetch(_NEXT_MIRROR_CHANGES, most)]


_DELETE_MIRROR_CHANGES: Final = """
-- name: DeleteMirrorChanges
DELETE FROM knowledge.mirror_change WHERE id = ANY($1::bigint[])
"""


async def delete_mirror_changes(conn: Connection, *, ids: Sequence[int]) -> None:
    """Delete changes that were copied."""
    await conn.execute(_DELETE_MIRROR_CHANGES, ids)


_CHANGED_CHUNKS: Final = """
-- name: ChangedChunks
SELECT DISTINCT chunk_id FROM knowledge.mirror_change
WHERE model_id = $1
LIMIT $2::integer
"""


async def changed_chunks(conn: Connection, *, model_id: int, most: int) -> list[int]:
    """Chunks of a model whose vectors may not be copied yet."""
    return [row[0] for row in await conn.fetch(_CHANGED_CHUNKS, model_id, most)]


_VECTORS_OF_CHUNKS: Final = """
-- name: VectorsOfChunks
SELECT
    v.chunk_id, v.model_id, v.organisation_id, v.entry_id, v.embedding::real[] AS "numbers!", e.source_id,
    e.language, e.content_type
FROM knowledge.vector AS v
INNER JOIN knowledge.entry AS e ON v.entry_id = e.id
WHERE v.chunk_id = ANY($1::bigint[])
"""


async def vectors_of_chunks(
    conn: Connection, *, chunk_ids: Sequence[int]
) -> list[VectorsOfChunksRow]:
    """Vectors with the filterable fields of their texts."""
    return [VectorsOfChunksRow(*row) for row in await conn.fetch(_VECTORS_OF_CHUNKS, chunk_ids)]


_VECTORS_AFTER: Final = """
-- name: VectorsAfter
SELECT chunk_id FROM knowledge.vector WHERE chunk_id > $1::bigint
ORDER BY chunk_id LIMIT $2::integer
"""


async def vectors_after(conn: Connection, *, after: int, most: int) -> list[int]:
    """The next chunks that have vectors."""
    return [row[0] for row in await conn.fetch(_VECTORS_AFTER, after, most)]


_MIRRORED_MODELS: Final = """
-- name: MirroredModels
SELECT id AS model_id, name, dimension, digest FROM knowledge.model
"""


async def mirrored_models(conn: Connection) -> list[MirroredModelsRow]:
    """All models of all organisations."""
    return [MirroredModelsRow(*row) for row in await conn.fetch(_MIRRORED_MODELS)]
