"""Requests and operations are measured beside the work, added up by job and by day, and go."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import pytest
from prometheus_client import REGISTRY

from tests.support.http_api import Served
from tests.support.settings import change_settings
from trapline import logs
from trapline.app import duties
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.measure import ApiRequest, Operation, Recorder
from trapline.measure.recorder import drop_job_times
from trapline.model import JobId, OrganisationId, TaskId
from trapline.queue import jobs
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.maintenance import partitions
from trapline.settings import Settings


def operation(
    organisation_id: OrganisationId, *, kind: str = "chunking", ms: float = 2.0, **more: object
) -> Operation:
    return Operation(
        type=kind, name="passages", organisation_id=organisation_id, milliseconds=ms, **more
    )  # type: ignore[arg-type]


async def test_operations_are_written_and_added_up_by_job(
    database: Database, organisation_id: OrganisationId
) -> None:
    recorder, job, trace = Recorder(), JobId(uuid4()), uuid4()
    logs.bind_trace(trace)
    with recorder.timed(
        "embedding", "static", organisation_id, job_id=job, document_url="https://a.example/"
    ) as extra:
        extra["texts"] = 3
    with (
        pytest.raises(ValueError, match="no model"),
        recorder.timed("embedding", "static", organisation_id, job_id=job),
    ):
        raise ValueError("no model")
    recorder.operation(operation(organisation_id, job_id=job, task_id=TaskId(7)))
    recorder.operation(operation(organisation_id, ms=5.5, job_id=job))
    assert await recorder.flush(database) == 4
    recorder.operation(operation(organisation_id, ms=2.5, job_id=job))
    assert await recorder.flush(database) == 1
    assert await recorder.flush(database) == 0
    async with database.system_tx() as conn:
        rows = await conn.fetch("SELECT * FROM measure.operation ORDER BY id")
        sums = await conn.fetch(
            "SELECT type, operations, failures, milliseconds FROM measure.job_time ORDER BY 1"
        )
    assert [row["error"] for row in rows] == [None, "no model", None, None, None]
    assert {row["request_id"] for row in rows} == {trace}
    assert rows[0]["document_url"] == "https://a.example/"
    assert rows[0]["extra"] == {"texts": 3}
    assert rows[2]["task_id"] == 7
    assert tuple(sums[0]) == ("chunking", 3, 0, 10.0)
    assert tuple(sums[1])[:3] == ("embedding", 2, 1)
    assert sums[1]["milliseconds"] == pytest.approx(sum(row["milliseconds"] for row in rows[:2]))


async def test_hostile_texts_are_cut_and_cleaned(
    database: Database, organisation_id: OrganisationId
) -> None:
    recorder = Recorder()
    recorder.operation(
        operation(organisation_id, document_url="https://a.example/\x00\ud800" + "x" * 900)
    )
    recorder.request(
        ApiRequest(
            method="M" * 99,
            path="/v2/" + "\x00" * 900,
            route="none",
            status=404,
            milliseconds=1.0,
            request_id=uuid4(),
            user_agent="\x00" * 900,
        )
    )
    assert await recorder.flush(database) == 2
    async with database.system_tx() as conn:
        url = await conn.fetchval("SELECT document_url FROM measure.operation")
        path = await conn.fetchval("SELECT path FROM measure.request")
    assert len(url) == len(path) == 500


async def test_what_does_not_fit_in_memory_is_dropped_and_counted(
    database: Database, organisation_id: OrganisationId
) -> None:
    def dropped() -> float:
        return REGISTRY.get_sample_value("trapline_measurements_dropped_total") or 0.0

    recorder, before = Recorder(most=2), dropped()
    for _ in range(5):
        recorder.operation(operation(organisation_id))
    assert dropped() == before + 3
    assert await recorder.flush(database) == 2


async def test_requests_are_noted_with_who_asked(
    database: Database, served: Served, server_settings: Settings
) -> None:
    recorder, mine = Recorder(), str(uuid4())
    async with database.system_tx() as conn:
        organisation = await tenancy.create_organisation(conn, "A")
        key = (await tenancy.issue_key(conn, organisation.id, "k", ("read",))).secret
    headers = {"User-Agent": "probe/1", "X-Request-Id": mine, "Authorization": f"Bearer {key}"}
    async with served(server_settings, recorder) as client:
        await (await client.get("/api/jobs?status=running", headers=headers)).read()
        await (await client.get(f"/v2/crawl/{uuid4()}", headers={"User-Agent": "stranger"})).read()
        await (await client.get("/health")).read()
    assert await recorder.flush(database) == 2
    async with database.system_tx() as conn:
        known, stranger = await conn.fetch("SELECT * FROM measure.request ORDER BY id")
    assert known["organisation_id"] == organisation.id
    assert (known["method"], known["path"], known["status"]) == ("GET", "/api/jobs", 200)
    assert (known["request_id"], known["user_agent"]) == (UUID(mine), "probe/1")
    assert (known["client"], known["milliseconds"] > 0) == ("127.0.0.1", True)
    assert (stranger["organisation_id"], stranger["status"]) == (None, 401)
    assert stranger["route"] == "/v2/crawl/{job_id}"
    async with database.tenant_tx(organisation.id) as conn:
        assert await conn.fetchval("SELECT count(*) FROM measure.request") == 1


async def test_a_running_server_writes_its_requests(served_site: str) -> None:
    mine = str(uuid4())
    async with aiohttp.ClientSession(served_site) as client:
        await (await client.get("/api/jobs", headers={"X-Request-Id": mine})).read()
        for _ in range(100):
            async with client.get("/api/metrics/requests?status=200&limit=1000") as answer:
                items = (await answer.json())["items"]
            if mine in {item["request_id"] for item in items}:
                return
            await asyncio.sleep(0.2)
    pytest.fail("the request was never written")


async def test_operations_are_listed_for_their_organisation(
    database: Database, served: Served, server_settings: Settings
) -> None:
    recorder = Recorder()
    async with database.system_tx() as conn:
        mine = await tenancy.ensure_default(conn)
        other = (await tenancy.create_organisation(conn, "B")).id
    job = NewJob("noop", mine)
    async with database.tenant_tx(mine) as conn:
        await jobs.submit(conn, Kinds([Kind("noop", dict)]), job, [], now=datetime.now(UTC))
    for number in range(5):
        recorder.operation(operation(mine, ms=number, job_id=job.id))
    recorder.operation(operation(mine, kind="bm25", error="full"))
    recorder.operation(operation(other))
    await recorder.flush(database)
    async with served(server_settings) as client:

        async def ask(path: str) -> Any:
            async with client.get(f"/api/metrics/{path}") as answer:
                assert answer.status == 200, await answer.text()
                return await answer.json()

        first = await ask("operations?limit=4")
        rest = await ask(f"operations?limit=4&cursor={first['next']}")
        assert len({item["id"] for item in first["items"] + rest["items"]}) == 6
        assert rest["next"] is None
        assert len((await ask(f"operations?job_id={job.id}&type=chunking"))["items"]) == 5
        assert [o["error"] for o in (await ask("operations?failed=true"))["items"]] == ["full"]
        assert await ask(f"jobs/{job.id}") == [
            {"type": "chunking", "operations": 5, "failures": 0, "milliseconds": 10.0}
        ]
        async with client.get(f"/api/metrics/jobs/{uuid4()}") as answer:
            assert answer.status == 404
        async with client.get("/api/metrics/operations?cursor=x") as answer:
            assert answer.status == 400


async def test_days_are_added_up_and_exported_before_a_month_goes(
    database: Database, organisation_id: OrganisationId, tmp_path: Path
) -> None:
    old = datetime.now(UTC) - timedelta(days=database.settings.retention.keep_days + 2)
    recorder = Recorder()
    for ms, error in ((2.0, None), (6.0, "down")):
        recorder.operation(operation(organisation_id, ms=ms, error=error, at=old))
    recorder.operation(operation(organisation_id, ms=1.0))
    for owner in (organisation_id, None, None):
        recorder.request(
            ApiRequest(
                method="GET",
                path="/api/jobs",
                route="/api/jobs",
                status=200,
                milliseconds=3.0,
                request_id=uuid4(),
                organisation_id=owner,
                at=old,
            )
        )
    await recorder.flush(database)
    settings = change_settings(database.settings, {"export_logs": tmp_path})
    await partitions.maintain(replace(database, settings=settings), duties.MEASUREMENTS)
    async with database.system_tx() as conn:
        days = await conn.fetch("SELECT * FROM measure.operation_day")
        requests = await conn.fetch("SELECT requests FROM measure.request_day ORDER BY 1")
        assert await conn.fetchval("SELECT count(*) FROM measure.operation") == 1
        assert await conn.fetchval("SELECT count(*) FROM measure.request") == 0
    assert [tuple(day)[1:] for day in days] == [
        (old.date(), "chunking", "passages", 2, 1, 8.0, 6.0)
    ]
    assert [row[0] for row in requests] == [1, 2]
    exported = (tmp_path / f"measure.operation_{old:%Y%m%d}.jsonl").read_text().splitlines()
    assert [json.loads(line)["error"] for line in exported] == [None, "down"]


async def test_months_are_made_ahead(database: Database) -> None:
    assert await partitions.maintain(database, duties.MEASUREMENTS) == len(duties.MEASUREMENTS)
    next_month = partitions.months_after(datetime.now(UTC), 1)[0]
    async with database.owner() as conn:
        name = f"measure.operation_{next_month:%Y%m}"
        assert await conn.fetchval("SELECT to_regclass($1)::text", name) == name


async def test_sums_of_jobs_long_gone_are_forgotten(
    database: Database, organisation_id: OrganisationId
) -> None:
    recorder = Recorder()
    for _ in range(2):
        recorder.operation(operation(organisation_id, job_id=JobId(uuid4())))
    await recorder.flush(database)
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE measure.job_time SET created_at = now() - interval '91 days'"
            " WHERE job_id = (SELECT min(job_id::text)::uuid FROM measure.job_time)"
        )
    assert await drop_job_times(database) == 1
    assert await drop_job_times(database) == 0
