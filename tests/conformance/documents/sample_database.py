"""A database as a day of use leaves it: crawls, scrapes, failures, what is cancelled, waits and runs."""

import asyncio
import hashlib
import hmac
import html
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import asyncpg
from pydantic import SecretStr

from tests.conformance.documents.statements import BEE
from tests.site.site import Site
from tests.support.http_api import client_of
from tests.support.ingest_api import asked, upload
from tests.support.queue_jobs import ended
from tests.support.scraper import site_settings
from tests.support.settings import change_settings
from trapline import app
from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.extract import extract
from trapline.model import JobId, MemberId, OrganisationId
from trapline.pipeline import after_job, submit
from trapline.pipeline.caller import Caller
from trapline.pipeline.options import CrawlOptions, PageOptions, VisitOptions
from trapline.queue import jobs
from trapline.queue.maintenance import job_expiry
from trapline.settings import Settings
from trapline.store.sql import changes

PAGES = 12
SECRET = "a secret of the senders"
AGENT = "firecrawl-py/4"
FILES = {"a.md": b"# Clocks\n\nThe tower clock is late.", "b.txt": b"Bells are cast in bronze."}
_CHANGES, _CRAWLS = "/api/webhooks/changedetection", "/api/webhooks/firecrawl"
INITIATED = timedelta(seconds=5)


@dataclass(slots=True)
class Filled:
    """Where the database is, and what is true of it."""

    dsn: str
    organisation_id: OrganisationId
    member_id: MemberId
    jobs: dict[str, JobId] = field(default_factory=dict)
    crawled: set[str] = field(default_factory=set)
    """URLs that the site saw fetched by the crawl."""
    titles: dict[str, str] = field(default_factory=dict)
    markdown: dict[str, str] = field(default_factory=dict)
    during: dict[str, list[asyncpg.Record]] = field(default_factory=dict)
    """What views showed while a page was being fetched."""
    application_id: object = None


async def fill(database: Database, site: Site, settings: Settings) -> Filled:
    """Use the system for a while."""
    async with database.system_tx() as conn:
        organisation_id = await tenancy.ensure_default(conn)
        member = await tenancy.add_member(conn, organisation_id, "ada@example.com")
        await tenancy.create_organisation(conn, "Others")
    facts = Filled(database.dsn, organisation_id, member.id)
    settings = change_settings(
        site_settings(settings, site),
        {
            "firecrawl_webhook_secret": SecretStr(SECRET),
            "changedetection_secret": SecretStr(SECRET),
        },
    )
    async with (
        app.run_worker(database, settings) as work,
        client_of(
            application.build(database, settings, work.services, work.recorder)
        ) as ingest_client,
    ):
        ingest_client.headers["User-Agent"] = AGENT
        await _crawl(database, site, facts)
        await _batch(database, site, facts)
        await _copies(database, site, facts)
        await _scrape(work.scraper, site, facts)
        await _expire_one(database, work.scraper, site, facts)
        await _cancel(database, site, facts)
        await _hold_back(database, site, facts)
        await _search(ingest_client)
        await _ingest(ingest_client, database, facts)
        await _watch(ingest_client, database, site, facts)
        await _crawl_elsewhere(ingest_client, database, facts)
    await after_job.roll_up_sightings(database)
    # Nobody works any more, so this file waits.
    async with client_of(application.build(database, settings)) as ingest_client:
        await _upload(ingest_client, facts, "later", {"later.md": b"# Later\n\nIt can wait."})
    return facts


async def _crawl(database: Database, site: Site, facts: Filled) -> None:
    options = CrawlOptions.parse(
        url=f"{site.url}manual/", limit=PAGES, delay=0, sitemap="skip", index=True
    )
    asked = datetime.now(UTC) - INITIATED
    async with database.tenant_tx(facts.organisation_id) as conn:
        job = facts.jobs["crawl"] = await submit.crawl(
            conn,
            facts.organisation_id,
            options,
            member_id=facts.member_id,
            metadata={"initiated_at": asked.isoformat(), "origin": "mcp", "api_key": "k-1"},
        )
    await ended(database, job, seconds=60)
    facts.crawled = set(site.log.pages())
    facts.titles = {url: _title(site.page(url).body) for url in facts.crawled}
    facts.markdown = {
        url: extract(site.page(url).body, "text/html", url).markdown for url in facts.crawled
    }


def _title(body: bytes) -> str:
    found = re.search(rb"<title>(.*?)</title>", body, re.DOTALL)
    assert found is not None
    return html.unescape(found[1].decode()).strip()


async def _batch(database: Database, site: Site, facts: Filled) -> None:
    """Pages of which one comes and two cannot."""
    urls = [
        site.at("/about/"),
        site.at("/hostile/status/404", "hostile.test"),
        site.at("/hostile/redirect/loop/2a", "hostile.test"),
    ]
    async with database.tenant_tx(facts.organisation_id) as conn:
        options = VisitOptions.parse(delay=0)
        facts.jobs["batch"] = await submit.batch(conn, facts.organisation_id, urls, options)
    await ended(database, facts.jobs["batch"])


async def _copies(database: Database, site: Site, facts: Filled) -> None:
    """Two addresses of one text."""
    copy = next(page.target for page in site.pages() if page.target.startswith("/copies/a/"))
    urls = [site.at(copy), site.at(copy.replace("/a/", "/b/"))]
    async with database.tenant_tx(facts.organisation_id) as conn:
        options = VisitOptions.parse(delay=0)
        facts.jobs["copies"] = await submit.batch(conn, facts.organisation_id, urls, options)
    await ended(database, facts.jobs["copies"])


async def _scrape(scraper: Any, site: Site, facts: Filled) -> None:
    for name, url in (
        ("scrape", site.at("/about/")),
        ("broken scrape", site.at("/hostile/status/410", "hostile.test")),
    ):
        caller = Caller(facts.organisation_id, facts.member_id)
        answer = await scraper.scrape(caller, PageOptions.parse(url=url, force=True))
        facts.jobs[name] = answer.job_id


async def _expire_one(database: Database, scraper: Any, site: Site, facts: Filled) -> None:
    """A scrape whose time is over: of its job nothing is left but that it was."""
    url = site.at("/about/")
    answer = await scraper.scrape(Caller(facts.organisation_id), PageOptions.parse(url=url))
    facts.jobs["expired scrape"] = answer.job_id
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE queue.job SET expires_at = now() - interval '1 second' WHERE id = $1",
            answer.job_id,
        )
    await job_expiry.expire(database)


async def _cancel(database: Database, site: Site, facts: Filled) -> None:
    options = CrawlOptions.parse(url=site.url, delay=60)
    async with database.tenant_tx(facts.organisation_id) as conn:
        job = facts.jobs["cancelled"] = await submit.crawl(conn, facts.organisation_id, options)
        await jobs.cancel(conn, job, by="ada", reason="a mistake")


async def _hold_back(database: Database, site: Site, facts: Filled) -> None:
    """One page at a time, and the first is slow: look while it runs, then let it end."""
    site.slow("/manual/*", first_byte=3.0)
    urls = sorted(facts.crawled)[:3]
    async with database.tenant_tx(facts.organisation_id) as conn:
        options = VisitOptions.parse(delay=0, max_concurrency=1, force=True)
        job = facts.jobs["slow"] = await submit.batch(conn, facts.organisation_id, urls, options)
    async with asyncio.timeout(60):
        while not facts.during.get("active"):
            async with database.system_tx() as conn:
                facts.during = {
                    name: await conn.fetch(statement, job) for name, statement in LOOKS.items()
                }
            await asyncio.sleep(0.05)
    facts.during["claim"] = await _as_printed(database, BEE["claim of a task"], [str(job)])
    site.mend()
    await ended(database, job, seconds=60)


async def _as_printed(
    database: Database, statement: str, *arguments: object
) -> list[asyncpg.Record]:
    conn = await asyncpg.connect(database.dsn)
    try:
        await conn.execute("SET search_path = bee, public")
        return list(await conn.fetch(statement, *arguments))
    finally:
        await conn.close()


LOOKS = {
    "active": "SELECT * FROM nuq.queue_scrape WHERE status = 'active' AND group_id = $1",
    "queued": "SELECT * FROM nuq.queue_scrape WHERE status = 'queued' AND group_id = $1",
    "backlog": "SELECT * FROM nuq.queue_scrape_backlog WHERE group_id = $1",
    "group": "SELECT * FROM nuq.group_crawl WHERE id = $1",
    "tasks": "SELECT * FROM bee.tasks WHERE job_id = $1::uuid::text",
    "session": "SELECT * FROM webhook.crawl_sessions WHERE job_id = $1::uuid::text",
}


async def _search(ingest_client: aiohttp.ClientSession) -> None:
    """Ask for what the crawl has made searchable."""
    found = await asked(ingest_client, "/api/search", "POST", query="manual")
    assert found["items"]


async def _watch(
    ingest_client: aiohttp.ClientSession, database: Database, site: Site, facts: Filled
) -> None:
    """A watcher elsewhere reports a change, and the page is looked at again."""
    report = {"watch_id": "w-1", "watch_url": site.at("/about/"), "diff": "one line"}
    body = json.dumps(report).encode()
    secret = (await asked(ingest_client, _CHANGES))["secret"]
    stored = await _told(ingest_client, _CHANGES, body, "X-Trapline-Signature", secret)
    facts.jobs["watch"] = JobId(UUID(stored["rescrape_job_id"]))
    await ended(database, facts.jobs["watch"], seconds=60)
    async with asyncio.timeout(60):
        # An event is consumed once no older transaction of the whole server is open.
        while await _is_awaited(database, facts.jobs["watch"]):
            await after_job.follow_up(database)
            await asyncio.sleep(0.05)


async def _is_awaited(database: Database, job_id: JobId) -> bool:
    async with database.system_tx() as conn:
        return bool(await changes.awaited_reports(conn, job_ids=[job_id]))


async def _crawl_elsewhere(
    ingest_client: aiohttp.ClientSession, database: Database, facts: Filled
) -> None:
    """A Firecrawl elsewhere tells of a crawl of two pages."""
    crawl = str(uuid4())
    for word, page in (("started", None), ("page", 1), ("page", 2), ("completed", None)):
        url = f"https://example.com/{page}"
        text = {"markdown": f"# Page {page}", "metadata": {"sourceURL": url, "statusCode": 200}}
        sent = {
            "success": True,
            "type": f"crawl.{word}",
            "id": crawl,
            "webhookId": str(uuid4()),
            "data": [] if page is None else [text],
            "metadata": {"applicationId": str(facts.application_id)},
        }
        body = json.dumps(sent).encode()
        told = await _told(ingest_client, _CRAWLS, body, "X-Firecrawl-Signature", SECRET)
    facts.jobs["elsewhere"] = JobId(UUID(told["job_id"]))
    await ended(database, facts.jobs["elsewhere"], seconds=60)


async def _told(
    ingest_client: aiohttp.ClientSession, path: str, body: bytes, header: str, secret: str
) -> dict[str, Any]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {header: f"sha256={digest}", "Content-Type": "application/json"}
    async with ingest_client.post(path, data=io.BytesIO(body), headers=headers) as answer:
        told: dict[str, Any] = await answer.json()
        assert answer.status < 300, told
        return told


async def _ingest(ingest_client: aiohttp.ClientSession, database: Database, facts: Filled) -> None:
    """Three files of an application: two are texts, one only says that it is a PDF."""
    made = await asked(ingest_client, "/api/applications", "POST", name="Library")
    facts.application_id = UUID(made["id"])
    await _upload(
        ingest_client, facts, "ingest", FILES | {"broken.pdf": b"%PDF-1.7 and then nothing"}
    )
    await ended(database, facts.jobs["ingest"], seconds=60)


async def _upload(
    ingest_client: aiohttp.ClientSession, facts: Filled, name: str, files: Mapping[str, bytes]
) -> None:
    fields = {"applicationId": str(facts.application_id), "userId": str(facts.member_id)}
    status, answer = await upload(ingest_client, files, **fields)
    assert status == 202, answer
    facts.jobs[name] = JobId(UUID(answer["jobId"]))
