"""Sites over HTTP: their life, their configs, what strangers may try, and what a purge leaves."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import pytest

from tests.integration.api.native.admin.test_tenancy import bearer, key_of
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.knowledge.sql import sources as source_queries
from trapline.model import OrganisationId
from trapline.pipeline.sites import site_operations as pipeline
from trapline.store import sites

URL = "https://example.com/"


async def call(
    api: aiohttp.ClientSession, method: str, path: str, body: Any = None, **options: Any
) -> tuple[int, Any]:
    async with api.request(method, path, json=body, **options) as answer:
        return answer.status, await answer.json() if answer.status != 204 else None


async def new_site(api: aiohttp.ClientSession, name: str, **fields: Any) -> Any:
    status, site = await call(api, "POST", "/api/sites", {"name": name, "base_url": URL} | fields)
    assert status == 201, site
    return site


async def test_a_site_is_found_by_id_and_by_name(api: aiohttp.ClientSession) -> None:
    site = await new_site(api, "Docs", config={"max_depth": 3})
    assert site["config"] == {"max_depth": 3}
    assert (site["status"], site["created_by"], site["implicit"]) == ("active", "api", False)
    for reference in (site["id"], "Docs", "docs"):
        assert await call(api, "GET", f"/api/sites/{reference}") == (200, site)
    status, problem = await call(api, "GET", f"/api/sites/{uuid4()}")
    assert status == 404
    assert problem["title"] == "Not Found"


async def test_lists_are_paged_filtered_and_counted(api: aiohttp.ClientSession) -> None:
    for number in range(5):
        await new_site(api, f"site {number}")
    await call(api, "POST", "/api/sites/site 1/pause")
    names, cursor = [], None
    while True:
        query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        _, page = await call(api, "GET", "/api/sites", params=query)
        names += [site["name"] for site in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names == [f"site {number}" for number in range(5)]
    assert await _sorted(api, "newest") == names[::-1]
    assert await _sorted(api, "name") == names
    assert await _sorted(api, "updated") == ["site 1", "site 4", "site 3", "site 2", "site 0"]
    assert (await call(api, "GET", "/api/sites?sort=taste"))[0] in (400, 422)
    _, paused = await call(api, "GET", "/api/sites?status=inactive")
    assert [site["name"] for site in paused["items"]] == ["site 1"]
    assert await call(api, "GET", "/api/sites/count?status=active") == (200, {"count": 4})
    assert (await call(api, "GET", "/api/sites?cursor=nonsense"))[0] == 400


async def _sorted(api: aiohttp.ClientSession, sort: str) -> list[str]:
    names: list[str] = []
    cursor = ""
    while cursor is not None:
        query = {"limit": "2", "sort": sort} | ({"cursor": cursor} if cursor else {})
        _, page = await call(api, "GET", "/api/sites", params=query)
        names += [site["name"] for site in page["items"]]
        cursor = page["next"]
    return names


async def test_a_deleted_site_leaves_its_name_behind(api: aiohttp.ClientSession) -> None:
    first = await new_site(api, "docs")
    assert (await call(api, "DELETE", "/api/sites/docs"))[0] == 204
    assert (await call(api, "GET", f"/api/sites/{first['id']}"))[0] == 404
    assert (await call(api, "DELETE", "/api/sites/docs"))[0] == 404
    second = await new_site(api, "docs")
    assert second["id"] != first["id"]
    status, problem = await call(api, "POST", "/api/sites", {"name": "DOCS", "base_url": URL})
    assert status == 409, problem


async def test_configs_have_a_history_and_roll_back(api: aiohttp.ClientSession) -> None:
    await new_site(api, "docs", config={"max_depth": 1})
    change = {"config": {"max_depth": 2}, "note": "deeper"}
    _, site = await call(api, "PATCH", "/api/sites/docs", change)
    assert site["config_number"] == 2
    # What is no config makes no history.
    _, site = await call(api, "PATCH", "/api/sites/docs", {"base_url": "https://example.com/x"})
    assert site["config_number"] == 2
    _, site = await call(api, "POST", "/api/sites/docs/rollback", {"number": 1})
    assert (site["config"], site["config_number"]) == ({"max_depth": 1}, 3)
    _, history = await call(api, "GET", "/api/sites/docs/history")
    assert [(c["number"], c["config"], c["note"]) for c in history["items"]] == [
        (3, {"max_depth": 1}, "Rollback to number 1."),
        (2, {"max_depth": 2}, "deeper"),
        (1, {"max_depth": 1}, None),
    ]
    assert (await call(api, "POST", "/api/sites/docs/rollback", {"number": 9}))[0] == 404


async def test_two_who_change_a_config_at_once_do_not_lose_one(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    await new_site(api, "docs")
    async with database.tenant_tx(organisation_id) as conn:
        read = await sites.find(conn, organisation_id, "docs")
    await call(api, "PATCH", "/api/sites/docs", {"config": {"max_depth": 2}})
    with pytest.raises(Conflict):
        async with database.tenant_tx(organisation_id) as conn:
            await sites.update(conn, read, sites.SiteUpdate(config={"max_depth": 9}))
    answers = await asyncio.gather(
        *(new_site_status(api, "twin") for _ in range(6)), return_exceptions=False
    )
    assert sorted(answers) == [201] + [409] * 5


async def new_site_status(api: aiohttp.ClientSession, name: str) -> int:
    return (await call(api, "POST", "/api/sites", {"name": name, "base_url": URL}))[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": " "},
        {"name": "x" * 301},
        {"name": "a\x00b"},
        {"name": "01a1e1a3-950d-75d4-b4e8-b3b853e08e31"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "not a url at all"},
        {"config": {"no_such_field": 1}},
        {"config": {"max_depth": -1}},
        {"config": {"include": ["("]}},
        {"config": {"ignore_selectors": ["p["]}},
        {"config": {"ignore_patterns": ["(?<=x)y"]}},
        {"config": {"rate": 0}},
        {"config": {"retention": {"versions": 0}}},
        {"config": []},
        {"unknown": True},
    ],
)
async def test_what_cannot_be_a_site_is_refused(
    api: aiohttp.ClientSession, fields: dict[str, Any]
) -> None:
    status, problem = await call(
        api, "POST", "/api/sites", {"name": "docs", "base_url": URL} | fields
    )
    assert status == 400, problem
    assert problem["detail"]


async def test_a_crawl_takes_the_config_the_overrides_and_the_variables(
    api: aiohttp.ClientSession, database: Database
) -> None:
    config = {"max_depth": 3, "rate": 30, "headers": {"X-Version": "${version}"}, "limit": 50}
    await new_site(api, "docs", base_url="https://example.com/${version}/", config=config)
    status, problem = await call(api, "POST", "/api/sites/docs/crawl")
    assert status == 400
    assert "version" in problem["detail"]
    wishes = {
        "embedded_config": {"limit": 7},
        "variables": {"version": "3.1"},
        "metadata": {"ticket": 12},
        "priority": 9,
    }
    status, started = await call(api, "POST", "/api/sites/docs/crawl", wishes)
    assert status == 202, started
    async with database.system_tx() as conn:
        job = await conn.fetchrow("SELECT * FROM queue.job WHERE id = $1", started["job_id"])
    assert job["options"]["url"] == "https://example.com/3.1/"
    assert job["options"]["scrape"]["headers"] == {"X-Version": "3.1"}
    assert (job["options"]["max_depth"], job["options"]["delay"]) == (3, 2.0)
    assert (job["task_limit"], job["priority"]) == (7, -4)
    assert job["variables"] == {"version": "3.1"}
    assert job["metadata"]["embedded_config"] == {"limit": 7}
    assert job["metadata"]["ticket"] == 12


async def test_pause_holds_crawls_and_resume_goes_on(
    api: aiohttp.ClientSession, database: Database
) -> None:
    await new_site(api, "docs")
    _, started = await call(api, "POST", "/api/sites/docs/crawl")
    assert (await call(api, "POST", "/api/sites/docs/pause"))[1]["status"] == "inactive"
    assert (await call(api, "POST", "/api/sites/docs/crawl"))[0] == 409
    async with database.system_tx() as conn:
        status = "SELECT status FROM queue.job WHERE id = $1"
        assert await conn.fetchval(status, started["job_id"]) == "paused"
    assert (await call(api, "POST", "/api/sites/docs/resume"))[1]["status"] == "active"
    async with database.system_tx() as conn:
        assert await conn.fetchval(status, started["job_id"]) in ("pending", "running")
    assert (await call(api, "DELETE", "/api/sites/docs"))[0] == 204
    async with database.system_tx() as conn:
        assert await conn.fetchval(status, started["job_id"]) == "cancelled"


async def test_a_purge_leaves_nothing_of_its_site_and_all_of_others(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> None:
    gone, kept = await new_site(api, "gone"), await new_site(api, "kept")
    async with database.system_tx() as conn:
        for site in (gone, kept):
            await conn.execute(_FILL, organisation_id, site["id"])
            await conn.execute(_INDEX, organisation_id, UUID(site["id"]))
        tables = await conn.fetch(_TABLES_WITH_SITES)
    await call(api, "POST", "/api/sites/gone/crawl")
    assert (await call(api, "POST", "/api/sites/gone/purge"))[0] == 202
    assert (await call(api, "GET", "/api/sites/gone"))[0] == 404
    assert await pipeline.purge_marked(database) > 0
    async with database.system_tx() as conn:
        for table in ("page", "change", "content_hash", "site_config"):
            rows = await conn.fetch(f"SELECT DISTINCT site_id FROM store.{table}")
            assert [str(row["site_id"]) for row in rows] == [kept["id"]], table
        for row in tables:
            left = f"SELECT count(*) FROM {row['name']} WHERE site_id = $1"
            assert await conn.fetchval(left, UUID(gone["id"])) == 0, row["name"]
        uris = await conn.fetch("SELECT uri FROM knowledge.entry ORDER BY uri")
        assert [row["uri"] for row in uris] == [f"own {kept['id']}", f"page {kept['id']}"]
        assert await source_queries.orphaned_entries(conn) == []
        assert await conn.fetchval("SELECT count(*) FROM store.version") == 1
        assert await conn.fetchval("SELECT count(*) FROM store.site WHERE purge") == 0
        jobs = "SELECT count(*) FROM queue.job WHERE options ->> 'site_id' = $1"
        assert await conn.fetchval(jobs, gone["id"]) == 0


_TABLES_WITH_SITES = """
    SELECT c.oid::regclass::text AS name FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'site_id' AND NOT a.attisdropped
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND n.nspname IN ('store', 'frontier', 'archive', 'knowledge', 'queue')
        -- The log and the visits of a day outlive their site until their retention.
        AND c.relname NOT IN ('job_log', 'visit_day')
"""
_INDEX = """
    WITH own AS (
        INSERT INTO knowledge.source (id, organisation_id, kind, name, uri, site_id)
        VALUES (gen_random_uuid(), $1, 'site', 'own', 'own', $2) RETURNING id
    ),
    other AS (
        INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)
        VALUES (gen_random_uuid(), $1, 'url', 'other', 'other') RETURNING id
    )
    INSERT INTO knowledge.entry (
        organisation_id, source_id, generation, uri, path, language, page_id, content_hash, dated_at
    )
    SELECT $1, own.id, 0, 'own ' || $2::text, '', 'en', NULL::uuid, sha256('x'), now() FROM own
    UNION ALL
    SELECT $1, other.id, 0, 'page ' || $2::text, '', 'en', p.id, sha256('x'), now()
    FROM other, store.page p WHERE p.site_id = $2
"""
_FILL = """
    WITH page AS (
        INSERT INTO store.page (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
        VALUES (gen_random_uuid(), $1, $2, 1, now(), now()) RETURNING *
    ),
    version AS (
        INSERT INTO store.version (
            organisation_id, page_id, number, visit_id, fetched_at, content_hash,
            extractor_version, text, markdown
        )
        SELECT $1, id, 1, 1, now(), sha256('x'), 1, 'x', 'x' FROM page
    ),
    content AS (
        INSERT INTO store.content_hash (
            organisation_id, site_id, content_hash, first_seen_page_id, first_version_id,
            created_at, last_seen_at
        )
        SELECT $1, $2, sha256('x'), id, 1, now(), now() FROM page
    )
    INSERT INTO store.change
        (organisation_id, site_id, page_id, url_id, status, source, detected_at)
    SELECT $1, $2, id, 1, 'new', 'visit', now() FROM page
"""


async def test_nobody_sees_or_touches_the_sites_of_others(
    api: aiohttp.ClientSession, database: Database
) -> None:
    mine = bearer(await key_of(database, "mine", "read", "write"))
    theirs = bearer(await key_of(database, "theirs", "read", "write"))
    status, site = await call(
        api, "POST", "/api/sites", {"name": "secret", "base_url": URL}, headers=mine
    )
    assert status == 201
    for reference in ("secret", site["id"]):
        for method, path, body in (
            ("GET", "", None),
            ("PATCH", "", {"name": "stolen"}),
            ("DELETE", "", None),
            ("POST", "/purge", None),
            ("POST", "/crawl", None),
            ("POST", "/pause", None),
            ("GET", "/history", None),
            ("POST", "/rollback", {"number": 1}),
        ):
            answer = await call(api, method, f"/api/sites/{reference}{path}", body, headers=theirs)
            assert answer[0] == 404, (method, path)
    assert (await call(api, "GET", "/api/sites", headers=theirs))[1]["items"] == []
    # The name is free for others.
    status, _ = await call(
        api, "POST", "/api/sites", {"name": "secret", "base_url": URL}, headers=theirs
    )
    assert status == 201
    reader = bearer(await key_of(database, "reader"))
    status, _ = await call(
        api, "POST", "/api/sites", {"name": "x", "base_url": URL}, headers=reader
    )
    assert status == 403


async def schedules_of(api: aiohttp.ClientSession, site: Any) -> list[Any]:
    _, page = await call(api, "GET", "/api/schedules", params={"site_id": site["id"]})
    found: list[Any] = page["items"]
    return found


async def test_the_schedule_in_a_config_is_kept_true(api: aiohttp.ClientSession) -> None:
    site = await new_site(api, "Nightly", config={"schedule": "30 2 * * *"})
    path = f"/api/sites/{site['id']}"
    (first,) = await schedules_of(api, site)
    assert (first["cron"], first["timezone"], first["paused"]) == ("30 2 * * *", "UTC", False)
    rule = {"every_seconds": 3600}
    await call(api, "PATCH", path, {"config": {"schedule": rule}, "name": "Hourly"})
    (hourly,) = await schedules_of(api, site)
    assert (hourly["id"], hourly["cron"], hourly["every_seconds"]) == (first["id"], None, 3600)
    await call(api, "POST", f"{path}/pause")
    (paused,) = await schedules_of(api, site)
    assert paused["paused"]
    await call(api, "POST", f"{path}/resume")
    await call(api, "PATCH", path, {"config": {"schedule": rule, "limit": 5}})
    (resumed,) = await schedules_of(api, site)
    # What is changed beside it does not begin an interval anew.
    assert (resumed["paused"], resumed["starts_at"]) == (False, hourly["starts_at"])
    await call(api, "PATCH", path, {"config": {}})
    assert await schedules_of(api, site) == []
    await call(api, "POST", f"{path}/rollback", {"number": 1})
    assert [row["cron"] for row in await schedules_of(api, site)] == ["30 2 * * *"]
    await call(api, "DELETE", path)
    assert await schedules_of(api, site) == []


@pytest.mark.parametrize(
    "schedule",
    [
        "nonsense",
        {},
        {"cron": "* * * * *", "every_seconds": 60},
        {"cron": "@daily", "timezone": "X"},
    ],
)
async def test_a_schedule_that_never_ticks_is_refused(
    api: aiohttp.ClientSession, schedule: Any
) -> None:
    body = {"name": "x", "base_url": URL, "config": {"schedule": schedule}}
    assert (await call(api, "POST", "/api/sites", body))[0] == 400
