"""Jobs over HTTP and on the command line: made, listed, counted, steered, exported."""

import csv
import gzip
import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.cli import Trapline
from tests.support.http_api import Served
from tests.support.marker_site import MARKER, crawled
from tests.support.queue_jobs import ended, kinds_of, numbers, submit, working
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import ExitCode, VisitFailed
from trapline.model import OrganisationId
from trapline.pipeline.reports import page_export
from trapline.queue.audit import audit
from trapline.queue.maintenance import job_expiry, statistics_rollup
from trapline.queue.tasks import Task
from trapline.settings import Settings

CRAWL = {"kind": "crawl", "url": "http://docs.example/"}
NOBODY = "00000000-0000-4000-8000-000000000000"


async def made(api: aiohttp.ClientSession, **more: Any) -> dict[str, Any]:
    async with api.post("/api/jobs", json=CRAWL | more) as answer:
        assert answer.status == 201, await answer.text()
        return dict(await answer.json())


async def everything(api: aiohttp.ClientSession, path: str, **query: str) -> list[dict[str, Any]]:
    """Go through all pages of a list, two items at a time."""
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        params = query | {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        async with api.get(path, params=params) as answer:
            assert answer.status == 200, await answer.text()
            page = await answer.json()
        items += page["items"]
        cursor = page["next"]
        if cursor is None:
            return items


async def test_a_job_is_made_shown_steered_and_deleted(api: aiohttp.ClientSession) -> None:
    job = await made(api, priority=8, metadata={"for": "me"}, options={"limit": 3})
    assert (job["status"], job["priority"], job["limit"], job["percent"]) == ("pending", 8, 3, 0.0)
    path = f"/api/jobs/{job['id']}"
    async with api.get(f"{path}/why") as answer:
        assert "No agent is alive" in (await answer.json())["why"]
    for step, status in (("pause", "paused"), ("resume", "pending"), ("cancel", "cancelled")):
        async with api.post(f"{path}/{step}") as answer:
            assert (await answer.json())["status"] == status
    async with api.post(f"{path}/cancel", json={"reason": "again"}) as answer:
        assert answer.status == 409
    async with api.delete(path) as answer:
        assert answer.status == 204
    async with api.get(path) as answer:
        assert answer.status == 404
    assert await everything(api, "/api/jobs") == []


async def test_an_open_job_is_not_deleted(api: aiohttp.ClientSession) -> None:
    job = await made(api)
    async with api.delete(f"/api/jobs/{job['id']}") as answer:
        assert answer.status == 409


async def test_jobs_are_listed_in_both_orders_and_filtered(api: aiohttp.ClientSession) -> None:
    ids = [(await made(api))["id"] for _ in range(5)]
    pages = {"kind": "batch_scrape", "url": None, "urls": ["http://a.example/"]}
    ids.append((await made(api, **pages))["id"])
    async with api.post(f"/api/jobs/{ids[1]}/cancel") as answer:
        assert answer.status == 200
    newest = await everything(api, "/api/jobs")
    assert [job["id"] for job in newest] == ids[::-1]
    oldest = await everything(api, "/api/jobs", sort="oldest")
    assert [job["id"] for job in oldest] == ids
    pending = await everything(api, "/api/jobs", status="pending", sort="oldest")
    assert [job["id"] for job in pending] == [ids[0], *ids[2:]]
    cancelled = await everything(api, "/api/jobs", status="cancelled")
    assert [job["id"] for job in cancelled] == [ids[1]]
    assert len(await everything(api, "/api/jobs", kind="batch_scrape")) == 1
    middle = newest[2]["created_at"]
    since = await everything(api, "/api/jobs", since=middle)
    assert [job["id"] for job in since] == ids[3:][::-1]
    until = await everything(api, "/api/jobs", until=middle, sort="oldest")
    assert [job["id"] for job in until] == ids[:3]


async def test_counts_are_right_before_and_after_folding(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    for _ in range(4):
        job = await made(api)
    async with api.post(f"/api/jobs/{job['id']}/cancel"):
        pass
    expected = [
        {"kind": "crawl", "status": "cancelled", "jobs": 1},
        {"kind": "crawl", "status": "pending", "jobs": 3},
    ]
    for _ in range(2):
        async with api.get("/api/jobs/counts") as answer:
            assert await answer.json() == expected
        async with api.get("/api/jobs/hours") as answer:
            hours = await answer.json()
        assert sum(hour["created"] for hour in hours) == 4
        assert sum(hour["cancelled"] for hour in hours) == 1
        await statistics_rollup.merge_tally(database)
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM queue.job_tally") == 2
        assert await audit(conn) == []
        await conn.execute("UPDATE queue.job SET expires_at = now() WHERE status = 'cancelled'")
    await job_expiry.expire(database)
    await statistics_rollup.merge_tally(database)
    async with api.get("/api/jobs/counts") as answer:
        assert await answer.json() == expected[1:]
    async with database.system_tx() as conn:
        await conn.execute("DELETE FROM queue.job_tally")
        assert {difference.what for difference in await audit(conn)} == {"jobs pending"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "bake"},
        {"url": None},
        {"url": ""},
        {"url": "ftp://a.example/"},
        {"urls": ["http://a.example/"]},
        {"kind": "batch_scrape", "url": None, "urls": []},
        {"options": {"limit": 0}},
        {"options": {"unknown": 1}},
        {"options": {"include": ["("]}},
        {"priority": 11},
        {"metadata": {"a": "\0"}},
        {"metadata": {"a": "x" * 2_000_000}},
        {"site_id": "x"},
        {"more": 1},
        {"kind": "map", "url": None},
        {"kind": "map", "urls": ["http://a.example/"]},
        {"kind": "map", "options": {"limit": 100_001}},
        {"kind": "map", "options": {"max_depth": 1}},
        {"kind": "scrape", "url": "javascript:alert(1)"},
        {"kind": "scrape", "options": {"limit": 1}},
        {"kind": "scrape", "options": {"scrape": {"headers": {"a": "b\nc"}}}},
    ],
)
async def test_a_bad_job_is_refused(api: aiohttp.ClientSession, wrong: dict[str, Any]) -> None:
    body = io.BytesIO(json.dumps(CRAWL | wrong).encode())
    headers = {"Content-Type": "application/json"}
    async with api.post("/api/jobs", data=body, headers=headers) as answer:
        assert answer.status in {400, 413}, await answer.text()
        assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize("step", ["", "/why", "/tasks", "/errors", "/links", "/export"])
async def test_a_job_that_is_not_there_is_not_found(api: aiohttp.ClientSession, step: str) -> None:
    async with api.get(f"/api/jobs/{NOBODY}{step}") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    "query",
    [
        {"status": "happy"},
        {"limit": "0"},
        {"limit": "1001"},
        {"cursor": "x"},
        {"cursor": "WyIyMDI2LTExLTE1VDEwOjAwOjAwIiwieCJd"},
        {"since": "yesterday"},
        {"sort": "size"},
        {"kind": "\0"},
    ],
)
async def test_a_bad_question_is_refused(api: aiohttp.ClientSession, query: dict[str, str]) -> None:
    async with api.get("/api/jobs", params=query) as answer:
        assert answer.status == 400


async def test_tasks_errors_and_retry(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    async def handler(task: Task) -> int:
        if task.payload.n % 2:
            raise VisitFailed(ExitCode.NOT_FOUND)
        return 1

    kinds = kinds_of(handler)
    job_id, _ = await submit(database, kinds, organisation_id, numbers(7))
    async with working(database, kinds):
        await ended(database, job_id)
    tasks = await everything(api, f"/api/jobs/{job_id}/tasks")
    assert [task["status"] for task in tasks] == ["completed", "failed"] * 3 + ["completed"]
    errors = await everything(api, f"/api/jobs/{job_id}/errors")
    assert [error["payload"]["n"] for error in errors] == [1, 3, 5]
    assert {error["code"] for error in errors} == {int(ExitCode.NOT_FOUND)}
    async with api.post(f"/api/jobs/{job_id}/retry") as answer:
        assert answer.status == 201
        again = await answer.json()
    assert (again["retry_of"], again["total"]) == (str(job_id), 3)


async def test_an_organisation_without_pages_left_is_told_when(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        await tenancy.limit_organisation(
            conn, organisation_id, max_concurrency=None, max_pages_per_day=1
        )
        await conn.execute(
            "INSERT INTO queue.quota (organisation_id, day, pages)"
            " VALUES ($1, queue.day_of(now()), 1)",
            organisation_id,
        )
    async with api.post("/api/jobs", json=CRAWL) as answer:
        assert answer.status == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 86400


async def test_another_organisation_sees_nothing(
    served: Served, server_settings: Settings, database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        other = await tenancy.create_organisation(conn, "other")
        keys = {
            name: (await tenancy.issue_key(conn, owner, name, ["read", "write"])).secret
            for name, owner in (("mine", organisation_id), ("theirs", other.id))
        }
    mine = {"Authorization": f"Bearer {keys['mine']}"}
    theirs = {"Authorization": f"Bearer {keys['theirs']}"}
    async with served(server_settings) as api:
        async with api.post("/api/jobs", json=CRAWL, headers=mine) as answer:
            job_id = (await answer.json())["id"]
        for step in ("", "/why", "/tasks", "/errors", "/links", "/export"):
            async with api.get(f"/api/jobs/{job_id}{step}", headers=theirs) as answer:
                assert answer.status == 404
        for step in ("/cancel", "/pause", "/retry"):
            async with api.post(f"/api/jobs/{job_id}{step}", headers=theirs) as answer:
                assert answer.status == 404
        async with api.get("/api/jobs", headers=theirs) as answer:
            assert (await answer.json())["items"] == []
        async with api.get("/api/jobs/counts", headers=theirs) as answer:
            assert await answer.json() == []
        async with api.get("/api/jobs") as answer:
            assert answer.status == 401


# Logs


async def test_logs_are_read_by_job_and_level(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    job = await made(api)
    async with database.system_tx() as conn:
        for n, level in enumerate(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")):
            await conn.execute(
                "INSERT INTO queue.job_log (organisation_id, job_id, step, level, message, created_at)"
                " VALUES ($1, $2, $3, $4, $5, $6)",
                organisation_id,
                job["id"],
                "fetch" if n % 2 else "store",
                level,
                f"line {n}",
                datetime.now(UTC) - timedelta(minutes=n),
            )
    for query in ({"job_id": job["id"]}, {}):
        lines = await everything(api, "/api/logs", **query)
        assert [line["message"] for line in lines] == [f"line {n}" for n in range(5)]
        above = await everything(api, "/api/logs", **query, level="WARNING")
        assert [line["level"] for line in above] == ["WARNING", "ERROR", "CRITICAL"]
        assert len(await everything(api, "/api/logs", **query, step="fetch")) == 2
    async with api.get("/api/logs", params={"job_id": NOBODY}) as answer:
        assert answer.status == 404
    for bad in ({"level": "LOUD"}, {"cursor": "IiI"}, {"job_id": "x"}):
        async with api.get("/api/logs", params=bad) as answer:
            assert answer.status == 400


# Export


@pytest.mark.parametrize("zdr", [False, True])
async def test_pages_are_exported_in_every_format(
    api: aiohttp.ClientSession,
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
    zdr: bool,
) -> None:
    job_id = await crawled(open_database, organisation_id, origin, zdr=zdr)
    bodies = {}
    for name in ("jsonl", "csv", "markdown"):
        async with api.get(f"/api/jobs/{job_id}/export", params={"format": name}) as answer:
            assert answer.status == 200
            assert str(job_id) in answer.headers["Content-Disposition"]
            bodies[name] = await answer.read()
    async with api.get(f"/api/jobs/{job_id}/export", params={"format": "warc"}) as answer:
        warc = gzip.decompress(await answer.read())
    # Visits that leave no trace are in no archive.
    assert (MARKER.encode() in warc) is not zdr
    lines = [json.loads(line) for line in bodies["jsonl"].splitlines()]
    assert len(lines) >= 2
    assert all(MARKER in line["markdown"] for line in lines)
    rows = list(csv.DictReader(io.StringIO(bodies["csv"].decode())))
    assert [row["url"] for row in rows] == [line["url"] for line in lines]
    with zipfile.ZipFile(io.BytesIO(bodies["markdown"])) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == len(lines)
        assert MARKER in archive.read(archive.namelist()[0]).decode()


async def test_an_empty_job_exports_to_an_empty_file(api: aiohttp.ClientSession) -> None:
    job = await made(api)
    for name, size in (("jsonl", 0), ("csv", 70), ("markdown", 22)):
        async with api.get(f"/api/jobs/{job['id']}/export", params={"format": name}) as answer:
            assert len(await answer.read()) <= size
    async with api.get(f"/api/jobs/{job['id']}/export", params={"format": "pdf"}) as answer:
        assert answer.status == 400


def test_a_cell_is_never_a_formula() -> None:
    assert [page_export._cell(value) for value in ("=1+1", "@x", "plain", 7, None)] == [
        "'=1+1",
        "'@x",
        "plain",
        7,
        None,
    ]


async def test_the_command_line_does_the_same(trapline: Trapline, tmp_path: Path) -> None:
    job = (await trapline("jobs", "create", "http://docs.example/", "--priority", "9")).out.strip()
    shown = (await trapline("jobs", "show", job, "--json")).json
    assert (shown["id"], shown["priority"]) == (job, -4)
    assert (await trapline("jobs", "create", "http://a.example/", "http://b.example/")).status == 2
    assert (await trapline("jobs", "counts", "--json")).json[0]["jobs"] == 1
    assert (await trapline("jobs", "errors", job)).out.strip() == "No errors."
    assert (await trapline("jobs", "delete", job)).status == 5
    assert (await trapline("jobs", "cancel", job)).status == 0
    out = tmp_path / "out.jsonl"
    assert (await trapline("export", "--job", job, "--jsonl", str(out))).status == 0
    assert out.read_bytes() == b""
    assert (await trapline("export", "--job", job, "--jsonl", str(out))).status == 5
    assert (await trapline("export", "--jsonl", str(out), "--replace")).status == 2
    assert (await trapline("export", "--job", job)).status == 2
    assert (await trapline("jobs", "delete", job)).status == 0
