"""What is kept goes when its time is over, a part at a time, and what may leave no trace leaves none."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import zstandard

from tests.support.marker_site import IN_URL, MARKER, crawled
from tests.support.queue_jobs import kinds_of, numbers, submit
from tests.support.settings import change_settings
from trapline import app
from trapline.db.pool import Database
from trapline.logs import configure
from trapline.model import OrganisationId, TaskId
from trapline.pipeline import content_retention
from trapline.pipeline.options import PageOptions
from trapline.pipeline.reports.job_results import JobResults
from trapline.pipeline.scrape.scraper import Caller
from trapline.queue import jobs
from trapline.queue.maintenance import job_expiry
from trapline.queue.sql import jobs as queries
from trapline.store import zero_retention
from trapline.store.blobs import BlobStore

COLUMNS = """
SELECT format('%I.%I', table_schema, table_name) AS "table", column_name AS "column", data_type AS type
FROM information_schema.columns
WHERE table_schema NOT IN ('information_schema') AND table_schema !~ '^pg_toast'
    AND (table_schema <> 'pg_catalog' OR table_name = 'pg_stats')
    AND data_type IN ('text', 'character varying', 'jsonb', 'json', 'bytea', 'ARRAY', 'anyarray')
"""


async def traces(database: Database, marker: str) -> set[str]:
    """Return every column of every table that holds a marker, in the clear or in a packed blob."""
    found = set()
    async with database.owner() as conn:
        for row in await conn.fetch(COLUMNS):
            value = f'"{row["column"]}"'
            where = f"{value}::text ILIKE '%' || $1 || '%'"
            if row["type"] == "bytea":
                where = f"position(convert_to($1, 'UTF8') in {value}) > 0"
            if await conn.fetchval(
                f"SELECT EXISTS (SELECT FROM {row['table']} WHERE {where})", marker
            ):
                found.add(f"{row['table']}.{row['column']}")
        for blob in await conn.fetch("SELECT data, compressed, size FROM store.blob"):
            data = blob["data"]
            body = zstandard.decompress(data, blob["size"]) if blob["compressed"] else data
            if marker.encode() in body:
                found.add("store.blob, packed")
    return found


@pytest.mark.usefixtures("own_logs")
async def test_zero_data_retention_leaves_nothing(
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure(
        change_settings(open_database.settings, {"log_level": "debug", "log_format": "json"}).logs
    )
    job_id = await crawled(open_database, organisation_id, origin, zdr=True)

    # For an hour it can be read, and it is in one place only.
    async with open_database.tenant_tx(organisation_id) as conn:
        rows = await zero_retention.of_job(conn, job_id, after=TaskId(0), most=10)
        expires_at = await conn.fetchval("SELECT expires_at FROM queue.job WHERE id = $1", job_id)
        job = await jobs.get(conn, job_id)
    assert len(rows) >= 2
    assert all(MARKER in row.markdown and MARKER in (row.title or "") for row in rows)
    read = [page async for page in JobResults(open_database, BlobStore()).pages(job)]
    assert [MARKER in page.document.markdown for page in read] == [True] * len(read)
    assert len(read) >= 2
    held = await traces(open_database, MARKER)
    # Views hold nothing: they show the URL that the task has.
    assert {name.split(".")[0] for name in held} <= {"store", "queue", "nuq"}
    assert not [name for name in held if name.startswith(("store.version", "store.blob"))]

    # After its time it is nowhere: not in a row, not in a blob, not in a sample of the planner.
    now = datetime.now(UTC)
    assert expires_at <= now + timedelta(hours=1)
    async with open_database.owner() as conn:
        await conn.execute("ANALYZE")
        await conn.execute("UPDATE queue.job SET expires_at = now()")
    assert await job_expiry.expire(open_database) == 1
    later = now + zero_retention.RETENTION + zero_retention.PARTITION_SPAN
    await content_retention.drop_zero_retention(open_database, later)
    assert await traces(open_database, MARKER) == set()
    assert await traces(open_database, IN_URL) == set()
    written = capfd.readouterr()
    assert MARKER not in written.out + written.err


async def test_a_scrape_that_someone_waits_for_writes_nothing_at_all(
    open_database: Database, organisation_id: OrganisationId, origin: str
) -> None:
    options = PageOptions.parse(url=origin, scrape={"zero_data_retention": True})
    async with app.open_scraper(open_database, open_database.settings) as scraper:
        answer = await scraper.scrape(Caller(organisation_id), options)
    assert answer.document is not None
    assert MARKER in answer.document.markdown
    assert await traces(open_database, MARKER) == set()


async def test_what_is_kept_is_found_by_the_same_search(
    open_database: Database, organisation_id: OrganisationId, origin: str
) -> None:
    await crawled(open_database, organisation_id, origin, zdr=False)
    held = await traces(open_database, MARKER)
    assert {"store.version.markdown", "store.version.metadata", "store.blob, packed"} <= held


async def test_an_hour_of_content_is_readable_and_no_more(
    open_database: Database, organisation_id: OrganisationId, origin: str
) -> None:
    now = datetime.now(UTC)
    await content_retention.drop_zero_retention(open_database, now)
    job_id = await crawled(open_database, organisation_id, origin, zdr=True)
    await content_retention.drop_zero_retention(open_database, now + timedelta(minutes=44))
    async with open_database.system_tx() as conn:
        assert await conn.fetchval("SELECT count(*) FROM store.fleeting_default") == 0
        assert len(await zero_retention.of_job(conn, job_id, after=TaskId(0), most=10)) >= 2
        await conn.execute(
            "UPDATE store.fleeting SET stored_at = stored_at - interval '59 minutes'"
        )
        assert len(await zero_retention.of_job(conn, job_id, after=TaskId(0), most=10)) >= 2
        await conn.execute("UPDATE store.fleeting SET stored_at = stored_at - interval '2 minutes'")
        assert await zero_retention.of_job(conn, job_id, after=TaskId(0), most=10) == []


# Versions

VERSIONS = """
WITH site AS (
    INSERT INTO store.site (organisation_id, name, base_url)
    VALUES ($1, 'site', 'http://a.example/') RETURNING id
),
page AS (
    INSERT INTO store.page (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at,
        version_number)
    SELECT gen_random_uuid(), $1, site.id, n, now(), now(), 4 FROM site, generate_series(1, 3) n
    RETURNING id
),
version AS (
    INSERT INTO store.version (organisation_id, page_id, number, visit_id, fetched_at,
        content_hash, extractor_version, text, markdown)
    SELECT $1, page.id, n, 1, now() - (4 - n) * interval '10 days', sha256(n::text::bytea), 1, '', ''
    FROM page, generate_series(1, 4) n RETURNING id, page_id, number
)
SELECT count(*) FROM version
"""


async def _versions(database: Database, organisation_id: OrganisationId) -> None:
    async with database.system_tx() as conn:
        assert await conn.fetchval(VERSIONS, organisation_id) == 12
        await conn.execute(
            "UPDATE store.page p SET version_id = v.id FROM store.version v"
            " WHERE v.page_id = p.id AND v.number = 4"
        )


@pytest.mark.parametrize(
    ("versions", "days", "left"),
    [
        (None, None, [1, 2, 3, 4]),
        (1, None, [4]),
        (3, None, [2, 3, 4]),
        (9, None, [1, 2, 3, 4]),
        # The second was replaced ten days ago, the first twenty.
        (None, 15, [2, 3, 4]),
        (None, 1, [3, 4]),
        (1, 9999, [4]),
    ],
)
async def test_versions_are_kept_by_number_and_by_age(
    database: Database,
    organisation_id: OrganisationId,
    versions: int | None,
    days: int | None,
    left: list[int],
) -> None:
    await _versions(database, organisation_id)
    kept = {"keep_versions": versions, "keep_version_days": days}
    other = replace(database, settings=change_settings(database.settings, kept))
    assert await content_retention.drop_versions(other) == 12 - 3 * len(left)
    async with database.system_tx() as conn:
        numbers_left = await conn.fetch("SELECT number FROM store.version ORDER BY number")
    assert sorted({row["number"] for row in numbers_left}) == left
    assert len(numbers_left) == 3 * len(left)


async def test_a_site_says_itself_what_is_kept(
    database: Database, organisation_id: OrganisationId
) -> None:
    await _versions(database, organisation_id)
    async with database.system_tx() as conn:
        await conn.execute("""UPDATE store.site SET config = '{"retention": {"versions": 2}}'""")
    settings = change_settings(database.settings, {"keep_versions": 4})
    assert await content_retention.drop_versions(replace(database, settings=settings)) == 6


# Jobs


async def test_a_large_job_is_forgotten_in_parts(
    database: Database, organisation_id: OrganisationId
) -> None:
    job_id, _ = await submit(database, kinds_of(), organisation_id, numbers(25))
    async with database.system_tx() as conn:
        await conn.execute(
            "INSERT INTO queue.event (job_id, number, organisation_id, type)"
            " SELECT $1, n, $2, 'page' FROM generate_series(100, 130) n",
            job_id,
            organisation_id,
        )
        parts = []
        while not parts or parts[-1] >= 10:
            parts.append(await queries.forget_job(conn, job_id=job_id, most=10))
            assert len(parts) < 20
        left = {
            table: await conn.fetchval(f"SELECT count(*) FROM queue.{table}")
            for table in ("job", "task", "ready", "lane", "event", "unique_key")
        }
    assert len(parts) > 5
    assert set(left.values()) == {0}


async def test_forgetting_does_not_hold_up_the_queue(
    database: Database, organisation_id: OrganisationId
) -> None:
    old, _ = await submit(database, kinds_of(), organisation_id, numbers(50))
    async with database.system_tx() as forgetting:
        await queries.forget_job(forgetting, job_id=old, most=10)
        # The part is not committed yet: new work goes in all the same.
        async with asyncio.timeout(100):
            await submit(database, kinds_of(), organisation_id, numbers(5))
