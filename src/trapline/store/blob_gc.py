"""Garbage collection of blobs by mark and sweep: unreferenced ones are deleted after a grace period.

The grace period is at least two hours: storing a blob again renews its mark if that is older than one
hour, and a sweep spares blobs with younger marks. So a blob is never deleted while a transaction that
refers to it is still open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.store.blob_backends import BlobBackend
from trapline.store.blobs import DATABASE, BlobStore
from trapline.store.sql import blobs as queries

BATCH_SIZE: Final = 500
_REPORTED: Final = 1_000


async def sweep(database: Database, blobs: BlobStore, grace: timedelta) -> int:
    """Delete unreferenced blobs, and bytes of the backend without a row; return how many."""
    before = datetime.now(UTC) - grace
    swept, examined = 0, BATCH_SIZE
    while examined == BATCH_SIZE:
        async with database.system_tx() as conn:
            old = await queries.mark_blobs(conn, before=before, most=BATCH_SIZE)
            examined = len(old)
            swept += await _delete(conn, blobs, [row.sha256 for row in old if not row.used], before)
    if blobs.backend is not None:
        swept += await _sweep_orphans(database, blobs.backend, before)
    return swept


async def _delete(
    conn: Connection, blobs: BlobStore, hashes: Sequence[bytes], before: datetime
) -> int:
    """Delete rows, and their bytes before the commit: a writer of the same blob waits for it."""
    if not hashes:
        return 0
    dropped = await queries.drop_blobs(conn, hashes=hashes, before=before)
    places = {row.place for row in dropped} - {DATABASE}
    for place in places:
        hashes = [row.sha256 for row in dropped if row.place == place]
        await blobs.backend_at(place).remove(hashes)
    return len(dropped)


async def _sweep_orphans(database: Database, backend: BlobBackend, before: datetime) -> int:
    swept = 0
    async for part in backend.list_hashes():
        old = [sha256 for sha256, written_at in part if written_at < before]
        if not old:
            continue
        async with database.system_tx() as conn:
            existing = await queries.existing_hashes(conn, hashes=old)
            orphans = sorted(set(old).difference(existing))
            # A placeholder row makes a writer of the same bytes wait until they are deleted.
            orphans = await queries.reserve_hashes(conn, place=backend.name, hashes=orphans)
            await backend.remove(orphans)
            await queries.release_hashes(conn, hashes=orphans)
        swept += len(orphans)
    return swept


@dataclass(frozen=True, slots=True)
class BlobFault:
    """A blob that is missing, or that nothing refers to."""

    sha256: str
    problem: str


async def audit(conn: Connection, blobs: BlobStore, grace: timedelta) -> list[BlobFault]:
    """Return blobs that are referenced but missing, and stored but unreferenced."""
    # A day beyond the grace period, several sweeps should have deleted it.
    before = datetime.now(UTC) - grace - timedelta(days=1)
    missing = await queries.missing_blobs(conn, most=_REPORTED)
    unused = await queries.unused_blobs(conn, before=before, most=_REPORTED)
    faults = [BlobFault(sha256.hex(), "is referenced, but not stored") for sha256 in missing]
    faults += [BlobFault(sha256.hex(), "is stored, but not referenced") for sha256 in unused]
    if blobs.backend is not None:
        faults += await _audit_backend(conn, blobs.backend, before)
    return [*faults, *await _unreachable(conn, blobs)]


async def _unreachable(conn: Connection, blobs: BlobStore) -> list[BlobFault]:
    """Return blobs in backends that the settings do not name: they cannot be read."""
    backends = (blobs.backend, *blobs.previous)
    named = {DATABASE, *(backend.name for backend in backends if backend is not None)}
    return [
        BlobFault(sha256.hex(), f"is at {row.place}:, which TRAPLINE_BLOBS does not name")
        for row in await queries.count_by_place(conn)
        if row.place not in named
        for sha256 in await queries.hashes_in_place(
            conn, place=row.place, after=b"", most=_REPORTED
        )
    ]


async def _audit_backend(
    conn: Connection, backend: BlobBackend, before: datetime
) -> list[BlobFault]:
    """Compare the rows with the backend, both in bounded batches."""
    stored: set[bytes] = set()
    orphans: list[bytes] = []
    async for part in backend.list_hashes():
        stored.update(sha256 for sha256, _ in part)
        old = [sha256 for sha256, written_at in part if written_at < before]
        orphans += set(old).difference(await queries.existing_hashes(conn, hashes=old))
    missing: list[bytes] = []
    rows = await queries.hashes_in_place(conn, place=backend.name, after=b"", most=_REPORTED)
    while rows:
        missing += [sha256 for sha256 in rows if sha256 not in stored]
        rows = await queries.hashes_in_place(
            conn, place=backend.name, after=rows[-1], most=_REPORTED
        )
    return [
        *(BlobFault(sha256.hex(), f"is missing at {backend.name}:") for sha256 in missing),
        *(BlobFault(sha256.hex(), f"is at {backend.name}: without a row") for sha256 in orphans),
    ]
