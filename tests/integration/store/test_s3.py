"""Bytes in an object store: put, found, verified, swept, audited and moved there and back."""

from datetime import timedelta
from pathlib import Path

import obstore
import pytest

from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.settings import Settings
from trapline.store import blob_gc, blob_migration
from trapline.store.blob_backends import DirectoryBackend
from trapline.store.blob_migration import MovedBlobs
from trapline.store.blobs import BlobStore, PackedBlob, pack
from trapline.store.s3 import S3Backend

GRACE = timedelta(hours=24)
BODIES = [f"body {n} ".encode() * (n + 1) for n in range(7)]


class Interrupted(Exception):
    """Someone pulled the plug."""


@pytest.fixture
def blobs(s3_settings: Settings) -> BlobStore:
    return BlobStore.of(s3_settings.blobs)


async def put(database: Database, blobs: BlobStore, *bodies: bytes) -> list[PackedBlob]:
    packed = [pack(body) for body in bodies]
    async with database.system_tx() as conn:
        await blobs.put(conn, packed)
    return packed


async def found(database: Database, blobs: BlobStore, sha256: bytes) -> bytes:
    async with database.system_tx() as conn:
        return await blobs.get(conn, sha256)


async def listed(blobs: BlobStore) -> set[bytes]:
    assert blobs.backend is not None
    return {sha256 async for part in blobs.backend.list_hashes() for sha256, _ in part}


async def places(database: Database) -> set[str]:
    async with database.system_tx() as conn:
        rows = await conn.fetch("SELECT DISTINCT place FROM store.blob")
    return {row["place"] for row in rows}


async def test_what_is_put_is_found_once(database: Database, blobs: BlobStore) -> None:
    packed = await put(database, blobs, *BODIES, BODIES[0])
    await put(database, blobs, BODIES[1])
    for body, blob in zip(BODIES, packed, strict=False):
        assert await found(database, blobs, blob.sha256) == body
    assert await listed(blobs) == {blob.sha256 for blob in packed}
    assert await places(database) == {"s3"}


async def test_damaged_and_missing_bytes_are_never_returned(
    database: Database, blobs: BlobStore
) -> None:
    (blob,) = await put(database, blobs, b"whole " * 100)
    assert isinstance(blobs.backend, S3Backend)
    name = blob.sha256.hex()
    path = f"{name[:2]}/{name[2:]}"
    await obstore.put_async(blobs.backend.store, path, b"damaged")
    with pytest.raises(Unavailable, match="damaged"):
        await found(database, blobs, blob.sha256)
    await blobs.backend.remove([blob.sha256, b"\0" * 32])
    with pytest.raises(Unavailable, match="missing"):
        await found(database, blobs, blob.sha256)


async def test_a_store_that_is_away_is_said_to_be(
    database: Database, s3_settings: Settings
) -> None:
    away = change_settings(s3_settings, {"aws_endpoint_url": "http://127.0.0.1:1"})
    backend = S3Backend.at("s3://blobs/x", away.blobs, retries=0)
    with pytest.raises(Unavailable, match="object store"):
        await put(database, BlobStore(backend), b"body")
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM store.blob") == 0


async def test_unused_objects_and_orphans_are_swept_and_audited(
    database: Database, blobs: BlobStore
) -> None:
    packed = await put(database, blobs, b"unused", b"lost")
    assert blobs.backend is not None
    orphan = pack(b"orphan")
    await blobs.backend.write({orphan.sha256: orphan.data})
    await blobs.backend.remove([packed[1].sha256])
    async with database.system_tx() as conn:
        problems = {
            fault.sha256: fault.problem
            for fault in await blob_gc.audit(conn, blobs, timedelta(days=-2))
        }
    assert "is missing at s3:" in problems[packed[1].sha256.hex()]
    assert "without a row" in problems[orphan.sha256.hex()]
    await blob_gc.sweep(database, blobs, timedelta(seconds=-5))
    assert await listed(blobs) == set()


async def test_bytes_move_there_and_back(
    database: Database, s3_settings: Settings, tmp_path: Path
) -> None:
    packed = await put(database, BlobStore(), *BODIES)
    objects = BlobStore.of(s3_settings.blobs)
    assert (await blob_migration.move_blobs(database, objects)).blobs == len(BODIES)
    assert await places(database) == {"s3"}
    for body, blob in zip(BODIES, packed, strict=True):
        assert await found(database, objects, blob.sha256) == body

    files = BlobStore(DirectoryBackend(tmp_path / "blobs"), (objects.backend,))  # type: ignore[arg-type]
    moved = await blob_migration.move_blobs(database, files)
    assert (moved.blobs, moved.removed) == (len(BODIES), len(BODIES))
    assert await listed(objects) == set()
    assert await places(database) == {"file"}

    back = BlobStore(None, (DirectoryBackend(tmp_path / "blobs"),))
    assert (await blob_migration.move_blobs(database, back)).blobs == len(BODIES)
    assert await places(database) == {"db"}
    for body, blob in zip(BODIES, packed, strict=True):
        assert await found(database, BlobStore(), blob.sha256) == body
    assert await blob_migration.move_blobs(database, back) == MovedBlobs()


async def test_an_interrupted_move_goes_on(
    database: Database, s3_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = await put(database, BlobStore(), *BODIES)
    monkeypatch.setattr(blob_migration, "_AT_ONCE", 2)
    objects = BlobStore.of(s3_settings.blobs)

    def stop(moved: MovedBlobs) -> None:
        if moved.blobs >= 4:
            raise Interrupted

    with pytest.raises(Interrupted):
        await blob_migration.move_blobs(database, objects, on_progress=stop)
    assert await places(database) == {"s3", "db"}
    for body, blob in zip(BODIES, packed, strict=True):
        assert await found(database, objects, blob.sha256) == body
    assert (await blob_migration.move_blobs(database, objects)).blobs == len(BODIES) - 4
    assert await places(database) == {"s3"}


async def test_damaged_bytes_stay_where_they_are(
    database: Database, s3_settings: Settings, tmp_path: Path
) -> None:
    directory = DirectoryBackend(tmp_path / "blobs")
    packed = await put(database, BlobStore(directory), *BODIES)
    directory.path(packed[3].sha256).write_bytes(b"damaged")
    moved = await blob_migration.move_blobs(
        database, BlobStore(BlobStore.of(s3_settings.blobs).backend, (directory,))
    )
    assert (moved.blobs, moved.damaged, moved.removed) == (6, 1, 6)
    assert directory.path(packed[3].sha256).exists()
