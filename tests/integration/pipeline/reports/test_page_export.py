"""What a site holds as a file: in each format, over HTTP and on the command line, in little memory."""

import csv
import gzip
import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from uuid import UUID, uuid4

import aiohttp

from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.marker_site import MARKER, crawled
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline.reports import page_export
from trapline.queue import jobs

FORMATS = ("jsonl", "csv", "markdown", "warc")
MEGABYTE = 2**20


async def _site(database: Database) -> UUID:
    async with database.system_tx() as conn:
        found = await conn.fetchval("SELECT site_id FROM store.page LIMIT 1")
    assert isinstance(found, UUID)
    return found


async def test_a_bad_wish_is_refused(
    api: aiohttp.ClientSession,
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
) -> None:
    await crawled(open_database, organisation_id, origin)
    site = await _site(open_database)
    for path, status in (
        (f"/api/sites/{uuid4()}/export", 404),
        ("/api/sites/nobody/export", 404),
        (f"/api/sites/{site}/export?format=pdf", 400),
        (f"/api/sites/{site}/export?format=", 400),
    ):
        async with api.get(path) as answer:
            assert answer.status == status, path


async def test_a_site_is_exported_in_every_format(
    api: aiohttp.ClientSession,
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
) -> None:
    # Twice: a site has each page once, however often it was seen.
    await crawled(open_database, organisation_id, origin)
    await crawled(open_database, organisation_id, origin)
    site, bodies = await _site(open_database), {}
    for name in FORMATS:
        async with api.get(f"/api/sites/{site}/export", params={"format": name}) as answer:
            assert answer.status == 200
            assert str(site) in answer.headers["Content-Disposition"]
            bodies[name] = await answer.read()
    lines = [json.loads(line) for line in bodies["jsonl"].splitlines()]
    async with api.get("/api/pages", params={"site_id": str(site), "gone": "false"}) as answer:
        pages = (await answer.json())["items"]
    kept = [page for page in pages if page["version"]]
    assert [line["url"] for line in lines] == [page["url"] for page in kept]
    assert len(lines) >= 2
    assert all(MARKER in line["markdown"] for line in lines)
    rows = list(csv.DictReader(io.StringIO(bodies["csv"].decode())))
    assert [row["url"] for row in rows] == [line["url"] for line in lines]
    with zipfile.ZipFile(io.BytesIO(bodies["markdown"])) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == len(lines)
    assert MARKER.encode() in gzip.decompress(bodies["warc"])


async def test_pages_that_are_gone_are_left_out(
    api: aiohttp.ClientSession,
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
) -> None:
    await crawled(open_database, organisation_id, origin)
    site = await _site(open_database)
    async with open_database.system_tx() as conn:
        await conn.execute("UPDATE store.page SET gone_at = now()")
    for name in ("jsonl", "csv", "markdown"):
        async with api.get(f"/api/sites/{site}/export", params={"format": name}) as answer:
            assert len(await answer.read()) <= {"jsonl": 0, "csv": 70, "markdown": 22}[name]


async def test_large_pages_do_not_fill_the_memory(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.owner() as owner:
        rows = await owner.fetch(_LARGE, organisation_id, 40, MEGABYTE // 32)
        site, job_id = SiteId(rows[0]["site_id"]), JobId(rows[0]["job_id"])
    async with database.system_tx() as conn:
        job = await jobs.get(conn, job_id)
    written = (
        page_export.encode(page_export.pages_of_site(database, organisation_id, site), "jsonl"),
        page_export.encode(page_export.pages_of_job(database, job), "csv"),
    )
    for parts in written:
        tracemalloc.start()
        try:
            size = sum([len(part) async for part in parts])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # The text alone; the markdown is as much again.
        assert size > 40 * MEGABYTE
        assert peak < 25 * MEGABYTE, peak


async def test_the_command_line_exports_a_site(
    trapline: Trapline, site: Site, tmp_path: Path
) -> None:
    command = Trapline(trapline.environment | site.env(), trapline.directory)
    url = f"{site.url}manual/"
    done = await command(
        "crawl", url, "--limit", "3", "--sitemap", "skip", "--delay", "0", "--json"
    )
    assert done.status == 0, done.err
    for option, name in (("--jsonl", "a.jsonl"), ("--csv", "a.csv"), ("--markdown", "a.zip")):
        out = tmp_path / name
        told = await command("export", "--site", site.url, option, str(out), "--json")
        assert told.status == 0, told.err
        assert told.json == {"pages": 3, "bytes": out.stat().st_size}
        assert (await command("export", "--site", site.url, option, str(out))).status == 5
    assert (await command("export", "--site", "nobody", "--jsonl", "x.jsonl")).status == 3
    job = done.json["job"]["id"]
    both = await command("export", "--site", site.url, "--job", job, "--csv", "x.csv")
    assert both.status == 2


# Pages whose texts are a megabyte of digits each, of a site and of a job that saw them.
_LARGE = """
    WITH site AS (
        INSERT INTO store.site (organisation_id, name, base_url) VALUES ($1, 'large', 'x')
        RETURNING id
    ),
    job AS (
        INSERT INTO queue.job (id, organisation_id, kind) VALUES (gen_random_uuid(), $1, 'crawl')
        RETURNING id
    ),
    host AS (
        INSERT INTO frontier.host (organisation_id, name) VALUES ($1, 'x') RETURNING id
    ),
    url AS (
        INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
        SELECT $1, host.id, true, '/' || n, sha256(n::text::bytea)
        FROM host, generate_series(1, $2::integer) n RETURNING id
    ),
    page AS (
        INSERT INTO store.page (
            id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, version_id
        )
        SELECT gen_random_uuid(), $1, site.id, url.id, now(), now(), url.id FROM site, url
        RETURNING id, url_id, site_id
    ),
    content AS (
        SELECT string_agg(md5(n::text), '') AS text FROM generate_series(1, $3::integer) n
    ),
    version AS (
        INSERT INTO store.version (
            id, organisation_id, page_id, number, visit_id, fetched_at, content_hash,
            extractor_version, text, markdown
        )
        OVERRIDING SYSTEM VALUE
        SELECT page.url_id, $1, page.id, 1, 1, now(), sha256('x'), 1, page.url_id || text,
            page.url_id || text
        FROM page, content
    ),
    task AS (
        INSERT INTO queue.task (
            organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts
        )
        SELECT $1, job.id, 1, 1, 'page', jsonb_build_object('v', url.id), 1 FROM job, url
        RETURNING id, payload
    ),
    done AS (
        INSERT INTO queue.done (task_id, status, attempts, stalls, result)
        SELECT id, 0, 1, 0, jsonb_build_object('url', 'https://x/' || id, 'version_id', payload -> 'v') FROM task
    )
    SELECT site.id AS site_id, job.id AS job_id FROM site, job
"""
