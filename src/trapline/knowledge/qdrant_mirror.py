"""The mirror: a copy of the vectors in Qdrant. PostgreSQL is the source of truth.

A trigger records each inserted or deleted vector in the same transaction. The sync makes the copy of
each the same as PostgreSQL has it now, so it may run late, twice or in any order.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from trapline.db.pool import Database
from trapline.knowledge.embedding.embedder import EmbeddingModel
from trapline.knowledge.qdrant import Point, Qdrant
from trapline.knowledge.sql import qdrant_mirror as queries
from trapline.knowledge.sql.qdrant_mirror import FindMirrorRow, VectorsOfChunksRow
from trapline.logs import get_logger

log = get_logger(__name__)

# A batch of vectors of 384 numbers is some megabytes of JSON.
_AT_ONCE: Final = 500
# A copy that was not synced for this long is abandoned; a later sync starts anew.
_ABANDONED_AFTER: Final = timedelta(days=1)
_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")


def collection_of(mirror_id: UUID, model: EmbeddingModel) -> str:
    """Return the collection of a model: one for all organisations of this database, because others may share the Qdrant."""
    name = _NO_LETTER.sub("-", model.name.lower()).strip("-")[:60]
    return f"{_prefix(mirror_id)}{name}_{model.dimension}_{model.digest[:12] or 0}"


def _prefix(mirror_id: UUID) -> str:
    return f"trapline_{mirror_id.hex[:12]}_"


@dataclass(frozen=True, slots=True)
class QdrantMirror:
    """Syncs one Qdrant with PostgreSQL."""

    qdrant: Qdrant | None

    async def tend(self, database: Database) -> int:
        """Copy new vectors and delete old ones; return their number."""
        if self.qdrant is None:
            return await _abandon_mirror(database)
        mirror = await _ensure_mirror(database, self.qdrant.url)
        copying = _MirrorSync(database, self.qdrant, mirror)
        done = 0
        while moved := await copying.changes():
            done += moved
        while moved := await copying.older():
            done += moved + await copying.changes()
        async with database.system_tx() as conn:
            await queries.touch_mirror(conn, mirror_id=mirror.id)
        return done


async def _abandon_mirror(database: Database) -> int:
    """Stop recording changes for a copy that no process syncs any more."""
    async with database.system_tx() as conn:
        mirror = await queries.find_mirror(conn)
    if mirror is None or mirror.tended_at > datetime.now(UTC) - _ABANDONED_AFTER:
        return 0
    log.warning("vectors are no longer copied: no process has QDRANT_URL set", url=mirror.url)
    await _switch(database, on=False)
    return 1


async def _ensure_mirror(database: Database, url: str) -> FindMirrorRow:
    async with database.system_tx() as conn:
        mirror = await queries.find_mirror(conn)
    if mirror is not None and mirror.url == url:
        return mirror
    log.info("vectors are copied", to=url)
    await _switch(database, on=True, url=url)
    async with database.system_tx() as conn:
        found = await queries.find_mirror(conn)
    assert found is not None  # noqa: S101 (it was just written)
    return found


async def _switch(database: Database, *, on: bool, url: str = "") -> None:
    """Start or stop recording changes, between the transactions of all others.

    ALTER TABLE waits for transactions that write vectors: their vectors are there before the copy
    begins, and later ones are recorded.
    """
    verb = "ENABLE" if on else "DISABLE"
    async with database.owner() as conn, conn.transaction():
        await conn.execute(f"ALTER TABLE knowledge.vector {verb} TRIGGER mirror_new")
        await conn.execute(f"ALTER TABLE knowledge.vector {verb} TRIGGER mirror_gone")
        await queries.drop_mirror(conn)
        await queries.clear_mirror_changes(conn)
        if on:
            await queries.begin_mirror(conn, url=url)


@dataclass(frozen=True, slots=True)
class _MirrorSync:
    database: Database
    qdrant: Qdrant
    mirror: FindMirrorRow

    async def changes(self) -> int:
        """Copy the oldest changes."""
        async with self.database.system_tx() as conn:
            rows = await queries.next_mirror_changes(conn, most=_AT_ONCE)
        if rows:
            await self._bring({row.chunk_id for row in rows})
            async with self.database.system_tx() as conn:
                await queries.delete_mirror_changes(conn, ids=[row.id for row in rows])
        return len(rows)

    async def older(self) -> int:
        """Copy the next vectors that are older than the copy."""
        async with self.database.system_tx() as conn:
            mirror = await queries.find_mirror(conn)
            if mirror is None or mirror.id != self.mirror.id or mirror.whole_at is not None:
                return 0
            ids = await queries.vectors_after(conn, after=mirror.copied_to, most=_AT_ONCE)
        await self._bring(set(ids))
        async with self.database.system_tx() as conn:
            await queries.update_mirror_progress(
                conn,
                mirror_id=mirror.id,
                copied_to=ids[-1] if ids else mirror.copied_to,
                whole=len(ids) < _AT_ONCE,
            )
        return len(ids)

    async def _bring(self, chunks: set[int]) -> None:
        """Make the copy of some chunks' vectors the same as PostgreSQL has them now."""
        async with self.database.system_tx() as conn:
            rows = await queries.vectors_of_chunks(conn, chunk_ids=list(chunks))
            models = {
                row.model_id: EmbeddingModel(row.name, row.dimension, row.digest)
                for row in await queries.mirrored_models(conn)
            }
        there = {row.chunk_id for row in rows}
        for model, some in _by_model(models, rows).items():
            name = collection_of(self.mirror.id, model)
            await self.qdrant.ensure_collection(name, model.dimension)
            await self.qdrant.upsert(name, [_point(row) for row in some])
        gone = [chunk for chunk in chunks if chunk not in there]
        if gone:
            # The model may be deleted too, so delete the points from every collection.
            for name in await self.qdrant.collections(_prefix(self.mirror.id)):
                await self.qdrant.delete(name, gone)


def _by_model(
    models: dict[int, EmbeddingModel], rows: Iterable[VectorsOfChunksRow]
) -> dict[EmbeddingModel, Sequence[VectorsOfChunksRow]]:
    found: dict[EmbeddingModel, list[VectorsOfChunksRow]] = {}
    for row in rows:
        if row.model_id in models:
            found.setdefault(models[row.model_id], []).append(row)
    return dict(found)


def _point(row: VectorsOfChunksRow) -> Point:
    payload = {
        "organisation": str(row.organisation_id),
        "source": str(row.source_id),
        "language": row.language,
        "type": row.content_type,
        "entry": row.entry_id,
    }
    return Point(row.chunk_id, list(row.numbers), payload)
