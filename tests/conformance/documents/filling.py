"""A database as a day of use leaves it: crawls, scrapes, failures, what is cancelled, waits and runs."""

import asyncio
import html
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg

from tests.conformance.documents.statements import BEE
from tests.queueing import ended, working
from tests.scraping import site_settings
from tests.site.site import Site
from trapline import app
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.measure import Operation, Recorder, Request
from trapline.model import JobId, MemberId, OrganisationId
from trapline.pipeline import followups, submit
from trapline.pipeline.asking import Asker
from trapline.pipeline.options import CrawlOptions, PageOptions, VisitOptions
from trapline.queue import jobs
from trapline.queue.finishing import Finished
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.maintenance import expiry
from trapline.queue.tasks import NewTask, Task
from trapline.settings import Settings

PAGES = 12
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
    async with app.working(database, site_settings(settings, site)) as work:
        await _crawl(database, site, facts)
        await _batch(database, site, facts)
        await _copies(database, site, facts)
        await _scrape(work.scraper, site, facts)
        await _expire_one(database, work.scraper, site, facts)
        await _cancel(database, site, facts)
        await _hold_back(database, site, facts)
        _measure(work.recorder, facts)
    await followups.fold_sightings(database)
    await _ingest(database, facts)
    return facts


async def _crawl(database: Database, site: Site, facts: Filled) -> None:
    options = CrawlOptions.parse(url=f"{site.url}manual/", limit=PAGES, delay=0, sitemap="skip")
    asked = datetime.now(UTC) - INITIATED
    async with database.tenant_tx(facts.organisation_id) as conn:
        job = facts.jobs["crawl"] = await submit.crawl(
            conn,
            facts.organisation_id,
            options,
            member_id=facts.member_id,
            metadata={"initiated_at": asked.isoformat(), "origin": "mcp", "api_key": "k-1"},
        )
    await ended(database, job)
    facts.crawled = set(site.log.pages())
    facts.titles = {url: _title(site.page(url).body) for url in facts.crawled}


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
        asker = Asker(facts.organisation_id, facts.member_id)
        answer = await scraper.scrape(asker, PageOptions.parse(url=url, force=True))
        facts.jobs[name] = answer.job_id


async def _expire_one(database: Database, scraper: Any, site: Site, facts: Filled) -> None:
    """A scrape whose time is over: of its job nothing is left but that it was."""
    url = site.at("/about/")
    answer = await scraper.scrape(Asker(facts.organisation_id), PageOptions.parse(url=url))
    facts.jobs["expired scrape"] = answer.job_id
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE queue.job SET expires_at = now() - interval '1 second' WHERE id = $1",
            answer.job_id,
        )
    await expiry.expire(database)


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


def _measure(recorder: Recorder, facts: Filled) -> None:
    """What indexing the crawl took, and a request that asked for it."""
    for kind, milliseconds in (
        ("chunking", 2.0),
        ("embedding", 30.0),
        ("vector", 4.0),
        ("bm25", 1),
    ):
        for page in sorted(facts.crawled):
            recorder.operation(
                Operation(
                    type=kind,
                    name="page",
                    organisation_id=facts.organisation_id,
                    milliseconds=milliseconds,
                    job_id=facts.jobs["crawl"],
                    document_url=page,
                    error="no room" if kind == "vector" and page.endswith("manual/") else None,
                )
            )
    recorder.request(
        Request(
            method="POST",
            path="/v2/crawl",
            route="/v2/crawl",
            status=200,
            milliseconds=12.5,
            request_id=uuid4(),
            organisation_id=facts.organisation_id,
            client="127.0.0.1",
            user_agent="firecrawl-py/4",
        )
    )


async def _ingest(database: Database, facts: Filled) -> None:
    """Files of a knowledge source: two are done, one fails, one waits."""
    source = uuid4()
    async with database.system_tx() as conn:
        facts.application_id = await conn.fetchval(
            "INSERT INTO knowledge.application (organisation_id, name) VALUES ($1, 'Library')"
            " RETURNING id",
            facts.organisation_id,
        )
        await conn.execute(
            "INSERT INTO knowledge.source (id, organisation_id, application_id, kind, name, uri,"
            " config) VALUES ($1, $2, $3, 'file', 'books', 'file:books', '{\"model\": \"static\"}')",
            source,
            facts.organisation_id,
            facts.application_id,
        )
    ids = {"source_id": str(source), "application_id": str(facts.application_id)}
    kinds = Kinds([Kind("file", dict, _read)])
    names = ("a.txt", "b.txt", "broken")
    tasks = [NewTask("file", ids | {"name": name}, max_attempts=1) for name in names]
    later = NewTask("file", ids | {"name": "later"}, run_at=datetime.now(UTC) + timedelta(hours=1))
    job = NewJob("ingest", facts.organisation_id, member_id=facts.member_id)
    async with database.tenant_tx(facts.organisation_id) as conn:
        await jobs.submit(conn, kinds, job, [*tasks, later], now=datetime.now(UTC))
    facts.jobs["ingest"] = job.id
    async with working(database, kinds), asyncio.timeout(60):
        while (await _done(database, job.id)) < len(tasks):  # noqa: ASYNC110 (no event says so)
            await asyncio.sleep(0.05)


async def _done(database: Database, job_id: JobId) -> int:
    async with database.system_tx() as conn:
        job = await jobs.get(conn, job_id)
    return job.completed + job.failed


async def _read(task: Task) -> Finished:
    if task.payload["name"] == "broken":
        raise ValueError("not a text")
    return Finished()
