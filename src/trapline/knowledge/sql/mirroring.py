"""Typed functions of mirroring.sql, made by `make sql`: edit that file instead."""

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


class ChangesRow(Struct, frozen=True, gc=False):
    id: int
    chunk_id: int


class VectorsOfRow(Struct, frozen=True, gc=False):
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
    """Where the vectors are copied to, and how far."""
    row = await conn.fetchrow(_FIND_MIRROR)
    return None if row is None else FindMirrorRow(*row)


_BEGIN_MIRROR: Final = """
-- name: BeginMirror
INSERT INTO knowledge.mirror (url) VALUES ($1) RETURNING id, url, copied_to, whole_at, tended_at
"""


async def begin_mirror(conn: Connection, *, url: str) -> BeginMirrorRow:
    """Copy all vectors to a place from now on."""
    (row,) = await conn.fetch(_BEGIN_MIRROR, url)
    return BeginMirrorRow(*row)


_DROP_MIRROR: Final = """
-- name: DropMirror
DELETE FROM knowledge.mirror
"""


async def drop_mirror(conn: Connection) -> None:
    """Copy vectors no more."""
    await conn.execute(_DROP_MIRROR)


_DROP_CHANGES: Final = """
-- name: DropChanges
DELETE FROM knowledge.mirror_change
"""


async def drop_changes(conn: Connection) -> None:
    """Forget what has changed."""
    await conn.execute(_DROP_CHANGES)


_MIRROR_REACHED: Final = """
-- name: MirrorReached
UPDATE knowledge.mirror
SET
    copied_to = $1::bigint,
    whole_at = CASE WHEN $2::boolean THEN coalesce(whole_at, now()) END
WHERE id = $3
"""


async def mirror_reached(conn: Connection, *, copied_to: int, whole: bool, mirror_id: UUID) -> None:
    """Note how far the first copy is, and whether it is whole."""
    await conn.execute(_MIRROR_REACHED, copied_to, whole, mirror_id)


_MIRROR_TENDED: Final = """
-- name: MirrorTended
UPDATE knowledge.mirror SET tended_at = now() WHERE id = $1
"""


async def mirror_tended(conn: Connection, *, mirror_id: UUID) -> None:
    """Note that somebody keeps the copy up to date."""
    await conn.execute(_MIRROR_TENDED, mirror_id)


_CHANGES: Final = """
-- name: Changes
SELECT id, chunk_id FROM knowledge.mirror_change ORDER BY id LIMIT $1::integer
"""


async def changes(conn: Connection, *, most: int) -> list[ChangesRow]:
    """The next changes, oldest first."""
    return [ChangesRow(*row) for row in await conn.fetch(_CHANGES, most)]


_CHANGES_DONE: Final = """
-- name: ChangesDone
DELETE FROM knowledge.mirror_change WHERE id = ANY($1::bigint[])
"""


async def changes_done(conn: Connection, *, ids: Sequence[int]) -> None:
    """Remove changes that the copy has."""
    await conn.execute(_CHANGES_DONE, ids)


_CHANGED_CHUNKS: Final = """
-- name: ChangedChunks
SELECT DISTINCT chunk_id FROM knowledge.mirror_change
WHERE model_id = $1
LIMIT $2::integer
"""


async def changed_chunks(conn: Connection, *, model_id: int, most: int) -> list[int]:
    """Chunks of a model whose vectors the copy may not have yet."""
    return [row[0] for row in await conn.fetch(_CHANGED_CHUNKS, model_id, most)]


_VECTORS_OF: Final = """
-- name: VectorsOf
SELECT
    v.chunk_id, v.model_id, v.organisation_id, v.entry_id, v.embedding::real[] AS "numbers!", e.source_id,
    e.language, e.content_type
FROM knowledge.vector AS v
INNER JOIN knowledge.entry AS e ON v.entry_id = e.id
WHERE v.chunk_id = ANY($1::bigint[])
"""


async def vectors_of(conn: Connection, *, chunk_ids: Sequence[int]) -> list[VectorsOfRow]:
    """Vectors with what a filter may ask of their texts."""
    return [VectorsOfRow(*row) for row in await conn.fetch(_VECTORS_OF, chunk_ids)]


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
    """All models of all organisations: their numbers, and what their vectors have in common."""
    return [MirroredModelsRow(*row) for row in await conn.fetch(_MIRRORED_MODELS)]
