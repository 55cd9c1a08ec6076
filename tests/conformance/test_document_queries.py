"""Every SELECT of the reference documents runs as it is printed, and its answer is true.

What cannot run as printed is here too, with the reason; docs/views.md lists it.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from tests.conformance.documents.sample_database import AGENT, FILES, PAGES, Filled, fill
from tests.conformance.documents.statements import BEE, LEXICON, NUQ, RAG
from tests.site.site import Site
from tests.support.postgres import on_database
from trapline.db import connection
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database, ExternalServer
from trapline.settings import Settings


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def facts(
    server_dsn: str, template: str, server_settings: Settings, site_server: Site
) -> AsyncIterator[Filled]:
    """One database for all tests of this file, which only read it."""
    site_server.reset()
    name = f"documents_{uuid4().hex}"
    conn = await asyncpg.connect(server_dsn)
    try:
        await conn.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        server = ExternalServer(on_database(server_dsn, name))
        async with Database.connect(server, server_settings) as database:
            found = await fill(database, site_server, server_settings)
        yield found
        await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await conn.close()
        site_server.reset()


@pytest.fixture
async def owner(facts: Filled) -> AsyncIterator[OwnConnection]:
    """A connection as the documents' readers have it: to the database itself."""
    conn = await asyncpg.connect(facts.dsn)
    await connection.prepare(conn)
    yield conn
    await conn.close()


@pytest.fixture
async def bee(owner: OwnConnection) -> OwnConnection:
    await owner.execute("SET search_path = bee, public")
    return owner


class TestNuq:
    async def test_recent_completed_scrapes(self, owner: OwnConnection, facts: Filled) -> None:
        rows = await owner.fetch(NUQ["recent completed scrapes"])
        assert [row["id"] for row in rows] == [facts.jobs["scrape"]]
        (row,) = rows
        assert row["url"].endswith("/about/")
        assert row["team_id"] == str(facts.organisation_id)
        assert row["title"]
        assert row["content_length"] > 100
        assert row["created_at"] <= row["finished_at"]

    async def test_crawl_results_by_group(self, owner: OwnConnection, facts: Filled) -> None:
        query = NUQ["crawl results by group"].replace("<crawl_uuid>", str(facts.jobs["crawl"]))
        rows = await owner.fetch(query)
        assert len(rows) == PAGES
        assert {row["url"] for row in rows} == facts.crawled
        assert {row["url"]: row["title"] for row in rows} == facts.titles
        # Each is what is read from the bytes that the site sent.
        assert {row["url"]: row["markdown"] for row in rows} == facts.markdown
        assert min(len(text) for text in facts.markdown.values()) > 100
        assert [row["finished_at"] for row in rows] == sorted(row["finished_at"] for row in rows)

    async def test_failed_jobs(self, owner: OwnConnection, facts: Filled) -> None:
        rows = await owner.fetch(NUQ["failed jobs"])
        reasons = {re.sub(r"^https?://[^/]+", "", row["url"]): row["failedreason"] for row in rows}
        assert reasons.keys() == {
            "/hostile/status/404",
            "/hostile/status/410",
            "/hostile/redirect/loop/2a",
        }
        assert all(reasons.values())
        assert facts.jobs["broken scrape"] in {row["id"] for row in rows}
        assert {row["stalls"] for row in rows} == {0}
        assert all(row["finished_at"] is not None for row in rows)

    async def test_session_metrics(self, owner: OwnConnection, facts: Filled) -> None:
        rows = {row["job_id"]: row for row in await owner.fetch(NUQ["session metrics"])}
        assert rows.keys() == {str(job) for job in facts.jobs.values()}
        crawl = rows[str(facts.jobs["crawl"])]
        assert (crawl["operation_type"], crawl["status"]) == ("crawl", "completed")
        assert (crawl["total_urls"], crawl["completed_urls"], crawl["failed_urls"]) == (12, 12, 0)
        assert crawl["total_embedding_ms"] > 0
        assert crawl["total_qdrant_ms"] > 0
        took = (crawl["completed_at"] - crawl["started_at"]).total_seconds() * 1000
        assert crawl["duration_ms"] == pytest.approx(took)
        batch = rows[str(facts.jobs["batch"])]
        assert (batch["operation_type"], batch["base_url"][-7:]) == ("scrape_batch", "/about/")
        assert (batch["total_urls"], batch["completed_urls"], batch["failed_urls"]) == (3, 1, 2)
        assert rows[str(facts.jobs["cancelled"])]["status"] == "cancelled"
        assert rows[str(facts.jobs["broken scrape"])]["status"] == "failed"
        # Its job is gone; that it was, is not.
        gone = rows[str(facts.jobs["expired scrape"])]
        assert (gone["status"], gone["total_urls"]) == ("completed", 1)
        assert await owner.fetchval(
            "SELECT count(*) FROM queue.job WHERE id = $1", facts.jobs["expired scrape"]
        ) == 0  # fmt: skip

    async def test_the_rest_of_a_session(self, owner: OwnConnection, facts: Filled) -> None:
        crawl = await owner.fetchrow(
            "SELECT * FROM webhook.crawl_sessions WHERE job_id = $1", str(facts.jobs["crawl"])
        )
        assert crawl is not None
        assert crawl["e2e_duration_ms"] > crawl["duration_ms"] + 4000
        assert (crawl["success"], crawl["auto_index"]) == (True, True)
        assert (crawl["pages_indexed"], crawl["pages_failed"]) == (PAGES, 0)
        assert crawl["extra_metadata"]["origin"] == "mcp"
        # Its sums are those of what was noted one by one.
        for column, kind in (
            ("total_chunking_ms", "chunking"),
            ("total_embedding_ms", "embedding"),
            ("total_qdrant_ms", "qdrant"),
            ("total_bm25_ms", "bm25"),
        ):
            noted = await owner.fetchval(
                "SELECT sum(duration_ms) FROM webhook.operation_metrics"
                " WHERE crawl_id = $1 AND operation_type = $2",
                str(facts.jobs["crawl"]),
                kind,
            )
            assert crawl[column] == pytest.approx(noted)
        files = await owner.fetchrow(
            "SELECT * FROM webhook.crawl_sessions WHERE job_id = $1", str(facts.jobs["ingest"])
        )
        assert files is not None
        assert (files["total_pages"], files["pages_indexed"], files["pages_failed"]) == (3, 2, 1)
        (running,) = facts.during["session"]
        assert (running["status"], running["success"]) == ("in_progress", None)
        assert (running["completed_at"], running["duration_ms"]) == (None, None)

    async def test_jobs_with_sessions(self, owner: OwnConnection, facts: Filled) -> None:
        rows = await owner.fetch(NUQ["jobs with sessions"])
        pages = [row for row in rows if row["job_id"] == str(facts.jobs["crawl"])]
        # Its kickoff is a job there, too.
        assert len(pages) == PAGES + 1
        assert {row["total_urls"] for row in pages} == {PAGES}
        statuses = Counter(
            row["job_status"] for row in rows if row["job_id"] == str(facts.jobs["batch"])
        )
        assert statuses == {"completed": 1, "failed": 2}
        assert all(row["operation_type"] for row in rows)

    async def test_what_was_asked_and_found(self, owner: OwnConnection, facts: Filled) -> None:
        row = await owner.fetchrow(
            "SELECT data, returnvalue, owner_id FROM nuq.queue_scrape"
            " WHERE group_id = $1 AND status = 'completed' AND data ->> 'mode' = 'single_urls'"
            " AND data ->> 'sitemapped' = 'false' ORDER BY id LIMIT 1",
            facts.jobs["crawl"],
        )
        assert row is not None
        data, found = row["data"], row["returnvalue"]
        assert data["crawl_id"] == str(facts.jobs["crawl"])
        assert (data["origin"], data["apiKeyId"], data["is_scrape"]) == ("mcp", "k-1", False)
        assert data["crawlerOptions"]["limit"] == PAGES
        assert data.keys() >= {
            "mode", "team_id", "url", "scrapeOptions", "internalOptions", "v1", "zeroDataRetention",
        }  # fmt: skip
        assert found["content"] == found["markdown"]
        assert found["metadata"]["sourceURL"] == data["url"]
        assert found["metadata"]["statusCode"] == 200
        assert set(found["childrenLinks"]) <= set(found["linksOnPage"])
        assert found["provider"] == "trapline"
        assert row["owner_id"] == facts.organisation_id

    async def test_what_runs_and_what_is_held_back(self, facts: Filled) -> None:
        (active,) = facts.during["active"]
        assert active["lock"] is not None
        assert active["locked_at"] is not None
        assert facts.during["queued"] == []
        backlog = facts.during["backlog"]
        assert len(backlog) == 2
        assert {row["data"]["concurrencyLimited"] for row in backlog} == {True}
        assert facts.during["group"][0]["status"] == "active"
        assert Counter(row["status"] for row in facts.during["tasks"]) == {
            "running": 1,
            "pending": 2,
        }

    async def test_groups_and_their_ends(self, owner: OwnConnection, facts: Filled) -> None:
        groups = {row["id"]: row for row in await owner.fetch("SELECT * FROM nuq.group_crawl")}
        assert groups[facts.jobs["crawl"]]["status"] == "completed"
        assert groups[facts.jobs["cancelled"]]["status"] == "cancelled"
        assert groups[facts.jobs["crawl"]]["ttl"] == 86_400_000
        assert groups[facts.jobs["crawl"]]["expires_at"] is not None
        assert facts.jobs["scrape"] not in groups
        rows = await owner.fetch("SELECT * FROM nuq.queue_crawl_finished")
        assert {row["group_id"] for row in rows} == {
            facts.jobs[name]
            for name in (
                "crawl", "batch", "copies", "cancelled", "slow", "ingest", "watch", "elsewhere",
            )
        }  # fmt: skip

    async def test_measurements(self, owner: OwnConnection, facts: Filled) -> None:
        operations = await owner.fetch(
            "SELECT * FROM webhook.operation_metrics WHERE crawl_id = $1", str(facts.jobs["crawl"])
        )
        kinds = Counter(row["operation_type"] for row in operations)
        assert kinds == dict.fromkeys(("chunking", "embedding", "qdrant", "bm25"), PAGES)
        assert all(row["success"] and row["error_message"] is None for row in operations)
        assert all(row["duration_ms"] > 0 for row in operations)
        assert {row["document_url"] for row in operations} == facts.crawled
        kinds = Counter(
            row["operation_type"]
            for row in await owner.fetch(
                "SELECT * FROM webhook.operation_metrics WHERE crawl_id IS NULL"
            )
        )
        # A search looks for its words and embeds them to look for their meaning.
        assert kinds == {"embedding": 1, "qdrant": 1, "bm25": 1}
        requests = await owner.fetch("SELECT * FROM webhook.request_metrics ORDER BY timestamp")
        told = Counter((row["method"], row["path"], row["status_code"]) for row in requests)
        assert told == {
            ("POST", "/api/search", 200): 1,
            ("POST", "/api/applications", 201): 1,
            ("GET", "/api/webhooks/changedetection", 200): 1,
            ("POST", "/api/webhooks/changedetection", 202): 1,
            ("POST", "/api/webhooks/firecrawl", 200): 4,
            ("POST", "/upload/documents", 202): 1,
        }
        assert {(row["client_ip"], row["user_agent"]) for row in requests} == {("127.0.0.1", AGENT)}
        assert len({row["request_id"] for row in requests}) == len(requests)

    async def test_changes(self, owner: OwnConnection, facts: Filled) -> None:
        changes = await owner.fetch("SELECT * FROM webhook.change_events")
        assert facts.crawled <= {row["watch_url"] for row in changes}
        (told,) = [row for row in changes if row["watch_id"] == "w-1"]
        assert (told["diff_summary"], told["rescrape_status"]) == ("one line", "completed")
        assert told["rescrape_job_id"] == str(facts.jobs["watch"])
        assert told["indexed_at"] is not None


class TestRag:
    async def test_progress(self, owner: OwnConnection, facts: Filled) -> None:
        row = await owner.fetchrow(RAG["progress"], facts.application_id)
        assert row is not None
        assert dict(row) == {
            "completed": 4, "failed": 1, "processing": 0, "pending": 1, "total": 6,
        }  # fmt: skip
        nobody = await owner.fetchrow(RAG["progress"], uuid4())
        assert nobody is not None
        assert nobody["total"] == 0

    async def test_jobs_sources_and_applications(self, owner: OwnConnection, facts: Filled) -> None:
        rows = await owner.fetch(
            "SELECT j.*, s.name, a.name AS app FROM rag.processing_jobs j"
            " JOIN rag.knowledge_sources s ON s.id = j.knowledge_source_id"
            " JOIN app.applications a ON a.id = s.application_id"
        )
        assert {row["app"] for row in rows} == {"Library"}
        files = {row["name"] for row in rows if row["type"] == "file"}
        assert files == {*FILES, "broken.pdf", "later.md"}
        pages = [row for row in rows if row["type"] == "crawl_page"]
        assert [row["status"] for row in pages] == ["completed"] * 2
        assert {row["user_id"] for row in rows if row["type"] == "file"} == {facts.member_id}
        (failed,) = [row for row in rows if row["status"] == "failed"]
        assert failed["last_error"]
        assert 1 <= failed["attempts"] <= failed["max_attempts"]
        assert failed["payload"]["name"] == "broken.pdf"
        sources = await owner.fetch("SELECT * FROM rag.knowledge_sources")
        by_name = {row["name"]: row["status"] for row in sources if row["type"] == "file"}
        assert by_name == dict.fromkeys(FILES, "completed") | {
            "broken.pdf": "failed",
            "later.md": "pending",
        }


class TestLexicon:
    async def test_health(self, owner: OwnConnection) -> None:
        assert await owner.fetchval(LEXICON["health"]) == 1

    async def test_websites_jobs_pages_and_logs(self, owner: OwnConnection, facts: Filled) -> None:
        job = await owner.fetchrow(
            "SELECT j.*, w.base_url FROM lexicon.crawl_job j"
            " JOIN lexicon.website w ON w.id = j.website_id WHERE j.id = $1",
            facts.jobs["crawl"],
        )
        assert job is not None
        assert (job["job_type"], job["status"], job["priority"]) == ("one_time", "completed", 5)
        assert job["seed_url"].startswith(job["base_url"])
        assert job["progress"]["pages_crawled"] == job["progress"]["total"] == PAGES
        pages = await owner.fetch(
            "SELECT * FROM lexicon.crawled_page WHERE job_id = $1", facts.jobs["crawl"]
        )
        assert {row["url"] for row in pages} == facts.crawled
        assert {row["url"]: row["title"] for row in pages} == facts.titles
        assert {len(row["url_hash"]) for row in pages} == {64}
        assert {row["metadata"]["status_code"] for row in pages} == {200}
        hashes = {
            row[0] for row in await owner.fetch("SELECT content_hash FROM lexicon.content_hash")
        }
        assert {row["content_hash"] for row in pages} <= hashes
        logs = await owner.fetch(
            "SELECT log_level FROM lexicon.crawl_log WHERE job_id = $1", facts.jobs["batch"]
        )
        assert {row["log_level"] for row in logs} & {"WARNING", "ERROR"}
        cancelled = await owner.fetchrow(
            "SELECT * FROM lexicon.crawl_job WHERE id = $1", facts.jobs["cancelled"]
        )
        assert cancelled is not None
        assert (cancelled["cancelled_by"], cancelled["cancellation_reason"]) == ("ada", "a mistake")
        assert (cancelled["completed_at"], cancelled["cancelled_at"] is None) == (None, False)

    async def test_a_duplicate_names_its_original(
        self, owner: OwnConnection, facts: Filled
    ) -> None:
        rows = await owner.fetch(
            "SELECT * FROM lexicon.crawled_page WHERE job_id = $1 ORDER BY is_duplicate",
            facts.jobs["copies"],
        )
        assert [row["is_duplicate"] for row in rows] == [False, True]
        assert rows[1]["duplicate_of"] == rows[0]["id"]
        assert [row["similarity_score"] for row in rows] == [None, 100]


class TestBee:
    async def test_connections(self, bee: OwnConnection) -> None:
        assert await bee.fetchval(BEE["connections"]) >= 1
        states = {row["state"] for row in await bee.fetch(BEE["connections by state"])}
        assert "active" in states

    async def test_worker_efficiency(self, bee: OwnConnection) -> None:
        rows = {row["status"]: row for row in await bee.fetch(BEE["worker efficiency"])}
        assert rows.keys() == {"completed", "failed"}
        # The crawl, one of the batch, copies, one scrape, the slow ones and the watched one; the
        # expired one is gone.
        assert rows["completed"]["count"] == PAGES + 1 + 2 + 1 + 3 + 1
        assert rows["failed"]["count"] == 3
        assert rows["completed"]["avg_duration"] > 0

    async def test_completion_rates(self, bee: OwnConnection, facts: Filled) -> None:
        rows = await bee.fetch(BEE["completion rates"])
        there = len(facts.jobs) - 1
        assert sum(row["jobs_created"] for row in rows) == there
        # The files of a source are not all read yet.
        assert sum(row["jobs_completed"] for row in rows) == there - 1

    async def test_counts(self, bee: OwnConnection, facts: Filled) -> None:
        assert await bee.fetchval(BEE["count of jobs"]) == len(facts.jobs) - 1
        assert await bee.fetchval(BEE["count of tasks"]) == PAGES + 3 + 2 + 2 + 3 + 1
        assert await bee.fetchval(BEE["count of users"]) == 1

    async def test_statements_that_took_most_time(self, bee: OwnConnection) -> None:
        rows = await bee.fetch(BEE["top statements"])
        assert 0 < len(rows) <= 20
        times = [row["total_exec_time"] for row in rows]
        assert times == sorted(times, reverse=True)

    async def test_jobs_and_tasks(self, bee: OwnConnection, facts: Filled) -> None:
        job = await bee.fetchrow("SELECT * FROM jobs WHERE id = $1", str(facts.jobs["batch"]))
        assert job is not None
        assert (job["total_tasks"], job["completed_tasks"], job["failed_tasks"]) == (3, 1, 2)
        assert job["total_tasks"] == job["sitemap_tasks"] + job["found_tasks"]
        assert (job["progress"], job["status"]) == (100.0, "completed")
        tasks = await bee.fetch(
            "SELECT t.*, d.name AS domain, p.path FROM tasks t JOIN pages p ON t.page_id = p.id"
            " JOIN domains d ON p.domain_id = d.id WHERE t.job_id = $1",
            str(facts.jobs["crawl"]),
        )
        urls = {f"http://{row['domain']}{row['path']}" for row in tasks}
        assert urls == facts.crawled
        assert {row["source_type"] for row in tasks} == {"manual", "link"}
        assert {row["status_code"] for row in tasks} == {200}
        assert {row["content_type"] for row in tasks} == {"text/html"}
        assert all(row["response_time"] >= 0 for row in tasks)
        linked = [row for row in tasks if row["source_type"] == "link"]
        assert {row["source_url"] for row in linked} <= facts.crawled

    async def test_job_listing(self, bee: OwnConnection, facts: Filled) -> None:
        """Printed with an ellipsis for its columns; all else is as it stands."""
        query = BEE["job listing"].replace("SELECT ...", "SELECT *")
        since = datetime.now(UTC) - timedelta(hours=1)
        rows = await bee.fetch(query, str(facts.organisation_id), "completed", since)
        assert {row["id"] for row in rows} == {
            str(facts.jobs[name])
            for name in (
                "crawl", "batch", "copies", "scrape", "slow", "ingest", "watch", "elsewhere",
            )
        }  # fmt: skip
        assert [row["created_at"] for row in rows] == sorted(
            (row["created_at"] for row in rows), reverse=True
        )


class TestUnobtanium:
    async def test_the_way_to_every_file(self, owner: OwnConnection, facts: Filled) -> None:
        rows = await owner.fetch(
            "SELECT u.url, l.exit_code, r.http_status_code, m.mimetype, f.file_size, t.text,"
            " a.http_user_agent, l.time_taken_ms, r.robotstxt_approved, l.time_started_unix_utc"
            " FROM unobtanium.file f"
            " JOIN unobtanium.crawl_log l USING (crawl_log_id)"
            " JOIN unobtanium.request r ON r.request_id = f.request_id"
            " JOIN unobtanium.url u ON u.url_id = f.url_id"
            " JOIN unobtanium.mimetype m USING (mimetype_id)"
            " JOIN unobtanium.agent a ON a.agent_id = l.agent_id"
            " JOIN unobtanium.file_text t USING (file_id)"
        )
        assert facts.crawled <= {row["url"] for row in rows}
        assert {row["http_status_code"] for row in rows} == {200}
        assert all(row["text"] and row["file_size"] > 0 for row in rows)
        assert {row["robotstxt_approved"] for row in rows} == {True}
        now = datetime.now(UTC).timestamp()
        assert all(now - 3600 < row["time_started_unix_utc"] <= now for row in rows)

    async def test_redirects_and_candidates(self, owner: OwnConnection, facts: Filled) -> None:
        redirects = await owner.fetch(
            "SELECT u.url, t.url AS target FROM unobtanium.redirect r"
            " JOIN unobtanium.url u ON u.url_id = r.url_id"
            " JOIN unobtanium.url t ON t.url_id = r.to_url_id"
            " JOIN unobtanium.crawl_log l USING (crawl_log_id)"
            " WHERE information_source = 1"
        )
        assert any("/hostile/redirect/loop/" in row["url"] for row in redirects)
        crawled = await owner.fetch(
            "SELECT u.url FROM unobtanium.crawl_candidate c JOIN unobtanium.url u USING (url_id)"
            " WHERE last_contentful_crawl_time_unix_utc IS NOT NULL"
        )
        assert facts.crawled <= {row["url"] for row in crawled}


CANNOT_RUN = {
    "table statistics": asyncpg.UndefinedColumnError,
    "claim by priority": asyncpg.PostgresSyntaxError,
}
"""tablename is no column of that catalogue view; an ellipsis is no list of columns."""


@pytest.mark.parametrize(("name", "error"), CANNOT_RUN.items())
async def test_what_cannot_run_as_printed(
    bee: OwnConnection, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await bee.prepare(BEE[name])


async def test_a_printed_claim_shows_what_is_next_and_takes_nothing(
    bee: OwnConnection, facts: Filled
) -> None:
    """Its lock is on rows of a view, which nobody else asks for: claims are queue.finish_and_claim's."""
    (row,) = facts.during["claim"]
    assert row["job_id"] == str(facts.jobs["slow"])
    assert f"http://{row['domain']}{row['path']}" in facts.crawled
    assert await bee.fetch(BEE["claim of a task"], [str(facts.jobs["crawl"])]) == []


async def test_statistics_can_be_reset(database: Database) -> None:
    """Not on the shared database: others look at its statistics."""
    conn = await asyncpg.connect(database.dsn)
    try:
        assert await conn.fetchval(BEE["reset of statistics"]) is not None
    finally:
        await conn.close()


async def test_another_organisation_sees_nothing(
    facts: Filled, owner: OwnConnection, server_settings: Settings
) -> None:
    others = await owner.fetchval("SELECT id FROM tenancy.organisation WHERE name = 'Others'")
    names = await owner.fetch(
        "SELECT schemaname, viewname FROM pg_views WHERE schemaname = ANY ($1)",
        ["nuq", "webhook", "rag", "app", "lexicon", "bee", "unobtanium"],
    )
    public = {("unobtanium", "agent"), ("unobtanium", "mimetype")}
    async with (
        Database.connect(ExternalServer(facts.dsn), server_settings) as database,
        database.tenant_tx(others) as conn,
    ):
        for schema, view in {tuple(row) for row in names} - public:
            count: Any = await conn.fetchval(f"SELECT count(*) FROM {schema}.{view}")
            expected = 1 if view == "organisations" else 0
            assert count == expected, f"{schema}.{view}"
    async with (
        Database.connect(ExternalServer(facts.dsn), server_settings) as database,
        database.tenant_tx(facts.organisation_id) as conn,
    ):
        query = NUQ["crawl results by group"].replace("<crawl_uuid>", str(facts.jobs["crawl"]))
        assert len(await conn.fetch(query)) == PAGES
