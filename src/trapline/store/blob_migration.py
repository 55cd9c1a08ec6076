"""Moves all blobs to the configured backend, in batches; an interrupted run can be resumed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.logs import get_logger
from trapline.store.blob_backends import BlobBackend
from trapline.store.blobs import DATABASE, BlobStore
from trapline.store.sql import blobs as queries

log = get_logger(__name__)

_AT_ONCE: Final = 50


@dataclass(slots=True)
class MovedBlobs:
    """The result of a migration. Damaged blobs stay where they are."""

    blobs: int = 0
    bytes: int = 0
    damaged: int = 0
    removed: int = 0


async def move_blobs(
    database: Database,
    blobs: BlobStore,
    *,
    on_progress: Callable[[MovedBlobs], None] = lambda _: None,
) -> MovedBlobs:
    """Move all blobs to the present backend.

    A row names its new place only when the bytes are there, and old bytes are deleted last: no blob is
    ever missing, and a second run resumes.
    """
    moved, after, target = MovedBlobs(), b"", blobs.place
    while True:
        async with database.system_tx() as conn:
            rows = await queries.blobs_outside_place(conn, place=target, after=after, most=_AT_ONCE)
            for sha256 in rows:
                await _move(conn, blobs, sha256, moved)
        if not rows:
            break
        after = rows[-1]
        on_progress(moved)
    for backend in blobs.previous:
        moved.removed += await _remove_moved(database, backend, target)
    return moved


async def _move(conn: Connection, blobs: BlobStore, sha256: bytes, moved: MovedBlobs) -> None:
    try:
        # Reading verifies the hash, so that damaged bytes are not copied.
        await blobs.get(conn, sha256)
        data = await blobs.packed(conn, sha256)
    except Unavailable as error:
        log.warning("a damaged blob is not moved", sha256=sha256.hex(), error=error.message)
        moved.damaged += 1
        return
    if blobs.backend is not None:
        await blobs.backend.write({sha256: data})
    await queries.place_blob(
        conn, hash=sha256, place=blobs.place, data=data if blobs.place == DATABASE else None
    )
    moved.blobs += 1
    moved.bytes += len(data)


async def _remove_moved(database: Database, backend: BlobBackend, target: str) -> int:
    """Delete from a backend the blobs that are at the new place."""
    removed = 0
    async for part in backend.list_hashes():
        async with database.system_tx() as conn:
            hashes = await queries.hashes_at(
                conn, place=target, hashes=[sha256 for sha256, _ in part]
            )
        await backend.remove(hashes)
        removed += len(hashes)
    return removed
