"""Bytes by their hash: put, found, swept when nothing names them, and audited."""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trapline.archive import visits
from trapline.archive.visits import CrawlType, File, Visit
from trapline.db.pool import Database
from trapline.errors import ExitCode, NotFound, SettingsError, Unavailable
from trapline.frontier import urls
from trapline.model import OrganisationId
from trapline.settings import Settings
from trapline.store import sites, sweeping
from trapline.store.blobs import Blobs, Packed, pack
from trapline.store.shelf import Directory

GRACE = timedelta(hours=24)


@pytest.fixture(params=["db", "file"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return Blobs() if request.param == "db" else Blobs(Directory(tmp_path / "blobs"))


@pytest.fixture
def shelved(tmp_path: Path) -> Blobs:
    return Blobs(Directory(tmp_path / "blobs"))


async def put(database: Database, blobs: Blobs, *bodies: bytes) -> list[Packed]:
    packed = [pack(body) for body in bodies]
    async with database.system_tx() as conn:
        await blobs.put(conn, packed)
    return packed


async def age(database: Database, blobs: Blobs, by: timedelta = timedelta(days=3)) -> None:
    """Let time pass for everything that is stored."""
    async with database.system_tx() as conn:
        await conn.execute("UPDATE store.blob SET used_at = used_at - $1::interval", by)
    if isinstance(blobs.shelf, Directory):
        past = time.time() - by.total_seconds()
        for file in blobs.shelf.root.rglob("*"):
            os.utime(file, (past, past))


async def use(database: Database, organisation_id: OrganisationId, sha256: bytes) -> None:
    """Let a visit's file name these bytes."""
    url = "https://site.test/page"
    async with database.system_tx() as conn:
        site_id = await sites.implicit(conn, organisation_id, "https://site.test")
        ids = await urls.intern(conn, [(organisation_id, url)])
        url_id = ids[organisation_id, url]
        visit = Visit(
            organisation_id,
            site_id,
            url_id,
            CrawlType.IMPORT,
            datetime.now(UTC),
            0,
            ExitCode.CONTENT,
            file=File(url_id, 1, "text/html", sha256=sha256, from_request=False),
        )
        await visits.record(conn, [visit])


async def found(database: Database, blobs: Blobs, sha256: bytes) -> bytes | None:
    try:
        async with database.system_tx() as conn:
            return await blobs.get(conn, sha256)
    except NotFound:
        return None


async def faults(database: Database, blobs: Blobs) -> list[str]:
    async with database.system_tx() as conn:
        return [fault.problem for fault in await sweeping.audit(conn, blobs, GRACE)]


async def test_what_was_put_is_found(database: Database, blobs: Blobs) -> None:
    bodies = [b"", b"x", os.urandom(100), b"long " * 10_000]
    packed = await put(database, blobs, *bodies, *bodies)
    await put(database, blobs, *bodies)
    for blob, body in zip(packed, bodies, strict=False):
        assert await found(database, blobs, blob.sha256) == body
    assert await found(database, blobs, b"\0" * 32) is None


async def test_only_what_has_no_use_for_longer_than_the_grace_is_swept(
    database: Database, blobs: Blobs, organisation_id: OrganisationId
) -> None:
    used, unused = await put(database, blobs, b"used", b"unused")
    await use(database, organisation_id, used.sha256)
    assert await sweeping.sweep(database, blobs, GRACE) == 0
    await age(database, blobs)
    (young,) = await put(database, blobs, b"young")
    assert await sweeping.sweep(database, blobs, GRACE) == 1
    assert await found(database, blobs, used.sha256) == b"used"
    assert await found(database, blobs, young.sha256) == b"young"
    assert await found(database, blobs, unused.sha256) is None
    if isinstance(blobs.shelf, Directory):
        files = [path for path in blobs.shelf.root.rglob("*") if path.is_file()]
        assert len(files) == 2
    assert await faults(database, blobs) == []


async def test_a_blob_that_is_put_again_is_not_swept(database: Database, blobs: Blobs) -> None:
    (blob,) = await put(database, blobs, b"again")
    await age(database, blobs)
    async with database.system_tx() as conn:
        await blobs.put(conn, [blob])
        # Not committed yet: the sweep passes by and does not wait.
        assert await asyncio.wait_for(sweeping.sweep(database, blobs, GRACE), 10) == 0
    assert await sweeping.sweep(database, blobs, GRACE) == 0
    assert await found(database, blobs, blob.sha256) == b"again"


async def test_who_puts_what_is_being_swept_waits_and_writes_it_again(
    database: Database, shelved: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    (blob,) = await put(database, shelved, b"contested")
    await age(database, shelved)
    removing, go_on = asyncio.Event(), asyncio.Event()
    remove = Directory.remove

    async def slowly(self: Directory, hashes: list[bytes]) -> None:
        await remove(self, hashes)
        removing.set()
        await go_on.wait()

    monkeypatch.setattr(Directory, "remove", slowly)
    sweep = asyncio.create_task(sweeping.sweep(database, shelved, GRACE))
    await removing.wait()
    putting = asyncio.create_task(put(database, shelved, b"contested"))
    await asyncio.sleep(0.2)
    assert not putting.done()
    go_on.set()
    assert await sweep == 1
    await putting
    assert await found(database, shelved, blob.sha256) == b"contested"


async def test_files_without_a_row_are_found_and_swept(database: Database, shelved: Blobs) -> None:
    (kept,) = await put(database, shelved, b"kept")
    assert shelved.shelf is not None
    await shelved.shelf.write({pack(b"orphan").sha256: b"orphan"})
    assert await sweeping.sweep(database, shelved, GRACE) == 0
    await age(database, shelved)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE store.blob SET used_at = now()")
    assert await faults(database, shelved) == ["lies at file: without a row"]
    assert await sweeping.sweep(database, shelved, GRACE) == 1
    assert await faults(database, shelved) == []
    assert await found(database, shelved, kept.sha256) == b"kept"


async def test_missing_and_forgotten_bytes_are_reported(
    database: Database, shelved: Blobs, organisation_id: OrganisationId
) -> None:
    await use(database, organisation_id, b"\1" * 32)
    (lost, _) = await put(database, shelved, b"lost", b"forgotten")
    assert isinstance(shelved.shelf, Directory)
    shelved.shelf.path(lost.sha256).unlink()
    await age(database, shelved)
    assert sorted(await faults(database, shelved)) == [
        "is named, but not stored",
        "is stored, but nothing names it",
        "is stored, but nothing names it",
        "should be at file:, but is not",
    ]


async def test_bytes_at_a_place_that_is_not_set_are_reported(
    database: Database, shelved: Blobs
) -> None:
    await put(database, shelved, b"elsewhere")
    assert await faults(database, shelved) == []
    assert await faults(database, Blobs(before=(shelved.shelf,) if shelved.shelf else ())) == []
    assert await faults(database, Blobs()) == ["lies at file:, which TRAPLINE_BLOBS does not name"]


async def test_damaged_bytes_are_never_returned(database: Database, shelved: Blobs) -> None:
    (blob,) = await put(database, shelved, b"precious " * 100)
    assert isinstance(shelved.shelf, Directory)
    path = shelved.shelf.path(blob.sha256)
    whole = path.read_bytes()
    for damage in (b"", whole[:-4], b"x" * len(whole), whole[:10] + b"\0\0" + whole[12:]):
        path.write_bytes(damage)
        with pytest.raises(Unavailable, match="damaged"):
            await found(database, shelved, blob.sha256)
    path.unlink()
    with pytest.raises(Unavailable, match="missing"):
        await found(database, shelved, blob.sha256)
    with pytest.raises(Unavailable, match="TRAPLINE_BLOBS"):
        await found(database, Blobs(), blob.sha256)


@pytest.mark.parametrize(
    "place", ["", "file", "file:", "db:x", "ftp://x", "s3:", "s3://", "s3:bucket", "s3://b?x=1"]
)
def test_a_place_that_is_none_is_refused(place: str, server_settings: Settings) -> None:
    with pytest.raises(SettingsError):
        Blobs.of(server_settings.model_copy(update={"blobs": place}))
