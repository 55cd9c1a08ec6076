"""`trapline ingest`: folders and patterns, what is wrong with files, and kill -9 in the middle."""

import asyncio
from pathlib import Path

import asyncpg

from tests.site import office
from tests.site.pdf import pdf
from tests.support.cli import Trapline


def notes(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        text = f"# Note {number}\n\nClock {number} strikes at {number % 24}. " + "It is old. " * 200
        (folder / f"{number:03}.md").write_text(text)


async def value(trapline: Trapline, statement: str) -> int:
    conn = await asyncpg.connect(trapline.environment["DATABASE_URL"])
    try:
        found = await conn.fetchval(statement)
    finally:
        await conn.close()
    assert isinstance(found, int)
    return found


async def test_folders_patterns_and_what_is_wrong(trapline: Trapline, tmp_path: Path) -> None:
    notes(tmp_path / "notes", 5)
    (tmp_path / "notes" / ".hidden.md").write_text("Nobody sees this.")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "list.pdf").write_bytes(pdf([("Price list", "Glass: 30")], "List"))
    (tmp_path / "deep" / "form.docx").write_bytes(office.docx("Form", ("Name it.",)))
    (tmp_path / "deep" / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / "deep" / "empty.txt").touch()
    first = await trapline(
        "ingest", "notes", "deep/**/*.pdf", "deep/form.docx", "deep/empty.txt", "nowhere/*.md",
        "--app", "Repairs", "--json",
    )  # fmt: skip
    assert first.status == 1, first.err
    assert (first.json["job"]["completed"], first.json["job"]["failed"]) == (7, 1)
    assert {one["name"] for one in first.json["refused"]} == {"empty.txt", "nowhere/*.md"}
    assert [one["name"] for one in first.json["failed"]] == ["broken.pdf"]
    # What is there is recognised; what changed is taken in again, and its source stays the same.
    (tmp_path / "notes" / "001.md").write_text("# Another note\n\nIt is new.")
    second = await trapline("ingest", "notes", "--app", "repairs", "--json")
    assert second.status == 0, second.err
    assert (second.json["job"]["completed"], second.json["recognised"]) == (1, 4)
    listed = await trapline("sources", "list", "--app", "repairs", "--json")
    assert len(listed.json) == 8
    assert [one["status"] for one in listed.json].count("failed") == 1
    shown = await trapline("apps", "show", "repairs", "--json")
    assert (shown.json["total"], shown.json["completed"], shown.json["failed"]) == (9, 8, 1)
    assert await value(trapline, "SELECT count(*)::int FROM knowledge.entry") == 7
    plain = await trapline("ingest", "notes", "--app", "repairs")
    assert plain.status == 0
    assert "5 files were there already" in plain.out
    nothing = await trapline("ingest")
    assert nothing.status == 2


async def test_nothing_is_lost_or_there_twice_after_kill_9(
    trapline: Trapline, tmp_path: Path
) -> None:
    notes(tmp_path / "notes", 400)
    (tmp_path / "notes" / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    process = await trapline.start("ingest", "notes")
    async with asyncio.timeout(120):
        while True:
            await asyncio.sleep(0.02)
            try:
                done = await value(trapline, "SELECT count(*)::int FROM queue.done")
            except asyncpg.PostgresError:
                continue  # The schema is not there yet.
            if done > 20:
                break
    process.kill()
    await process.communicate()
    left = await value(trapline, "SELECT remaining::int FROM queue.job")
    assert left > 0
    conn = await asyncpg.connect(trapline.environment["DATABASE_URL"])
    job_id = await conn.fetchval("SELECT id FROM queue.job")
    await conn.close()
    resumed = await trapline("ingest", "--resume", str(job_id), "--json")
    assert resumed.status == 1, resumed.err
    assert (resumed.json["job"]["completed"], resumed.json["job"]["failed"]) == (400, 1)
    assert [one["name"] for one in resumed.json["failed"]] == ["notes/broken.pdf"]
    for statement, expected in (
        ("SELECT count(*)::int FROM knowledge.source WHERE status = 'completed'", 400),
        ("SELECT count(*)::int FROM knowledge.entry", 400),
        ("SELECT count(DISTINCT uri)::int FROM knowledge.entry", 400),
        (
            "SELECT (SELECT count(*) FROM knowledge.chunk)::int - count(*)::int FROM knowledge.vector",
            0,
        ),
        ("SELECT count(*)::int FROM queue.event WHERE type = 'item'", 401),
    ):
        assert await value(trapline, statement) == expected, statement
    # Every passage is in the keyword index once.
    conn = await asyncpg.connect(trapline.environment["DATABASE_URL"])
    held = await conn.fetch("SELECT chunk_ids FROM knowledge.segment")
    chunks = await conn.fetch("SELECT id FROM knowledge.chunk")
    await conn.close()
    indexed = sorted(
        int.from_bytes(one["chunk_ids"][at : at + 8], "little")
        for one in held
        for at in range(0, len(one["chunk_ids"]), 8)
    )
    assert indexed == sorted(one["id"] for one in chunks)
    audit = await trapline("audit")
    assert audit.status == 0, audit.out
