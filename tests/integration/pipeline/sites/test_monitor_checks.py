"""What the looks of a monitor cost: pages are read from a place on, sums are counted once."""

from datetime import UTC, datetime

import pytest

from tests.support.queue_jobs import kinds_of, numbers, submit
from trapline.api.firecrawl import monitor
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.pipeline.sites import monitor_checks
from trapline.pipeline.sites.monitor_checks import Position
from trapline.pipeline.sql import monitor_checks as queries
from trapline.queue.schedule import schedules
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.schedule.schedules import Plan

# Of every seven pages: new, same, changed, gone, failed, skipped and one more that is the same.
_PAGES = """
    INSERT INTO queue.event (job_id, number, organisation_id, type, task_id, data)
    SELECT t.job_id, 1000 + n, t.organisation_id, 'page', t.id, (ARRAY[
        '{"exit_code": 0, "change": "new"}', '{"exit_code": 0, "change": "same"}',
        '{"exit_code": 0, "change": "changed"}', '{"exit_code": 50, "error": "gone"}',
        '{"exit_code": 26, "error": "failed"}', '{"exit_code": 10}', '{"exit_code": 1}'
    ])[1 + n % 7]::jsonb
    FROM (SELECT * FROM queue.task WHERE job_id = $1 LIMIT 1) t, generate_series(0, $2 - 1) n
"""
_MISSED = """
    WITH host AS (
        INSERT INTO frontier.host (organisation_id, name) VALUES ($1, 'x') RETURNING id
    ),
    url AS (
        INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
        SELECT $1, host.id, true, '/' || n, sha256(n::text::bytea)
        FROM host, generate_series(1, 5) n RETURNING id
    )
    INSERT INTO store.change
        (organisation_id, site_id, page_id, url_id, status, source, detected_at, job_id)
    SELECT $1, $1, $1, url.id, 'removed', 'sweep', now(), $2 FROM url
"""


@pytest.fixture
async def job_id(database: Database, organisation_id: OrganisationId) -> JobId:
    found, _ = await submit(database, kinds_of(), organisation_id, numbers(1))
    async with database.owner() as owner:
        await owner.execute('UPDATE queue.task SET payload = \'{"url": "https://x/"}\'')
        await owner.execute(_PAGES, found, 70)
        await owner.execute(_MISSED, organisation_id, found)
    return found


@pytest.mark.parametrize("status", [None, "removed", "changed", "error"])
async def test_pages_join_exactly_by_place_and_by_number(
    database: Database, organisation_id: OrganisationId, job_id: JobId, status: str | None
) -> None:
    async with database.tenant_tx(organisation_id) as conn:
        whole = await monitor_checks.pages(conn, job_id, status=status, most=1000)
        expected = {None: 65, "removed": 15, "changed": 10, "error": 10}[status]
        assert len(whole) == len({page.row.id + str(page.position) for page in whole}) == expected
        for most in (1, 3, 7, 64):
            after, found = Position(), []
            while part := await monitor_checks.pages(
                conn, job_id, status=status, after=after, most=most
            ):
                assert len(part) <= most
                found += part
                after = part[-1].position
            assert found == whole
            counted = []
            while part := await monitor_checks.pages(
                conn, job_id, status=status, skip=len(counted), most=most
            ):
                counted += part
            assert counted == whole


async def test_a_look_is_summed_once(
    database: Database, organisation_id: OrganisationId, job_id: JobId
) -> None:
    rule = Rule("recurring", "0 0 * * *")
    now = datetime.now(UTC)

    async def made(*_: object) -> JobId:
        return job_id

    async with database.tenant_tx(organisation_id) as conn:
        row = await schedules.add(conn, organisation_id, Plan("m", rule), now=now)
        await schedules.run_now(conn, row.id, made, now=now)
        (running,) = await monitor._checks(conn, await schedules.runs(conn, row.id))
        (taken,) = await schedules.runs(conn, row.id)
    assert running["summary"] == {
        "totalPages": 65,
        "same": 20,
        "changed": 10,
        "new": 10,
        "removed": 15,
        "error": 10,
    }
    # It still runs: what it comes to is not known for good.
    assert taken.summary is None
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE queue.job SET status = 'completed', finished_at = now() - interval '1 hour'"
            " WHERE id = $1",
            job_id,
        )
    async with database.tenant_tx(organisation_id) as conn:
        (ended,) = await monitor._checks(conn, await schedules.runs(conn, row.id))
    async with database.system_tx() as conn:
        await conn.execute("DELETE FROM queue.event")
        await conn.execute("DELETE FROM store.change")
    async with database.tenant_tx(organisation_id) as conn:
        (later,) = await monitor._checks(conn, await schedules.runs(conn, row.id))
    assert later["summary"] == ended["summary"] == running["summary"]


async def test_pages_are_read_along_an_index_from_their_place(
    database: Database, organisation_id: OrganisationId, job_id: JobId
) -> None:
    async with database.owner() as owner:
        await owner.execute("UPDATE queue.event SET number = number + 1000000 WHERE type = 'page'")
        await owner.execute(_PAGES, job_id, 30_000)
        await owner.execute("VACUUM ANALYZE")
    gone: list[int] = []
    async with database.tenant_tx(organisation_id) as conn:
        plan = await conn.fetch(
            f"EXPLAIN (ANALYZE, TIMING OFF) {queries._CHECK_PAGES}",
            *(gone, job_id, 20_000, gone, None, 0, 50),
        )
    lines = "\n".join(row[0] for row in plan)
    assert "using event_pkey" in lines, lines
    assert "Index Cond: ((job_id = " in lines, lines
    assert "Rows Removed by Filter" not in lines, lines
