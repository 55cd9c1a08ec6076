"""Files over HTTP: taken in as a stream, made searchable by tasks, each counted once."""

import asyncio
import contextlib
from uuid import uuid4

import aiohttp
import pytest

from tests.site import office
from tests.site.pdf import pdf
from tests.support.ingest_api import answering, asked, ended, upload
from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline.ingest import source_operations
from trapline.pipeline.ingest.uploads import clean_name
from trapline.queue.dead_letters import DeadLetterFilter
from trapline.settings import Settings

NOTE = "# Escapement\n\nThe anchor escapement was made for long case clocks.\n"
LINES = ("Cleaning and oil: 25 euros.", "New glass: 30 euros.")


async def count(database: Database, statement: str, *values: object) -> int:
    async with database.system_tx() as conn:
        found = await conn.fetchval(statement, *values)
    assert isinstance(found, int)
    return found


async def test_files_become_sources_with_passages(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    application = await asked(ingest_client, "/api/applications", "POST", name="repairs")
    files = {
        "note.md": NOTE,
        "prices.pdf": pdf([("Price list", *LINES)], "Price list"),
        "prices.docx": office.docx("Prices in words", LINES),
        "prices.xlsx": office.xlsx({"Prices": [("work", "euros"), ("glass", 30)]}),
        "page.html": "<html><body><main><h1>Bench</h1><p>A bench to mend clocks at.</p></main>",
        "broken.pdf": b"%PDF-1.7 and then nothing of the kind",
    }
    user = (await asked(ingest_client, "/api/members", "POST", email="ada@example.com"))["id"]
    status, answer = await upload(ingest_client, files, applicationId="repairs", userId=user)
    assert status == 202, answer
    assert answer["jobCount"] == len(files)
    assert len(answer["knowledgeSourceIds"]) == len(files)
    assert answer["errors"] == []
    job = await ended(ingest_client, answer["jobId"])
    assert (job["completed"], job["failed"]) == (5, 1)
    by_name = {one["name"]: one["knowledgeSourceId"] for one in answer["files"]}
    broken = await asked(ingest_client, f"/api/knowledge-source/{by_name['broken.pdf']}")
    assert broken["status"] == "failed"
    assert broken["error"]
    note = await asked(ingest_client, f"/api/knowledge-source/{by_name['note.md']}")
    assert (note["status"], note["texts"], note["passages"]) == ("completed", 1, 1)
    assert note["config"]["chunk_tokens"] == 256
    progress = await asked(ingest_client, f"/api/knowledge-source/{application['id']}/progress")
    assert progress == {
        "total": 6,
        "completed": 5,
        "failed": 1,
        "processing": 0,
        "pending": 0,
        "cancelled": 0,
    }
    assert await count(database, "SELECT count(*) FROM knowledge.vector") == await count(
        database, "SELECT count(*) FROM knowledge.chunk"
    )
    async with database.system_tx() as conn:
        told = await conn.fetch("SELECT data FROM queue.event WHERE type = 'item'")
    assert {one["data"]["user_id"] for one in told} == {user}
    assert sorted(one["data"]["status"] for one in told) == ["completed"] * 5 + ["failed"]


async def test_the_same_file_is_recognised(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    status, first = await upload(ingest_client, {"a.md": NOTE, "copy of a.md": NOTE})
    assert status == 202
    assert first["jobCount"] == 1
    assert [one["recognised"] for one in first["files"]] == [False, True]
    await ended(ingest_client, first["jobId"])
    status, again = await upload(ingest_client, {"b.md": NOTE})
    assert (status, again["jobCount"], again["jobId"]) == (202, 0, None)
    assert again["knowledgeSourceIds"] == first["knowledgeSourceIds"]
    # Another application has a source of its own.
    await asked(ingest_client, "/api/applications", "POST", name="other")
    _, other = await upload(ingest_client, {"a.md": NOTE}, applicationId="other")
    assert other["jobCount"] == 1
    assert await count(database, "SELECT count(*) FROM knowledge.source") == 2
    assert await count(database, "SELECT count(*) FROM store.blob") == 1


async def test_uploads_at_once_of_the_same_file_make_one_source(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    answers = await asyncio.gather(*(upload(ingest_client, {f"{n}.md": NOTE}) for n in range(8)))
    assert {status for status, _ in answers} == {202}
    assert sum(answer["jobCount"] for _, answer in answers) == 1
    assert await count(database, "SELECT count(*) FROM knowledge.source") == 1


async def test_what_is_wrong_with_a_file_is_said_of_that_file(
    database: Database, server_settings: Settings
) -> None:
    small = change_settings(server_settings, {"upload_bytes": 1000})
    async with answering(database, small) as ingest_client:
        status, answer = await upload(
            ingest_client,
            {
                "fine.txt": "A note about clocks.",
                "empty.txt": b"",
                "huge.txt": b"x" * 5000,
                "noise.bin": bytes(range(256)) * 3,
            },
        )
        assert status == 202
        assert answer["jobCount"] == 1
        assert {one["name"]: one["error"] for one in answer["errors"]} == {
            "empty.txt": "The file is empty.",
            "huge.txt": "The file has more than 1,000 bytes.",
            "noise.bin": "Its type is not known.",
        }
        assert (await ended(ingest_client, answer["jobId"]))["completed"] == 1
        status, answer = await upload(ingest_client, {"empty.txt": b""})
        assert status == 400
        assert answer["errors"] == [{"name": "empty.txt", "error": "The file is empty."}]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\Users\\me\\note.txt", "C:/Users/me/note.txt"),
        ("a\x00b\nc\u202ed.txt", "abcd.txt"),
        ("/" * 50, "unnamed"),
        ("x" * 5000 + ".txt", "x" * 296 + ".txt"),
    ],
)
def test_names_lead_nowhere(given: str, kept: str) -> None:
    assert clean_name(given) == kept


async def test_a_bomb_fails_alone(ingest_client: aiohttp.ClientSession) -> None:
    bomb = office.packed(
        {"[Content_Types].xml": "<Types/>", "word/document.xml": b"\0" * 300_000_000}
    )
    assert len(bomb) < 1_000_000
    _, answer = await upload(ingest_client, {"bomb.docx": bomb, "note.md": NOTE})
    job = await ended(ingest_client, answer["jobId"])
    assert (job["completed"], job["failed"]) == (1, 1)


async def test_names_of_any_script_stay(ingest_client: aiohttp.ClientSession) -> None:
    body = (
        '--x\r\nContent-Disposition: form-data; name="files"; filename="часы 時計 ü.md"\r\n\r\n'
        f"{NOTE}\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    async with ingest_client.post(
        "/upload/documents", data=body.encode(), headers=headers
    ) as answer:
        assert (await answer.json())["files"][0]["name"] == "часы 時計 ü.md"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b"no form at all"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nno name\r\n--x--\r\n"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n\r\nhalf',
        ),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nA: " + b"b" * 20_000 + b"\r\n\r\n\r\n--x--\r\n",
        ),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="userId"\r\n\r\nnobody\r\n--x--\r\n',
        ),
        ("multipart/form-data; boundary=" + "x" * 5000, b"--x--\r\n"),
    ],
)
async def test_a_form_that_is_none_is_refused(
    ingest_client: aiohttp.ClientSession, database: Database, content_type: str, body: bytes
) -> None:
    headers = {"Content-Type": content_type}
    async with ingest_client.post("/upload/documents", data=body, headers=headers) as answer:
        assert answer.status == 400, await answer.text()
    assert await count(database, "SELECT count(*) FROM knowledge.source") == 0


async def test_a_sender_who_goes_away_leaves_nothing(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    url = ingest_client._base_url
    assert url is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(
        b"POST /upload/documents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
        b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n\r\n'
        + NOTE.encode()
    )
    await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    del reader
    _, answer = await upload(ingest_client, {"b.md": "Another note, which is whole."})
    await ended(ingest_client, answer["jobId"])
    assert await count(database, "SELECT count(*) FROM knowledge.source") == 1


async def test_a_file_of_another_organisation_is_not_seen(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    _, answer = await upload(ingest_client, {"a.md": NOTE})
    source = answer["knowledgeSourceIds"][0]
    async with database.system_tx() as conn:
        other = await conn.fetchval(
            "INSERT INTO tenancy.organisation (name) VALUES ('x') RETURNING id"
        )
    async with database.tenant_tx(other) as conn:
        assert await conn.fetchval("SELECT count(*) FROM knowledge.source") == 0
        assert await conn.fetchval("SELECT count(*) FROM knowledge.entry") == 0
    for path in (f"/api/knowledge-source/{uuid4()}", f"/api/knowledge-source/{uuid4()}/progress"):
        async with ingest_client.get(path) as refused:
            assert refused.status == 404
    assert (await asked(ingest_client, f"/api/knowledge-source/{source}"))["name"] == "a.md"


async def test_a_source_is_deleted_with_its_passages(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    await asked(ingest_client, "/api/applications", "POST", name="repairs")
    _, answer = await upload(
        ingest_client, {"a.md": NOTE, "b.md": "Another note."}, applicationId="repairs"
    )
    await ended(ingest_client, answer["jobId"])
    first, _ = answer["knowledgeSourceIds"]
    await asked(ingest_client, f"/api/knowledge-source/{first}", "DELETE")
    assert await count(database, "SELECT count(*) FROM knowledge.chunk") == 1
    gone = await asked(ingest_client, "/api/applications/repairs", "DELETE")
    assert gone == {"sources": 1}
    for table in ("source", "entry", "chunk", "vector", "tally", "application"):
        assert await count(database, f"SELECT count(*) FROM knowledge.{table}") == 0, table


async def test_dead_letters_of_files_are_counted_once(
    ingest_client: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    """`tasks retry` takes letters of any jobs; each is a part of the progress of one of them."""
    application = await asked(ingest_client, "/api/applications", "POST", name="repairs")
    for name in ("one.pdf", "two.pdf"):
        _, answer = await upload(
            ingest_client, {name: f"%PDF-1.7 {name}".encode()}, applicationId="repairs"
        )
        await ended(ingest_client, answer["jobId"])
    async with database.tenant_tx(organisation_id) as conn:
        again = await source_operations.retry_letters(
            conn, organisation_id, DeadLetterFilter(), by="me"
        )
    assert (await ended(ingest_client, str(again)))["failed"] == 2
    progress = await asked(ingest_client, f"/api/applications/{application['id']}/progress")
    assert (progress["total"], progress["completed"], progress["failed"]) == (2, 0, 2)


async def test_a_failed_file_is_tried_again(
    ingest_client: aiohttp.ClientSession, database: Database
) -> None:
    application = await asked(ingest_client, "/api/applications", "POST", name="repairs")
    _, answer = await upload(
        ingest_client, {"a.md": NOTE, "broken.pdf": b"%PDF-1.7 nothing"}, applicationId="repairs"
    )
    await ended(ingest_client, answer["jobId"])
    broken = answer["files"][1]["knowledgeSourceId"]
    again = await asked(ingest_client, f"/api/knowledge-source/{broken}/retry", "POST")
    job = await ended(ingest_client, again["job_id"])
    assert (job["failed"], job["retry_of"]) == (1, answer["jobId"])
    async with database.system_tx() as conn:
        first, second = await conn.fetch(
            "SELECT options FROM queue.job WHERE kind = 'ingest' ORDER BY created_at"
        )
    # What a text is made with is frozen with the job.
    assert first["options"]["embedding_config"] == second["options"]["embedding_config"]
    progress = await asked(ingest_client, f"/api/applications/{application['id']}/progress")
    assert (progress["total"], progress["completed"], progress["failed"]) == (2, 1, 1)
    # Uploading it again also tries again.
    _, answer = await upload(
        ingest_client, {"broken.pdf": b"%PDF-1.7 nothing"}, applicationId="repairs"
    )
    assert (answer["jobCount"], answer["knowledgeSourceIds"]) == (1, [broken])


async def test_a_cancelled_upload_is_not_pending(
    database: Database, server_settings: Settings
) -> None:
    async with answering(database, server_settings) as ingest_client:
        application = await asked(ingest_client, "/api/applications", "POST", name="repairs")
        files = {f"{n}.md": f"{NOTE} Number {n}." for n in range(300)}
        _, answer = await upload(ingest_client, files, applicationId="repairs")
        source = answer["knowledgeSourceIds"][-1]
        await asked(ingest_client, f"/api/knowledge-source/{source}/cancel", "POST")
        async with asyncio.timeout(100):
            while True:
                progress = await asked(
                    ingest_client, f"/api/applications/{application['id']}/progress"
                )
                parts = ("completed", "failed", "processing", "pending", "cancelled")
                assert sum(progress[name] for name in parts) == progress["total"] == 300
                assert (progress["processing"], progress["pending"]) == (0, 0)
                rows = await count(
                    database, "SELECT count(*) FROM knowledge.source WHERE status = 'completed'"
                )
                left = await count(
                    database, "SELECT count(*) FROM knowledge.source WHERE status = 'pending'"
                )
                if not left and rows == progress["completed"]:
                    break
                await asyncio.sleep(0.1)
        shown = await asked(ingest_client, f"/api/knowledge-source/{source}")
        assert shown["status"] in {"cancelled", "completed"}
