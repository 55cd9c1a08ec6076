"""Moving bytes to where new ones are put, a few at a time; whoever is interrupted goes on later."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.logs import get_logger
from trapline.store.blobs import DATABASE, Blobs
from trapline.store.shelf import Shelf
from trapline.store.sql import blobs as queries

log = get_logger(__name__)

_AT_ONCE: Final = 50


@dataclass(slots=True)
class Moved:
    """What a move came to. Damaged bytes stay where they are."""

    blobs: int = 0
    bytes: int = 0
    damaged: int = 0
    removed: int = 0


async def move(
    database: Database, blobs: Blobs, *, said: Callable[[Moved], None] = lambda _: None
) -> Moved:
    """Move all bytes to the place of new ones. A row names its new place once the bytes are there;
    the old ones go last. So nothing is missing at any moment, and a second run goes on.
    """
    moved, after, target = Moved(), b"", blobs.place
    while True:
        async with database.system_tx() as conn:
            rows = await queries.blobs_elsewhere(conn, place=target, after=after, most=_AT_ONCE)
            for sha256 in rows:
                await _move(conn, blobs, sha256, moved)
        if not rows:
            break
        after = rows[-1]
        said(moved)
    for shelf in blobs.before:
        moved.removed += await _clear(database, shelf, target)
    return moved


async def _move(conn: Connection, blobs: Blobs, sha256: bytes, moved: Moved) -> None:
    try:
        # Reading verifies: what is damaged is not copied on.
        await blobs.get(conn, sha256)
        data = await blobs.packed(conn, sha256)
    except Unavailable as error:
        log.warning("bytes stay where they are", sha256=sha256.hex(), error=error.message)
        moved.damaged += 1
        return
    if blobs.shelf is not None:
        await blobs.shelf.write({sha256: data})
    await queries.place_blob(
        conn, hash=sha256, place=blobs.place, data=data if blobs.place == DATABASE else None
    )
    moved.blobs += 1
    moved.bytes += len(data)


async def _clear(database: Database, shelf: Shelf, target: str) -> int:
    """Take from a shelf what lies at the new place by now."""
    removed = 0
    async for part in shelf.listed():
        async with database.system_tx() as conn:
            gone = await queries.hashes_at(
                conn, place=target, hashes=[sha256 for sha256, _ in part]
            )
        await shelf.remove(gone)
        removed += len(gone)
    return removed
