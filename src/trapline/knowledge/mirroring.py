"""Keeps a copy of the vectors in Qdrant. PostgreSQL is what is true, and says what the copy lacks.

A trigger notes which vectors came or went, in the transaction that moved them. The copy is brought up
to date by looking whether each is there now, so that it may be done late, twice or in any order.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from trapline.db import pool
from trapline.db.pool import Database
from trapline.knowledge.embedding.embedder import Model
from trapline.knowledge.qdrant import Point, Qdrant
from trapline.knowledge.sql import mirroring as queries
from trapline.knowledge.sql.mirroring import FindMirrorRow, VectorsOfRow
from trapline.logs import get_logger

log = get_logger(__name__)

# Vectors of 384 numbers are some megabytes of JSON then.
_AT_ONCE: Final = 500
# A copy that nobody tends for so long is begun anew when somebody does.
_FORSAKEN: Final = timedelta(days=1)
_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")


def collection_of(mirror_id: UUID, model: Model) -> str:
    """One for each model, of all organisations; and of this database, for others may share a Qdrant."""
    name = _NO_LETTER.sub("-", model.name.lower()).strip("-")[:60]
    return f"{_prefix(mirror_id)}{name}_{model.dimension}_{model.digest[:12] or 0}"


def _prefix(mirror_id: UUID) -> str:
    return f"trapline_{mirror_id.hex[:12]}_"


@dataclass(frozen=True, slots=True)
class Mirroring:
    """Brings one Qdrant up to date."""

    qdrant: Qdrant | None

    async def tend(self, database: Database) -> int:
        """Copy what came and remove what went; return how many vectors that were."""
        if self.qdrant is None:
            return await _forsake(database)
        mirror = await _begun(database, self.qdrant.url)
        copying = _Copying(database, self.qdrant, mirror)
        done = 0
        while moved := await copying.changes():
            done += moved
        while moved := await copying.older():
            done += moved + await copying.changes()
        async with database.system_tx() as conn:
            await queries.mirror_tended(conn, mirror_id=mirror.id)
        return done


async def _forsake(database: Database) -> int:
    """Stop noting changes for a copy that is tended by nobody any more."""
    async with database.system_tx() as conn:
        mirror = await queries.find_mirror(conn)
    if mirror is None or mirror.tended_at > datetime.now(UTC) - _FORSAKEN:
        return 0
    log.warning("vectors are copied no more: nobody has QDRANT_URL set", url=mirror.url)
    await _turn(database, on=False)
    return 1


async def _begun(database: Database, url: str) -> FindMirrorRow:
    async with database.system_tx() as conn:
        mirror = await queries.find_mirror(conn)
    if mirror is not None and mirror.url == url:
        return mirror
    log.info("vectors are copied", to=url)
    await _turn(database, on=True, url=url)
    async with database.system_tx() as conn:
        found = await queries.find_mirror(conn)
    assert found is not None  # noqa: S101 (it was just written)
    return found


async def _turn(database: Database, *, on: bool, url: str = "") -> None:
    """Begin or end the noting of changes, between two transactions of everybody else.

    ALTER TABLE waits for whoever writes vectors: what they write is there before the copy begins,
    and what is written later is noted.
    """
    verb = "ENABLE" if on else "DISABLE"
    async with pool.owner(database.dsn, database.settings) as conn, conn.transaction():
        await conn.execute(f"ALTER TABLE knowledge.vector {verb} TRIGGER mirror_new")
        await conn.execute(f"ALTER TABLE knowledge.vector {verb} TRIGGER mirror_gone")
        await queries.drop_mirror(conn)
        await queries.drop_changes(conn)
        if on:
            await queries.begin_mirror(conn, url=url)


@dataclass(frozen=True, slots=True)
class _Copying:
    database: Database
    qdrant: Qdrant
    mirror: FindMirrorRow

    async def changes(self) -> int:
        """Bring over the oldest changes."""
        async with self.database.system_tx() as conn:
            rows = await queries.changes(conn, most=_AT_ONCE)
        if rows:
            await self._bring({row.chunk_id for row in rows})
            async with self.database.system_tx() as conn:
                await queries.changes_done(conn, ids=[row.id for row in rows])
        return len(rows)

    async def older(self) -> int:
        """Bring over the next of what was there before the copy began."""
        async with self.database.system_tx() as conn:
            mirror = await queries.find_mirror(conn)
            if mirror is None or mirror.id != self.mirror.id or mirror.whole_at is not None:
                return 0
            ids = await queries.vectors_after(conn, after=mirror.copied_to, most=_AT_ONCE)
        await self._bring(set(ids))
        async with self.database.system_tx() as conn:
            await queries.mirror_reached(
                conn,
                mirror_id=mirror.id,
                copied_to=ids[-1] if ids else mirror.copied_to,
                whole=len(ids) < _AT_ONCE,
            )
        return len(ids)

    async def _bring(self, chunks: set[int]) -> None:
        """Make the copy of some chunks' vectors the same as PostgreSQL has them now."""
        async with self.database.system_tx() as conn:
            rows = await queries.vectors_of(conn, chunk_ids=list(chunks))
            models = {
                row.model_id: Model(row.name, row.dimension, row.digest)
                for row in await queries.mirrored_models(conn)
            }
        there = {row.chunk_id for row in rows}
        for model, some in _by_model(models, rows).items():
            name = collection_of(self.mirror.id, model)
            await self.qdrant.ensure_collection(name, model.dimension)
            await self.qdrant.upsert(name, [_point(row) for row in some])
        gone = [chunk for chunk in chunks if chunk not in there]
        if gone:
            # The model may be gone, too: no collection has such a point afterwards.
            for name in await self.qdrant.collections(_prefix(self.mirror.id)):
                await self.qdrant.delete(name, gone)


def _by_model(
    models: dict[int, Model], rows: Iterable[VectorsOfRow]
) -> dict[Model, Sequence[VectorsOfRow]]:
    found: dict[Model, list[VectorsOfRow]] = {}
    for row in rows:
        if row.model_id in models:
            found.setdefault(models[row.model_id], []).append(row)
    return dict(found)


def _point(row: VectorsOfRow) -> Point:
    payload = {
        "organisation": str(row.organisation_id),
        "source": str(row.source_id),
        "language": row.language,
        "type": row.content_type,
        "entry": row.entry_id,
    }
    return Point(row.chunk_id, list(row.numbers), payload)
