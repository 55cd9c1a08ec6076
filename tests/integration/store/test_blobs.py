"""Bytes by their hash: put, found, swept when nothing names them, and audited."""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.settings import change_settings
from trapline.archive import visits
from trapline.archive.visits import CrawlType, Visit, VisitFile
from trapline.db.pool import Database
from trapline.errors import ExitCode, NotFound, SettingsError, Unavailable
from trapline.frontier import url_rows
from trapline.model import OrganisationId
from trapline.settings import Settings
from trapline.store import blob_gc, sites
from trapline.store.blob_backends import DirectoryBackend
from trapline.store.blobs import BlobStore, PackedBlob, pack

GRACE = timedelta(hours=24)


@pytest.fixture(params=["db", "file"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return BlobStore() if request.param == "db" else BlobStore(DirectoryBackend(tmp_path / "blobs"))


@pytest.fixture
def outside(tmp_path: Path) -> BlobStore:
    return BlobStore(DirectoryBackend(tmp_path / "blobs"))


async def put(database: Database, blobs: BlobStore, *bodies: bytes) -> list[PackedBlob]:
    packed = [pack(body) for body in bodies]
    async with database.system_tx() as conn:
        await blobs.put(conn, packed)
    return packed


async def age(database: Database, blobs: BlobStore, by: timedelta = timedelta(days=3)) -> None:
    """Let time pass for everything that is stored."""
    async with database.system_tx() as conn:
        await conn.execute("UPDATE store.blob SET used_at = used_at - $1::interval", by)
    if isinstance(blobs.backend, DirectoryBackend):
        past = time.time() - by.total_seconds()
        for file in blobs.backend.root.rglob("*"):
            os.utime(file, (past, past))


async def use(database: Database, organisation_id: OrganisationId, sha256: bytes) -> None:
    """Let a visit's file name these bytes."""
    url = "https://site.test/page"
    async with database.system_tx() as conn:
        site_id = await sites.get_or_create_implicit(conn, organisation_id, "https://site.test")
        ids = await url_rows.intern(conn, [(organisation_id, url)])
        url_id = ids[organisation_id, url]
        visit = Visit(
            organisation_id,
            site_id,
            url_id,
            CrawlType.IMPORT,
            datetime.now(UTC),
            0,
            ExitCode.CONTENT,
            file=VisitFile(url_id, 1, "text/html", sha256=sha256, from_request=False),
        )
        await visits.record(conn, [visit])


async def found(database: Database, blobs: BlobStore, sha256: bytes) -> bytes | None:
    try:
        async with database.system_tx() as conn:
            return await blobs.get(conn, sha256)
    except NotFound:
        return None


async def faults(database: Database, blobs: BlobStore) -> list[str]:
    async with database.system_tx() as conn:
        return [fault.problem for fault in await blob_gc.audit(conn, blobs, GRACE)]


async def test_what_was_put_is_found(database: Database, blobs: BlobStore) -> None:
    bodies = [b"", b"x", os.urandom(100), b"long " * 10_000]
    packed = await put(database, blobs, *bodies, *bodies)
    await put(database, blobs, *bodies)
    for blob, body in zip(packed, bodies, strict=False):
        assert await found(database, blobs, blob.sha256) == body
    assert await found(database, blobs, b"\0" * 32) is None


async def test_only_what_has_no_use_for_longer_than_the_grace_is_swept(
    database: Database, blobs: BlobStore, organisation_id: OrganisationId
) -> None:
    used, unused = await put(database, blobs, b"used", b"unused")
    await use(database, organisation_id, used.sha256)
    assert await blob_gc.sweep(database, blobs, GRACE) == 0
    await age(database, blobs)
    (young,) = await put(database, blobs, b"young")
    assert await blob_gc.sweep(database, blobs, GRACE) == 1
    assert await found(database, blobs, used.sha256) == b"used"
    assert await found(database, blobs, young.sha256) == b"young"
    assert await found(database, blobs, unused.sha256) is None
    if isinstance(blobs.backend, DirectoryBackend):
        files = [path for path in blobs.backend.root.rglob("*") if path.is_file()]
        assert len(files) == 2
    assert await faults(database, blobs) == []


async def test_a_blob_that_is_put_again_is_not_swept(database: Database, blobs: BlobStore) -> None:
    (blob,) = await put(database, blobs, b"again")
    await age(database, blobs)
    async with database.system_tx() as conn:
        await blobs.put(conn, [blob])
        # Not committed yet: the sweep passes by and does not wait.
        assert await asyncio.wait_for(blob_gc.sweep(database, blobs, GRACE), 60) == 0
    assert await blob_gc.sweep(database, blobs, GRACE) == 0
    assert await found(database, blobs, blob.sha256) == b"again"


async def test_who_puts_what_is_being_swept_waits_and_writes_it_again(
    database: Database, outside: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (blob,) = await put(database, outside, b"contested")
    await age(database, outside)
    removing, go_on = asyncio.Event(), asyncio.Event()
    remove = DirectoryBackend.remove

    async def slowly(self: DirectoryBackend, hashes: list[bytes]) -> None:
        await remove(self, hashes)
        removing.set()
        await go_on.wait()

    monkeypatch.setattr(DirectoryBackend, "remove", slowly)
    sweep = asyncio.create_task(blob_gc.sweep(database, outside, GRACE))
    await removing.wait()
    putting = asyncio.create_task(put(database, outside, b"contested"))
    await asyncio.sleep(0.2)
    assert not putting.done()
    go_on.set()
    assert await sweep == 1
    await putting
    assert await found(database, outside, blob.sha256) == b"contested"


async def test_files_without_a_row_are_found_and_swept(
    database: Database, outside: BlobStore
) -> None:
    (kept,) = await put(database, outside, b"kept")
    assert outside.backend is not None
    await outside.backend.write({pack(b"orphan").sha256: b"orphan"})
    assert await blob_gc.sweep(database, outside, GRACE) == 0
    await age(database, outside)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE store.blob SET used_at = now()")
    assert await faults(database, outside) == ["is at file: without a row"]
    assert await blob_gc.sweep(database, outside, GRACE) == 1
    assert await faults(database, outside) == []
    assert await found(database, outside, kept.sha256) == b"kept"


async def test_missing_and_forgotten_bytes_are_reported(
    database: Database, outside: BlobStore, organisation_id: OrganisationId
) -> None:
    await use(database, organisation_id, b"\1" * 32)
    (lost, _) = await put(database, outside, b"lost", b"forgotten")
    assert isinstance(outside.backend, DirectoryBackend)
    outside.backend.path(lost.sha256).unlink()
    await age(database, outside)
    assert sorted(await faults(database, outside)) == [
        "is missing at file:",
        "is referenced, but not stored",
        "is stored, but not referenced",
        "is stored, but not referenced",
    ]


async def test_bytes_at_a_place_that_is_not_set_are_reported(
    database: Database, outside: BlobStore
) -> None:
    await put(database, outside, b"elsewhere")
    assert await faults(database, outside) == []
    assert (
        await faults(database, BlobStore(previous=(outside.backend,) if outside.backend else ()))
        == []
    )
    assert await faults(database, BlobStore()) == [
        "is at file:, which TRAPLINE_BLOBS does not name"
    ]


async def test_damaged_bytes_are_never_returned(database: Database, outside: BlobStore) -> None:
    (blob,) = await put(database, outside, b"precious " * 100)
    assert isinstance(outside.backend, DirectoryBackend)
    path = outside.backend.path(blob.sha256)
    whole = path.read_bytes()
    for damage in (b"", whole[:-4], b"x" * len(whole), whole[:10] + b"\0\0" + whole[12:]):
        path.write_bytes(damage)
        with pytest.raises(Unavailable, match="damaged"):
            await found(database, outside, blob.sha256)
    path.unlink()
    with pytest.raises(Unavailable, match="missing"):
        await found(database, outside, blob.sha256)
    with pytest.raises(Unavailable, match="TRAPLINE_BLOBS"):
        await found(database, BlobStore(), blob.sha256)


@pytest.mark.parametrize(
    "place", ["", "file", "file:", "db:x", "ftp://x", "s3:", "s3://", "s3:bucket", "s3://b?x=1"]
)
def test_a_place_that_is_none_is_refused(place: str, server_settings: Settings) -> None:
    with pytest.raises(SettingsError):
        BlobStore.of(change_settings(server_settings, {"blobs": place}).blobs)
