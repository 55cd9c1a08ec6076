"""Mark and sweep: bytes that nothing names any more go, once they have been unused for the grace.

The grace is at least two hours: a blob that is put again is marked as used if its mark is older than
one, and a sweep that sees a younger mark leaves the blob alone. So none is taken from under a use
that is being written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.store.blobs import DATABASE, Blobs
from trapline.store.shelf import Shelf
from trapline.store.sql import blobs as queries

AT_ONCE: Final = 500
_REPORTED: Final = 1_000


async def sweep(database: Database, blobs: Blobs, grace: timedelta) -> int:
    """Remove unused blobs, and what lies on the shelf without a row; return how many went."""
    before = datetime.now(UTC) - grace
    swept, looked = 0, AT_ONCE
    while looked == AT_ONCE:
        async with database.system_tx() as conn:
            old = await queries.mark_blobs(conn, before=before, most=AT_ONCE)
            looked = len(old)
            swept += await _drop(conn, blobs, [row.sha256 for row in old if not row.used], before)
    if blobs.shelf is not None:
        swept += await _sweep_orphans(database, blobs.shelf, before)
    return swept


async def _drop(conn: Connection, blobs: Blobs, hashes: Sequence[bytes], before: datetime) -> int:
    """Delete rows, and their files before that commits: who puts one again waits for it."""
    if not hashes:
        return 0
    dropped = await queries.drop_blobs(conn, hashes=hashes, before=before)
    shelves = {row.place for row in dropped} - {DATABASE}
    for place in shelves:
        gone = [row.sha256 for row in dropped if row.place == place]
        await blobs.shelf_of(place).remove(gone)
    return len(dropped)


async def _sweep_orphans(database: Database, shelf: Shelf, before: datetime) -> int:
    swept = 0
    async for part in shelf.listed():
        old = [sha256 for sha256, written_at in part if written_at < before]
        if not old:
            continue
        async with database.system_tx() as conn:
            known = await queries.known_hashes(conn, hashes=old)
            orphans = sorted(set(old).difference(known))
            # Holding the row's place makes whoever would put the same bytes wait until they are gone.
            orphans = await queries.hold_hashes(conn, place=shelf.name, hashes=orphans)
            await shelf.remove(orphans)
            await queries.release_hashes(conn, hashes=orphans)
        swept += len(orphans)
    return swept


@dataclass(frozen=True, slots=True)
class Fault:
    """Bytes that are missing, or that nothing needs."""

    sha256: str
    problem: str


async def audit(conn: Connection, blobs: Blobs, grace: timedelta) -> list[Fault]:
    """Return bytes that are named and not there, and bytes that are there and not named."""
    # What is unused for a day beyond the grace should have been swept several times.
    before = datetime.now(UTC) - grace - timedelta(days=1)
    missing = await queries.missing_blobs(conn, most=_REPORTED)
    unused = await queries.unused_blobs(conn, before=before, most=_REPORTED)
    faults = [Fault(sha256.hex(), "is named, but not stored") for sha256 in missing]
    faults += [Fault(sha256.hex(), "is stored, but nothing names it") for sha256 in unused]
    if blobs.shelf is not None:
        faults += await _audit_shelf(conn, blobs.shelf, before)
    return [*faults, *await _unreachable(conn, blobs)]


async def _unreachable(conn: Connection, blobs: Blobs) -> list[Fault]:
    """Return bytes at places that the settings do not name: nobody can read them as it is."""
    named = {DATABASE, *(shelf.name for shelf in (blobs.shelf, *blobs.before) if shelf is not None)}
    return [
        Fault(sha256.hex(), f"lies at {row.place}:, which TRAPLINE_BLOBS does not name")
        for row in await queries.places(conn)
        if row.place not in named
        for sha256 in await queries.shelved_hashes(conn, place=row.place, after=b"", most=_REPORTED)
    ]


async def _audit_shelf(conn: Connection, shelf: Shelf, before: datetime) -> list[Fault]:
    """Compare the rows with what lies on the shelf, both in bounded parts."""
    there: set[bytes] = set()
    orphans: list[bytes] = []
    async for part in shelf.listed():
        there.update(sha256 for sha256, _ in part)
        old = [sha256 for sha256, written_at in part if written_at < before]
        orphans += set(old).difference(await queries.known_hashes(conn, hashes=old))
    missing: list[bytes] = []
    rows = await queries.shelved_hashes(conn, place=shelf.name, after=b"", most=_REPORTED)
    while rows:
        missing += [sha256 for sha256 in rows if sha256 not in there]
        rows = await queries.shelved_hashes(conn, place=shelf.name, after=rows[-1], most=_REPORTED)
    return [
        *(Fault(sha256.hex(), f"should be at {shelf.name}:, but is not") for sha256 in missing),
        *(Fault(sha256.hex(), f"lies at {shelf.name}: without a row") for sha256 in orphans),
    ]
