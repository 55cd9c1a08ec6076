"""Lists in each order that they have: paged exactly, also where many stand at one place, and read
along an index however far down.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from tests.integration.api.native.content.test_sites import call, new_site
from trapline.db.pool import Database
from trapline.model import OrganisationId, PageId, SiteId
from trapline.pipeline.sql import changes, duplicates, pages
from trapline.queue.sql import schedules
from trapline.store import duplicates as store
from trapline.store.sql import sites

LISTS = {
    "/api/pages": ("oldest", "newest", "changed"),
    "/api/changes": ("newest", "oldest"),
    "/api/duplicates": ("oldest", "newest", "largest"),
    "/api/schedules": ("newest", "oldest", "name", "next"),
}
# Ten pages in three moments, changes of each, and groups of 2, 3 and 2 pages.
_FILL = """
    WITH host AS (
        INSERT INTO frontier.host (organisation_id, name) VALUES ($1, 'x') RETURNING id
    ),
    url AS (
        INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
        SELECT $1, host.id, true, '/' || n, sha256(n::text::bytea)
        FROM host, generate_series(1, 10) n RETURNING id, path
    ),
    page AS (
        INSERT INTO store.page (
            id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, changed_at
        )
        SELECT gen_random_uuid(), $1, $2, id, '2026-01-01Z', '2026-01-01Z',
            CASE WHEN id % 3 > 0 THEN '2026-01-02Z'::timestamptz + id % 3 * interval '1 day' END
        FROM url RETURNING id, url_id, site_id
    ),
    change AS (
        INSERT INTO store.change
            (organisation_id, site_id, page_id, url_id, status, source, detected_at)
        SELECT $1, site_id, id, url_id, 'new', 'visit', '2026-01-01Z' FROM page
    ),
    content AS (
        INSERT INTO store.content_hash (
            organisation_id, site_id, content_hash, first_seen_page_id, first_version_id,
            created_at, last_seen_at
        )
        SELECT $1, site_id, sha256(url_id::text::bytea), id, url_id, now(), now() FROM page
        RETURNING id, first_seen_page_id
    )
    SELECT id, first_seen_page_id AS page_id FROM content ORDER BY id
"""
_LIKE = """
    INSERT INTO store.likeness
        (page_id, organisation_id, site_id, version_id, content_id, group_id, similarity)
    VALUES ($1, $2, $3, 1, $4, $5, 100)
"""


@pytest.fixture
async def site(
    api: aiohttp.ClientSession, database: Database, organisation_id: OrganisationId
) -> SiteId:
    found = SiteId(UUID((await new_site(api, "docs"))["id"]))
    async with database.owner() as owner:
        rows = await owner.fetch(_FILL, organisation_id, found)
        for number, row in enumerate(rows):
            group = rows[(0, 0, 2, 2, 2, 5, 5, 7, 8, 9)[number]]["id"]
            await owner.execute(_LIKE, row["page_id"], organisation_id, found, row["id"], group)
    for number in range(5):
        plan = {
            "name": f"every {'edcba'[number]}",
            "every_seconds": 3600 * (1 + number % 2),
            "starts_at": "2031-01-01T00:00:00Z",
            "template": {"kind": "crawl", "url": "https://example.com/"},
        }
        status, _ = await call(api, "POST", "/api/schedules", plan)
        assert status == 201
    await call(api, "POST", f"/api/schedules/{await _first(api)}/pause")
    return found


async def _first(api: aiohttp.ClientSession) -> str:
    _, page = await call(api, "GET", "/api/schedules?sort=oldest&limit=1")
    identifier: str = page["items"][0]["id"]
    return identifier


async def _all(api: aiohttp.ClientSession, path: str, most: int, **query: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while cursor is not None:
        asked = query | {"limit": str(most)} | ({"cursor": cursor} if cursor else {})
        status, page = await call(api, "GET", path, params=asked)
        assert status == 200, page
        assert len(page["items"]) <= most
        found += page["items"]
        cursor = page["next"]
    return found


async def test_an_order_or_a_cursor_that_there_is_not_is_refused(
    api: aiohttp.ClientSession, site: SiteId
) -> None:
    for path, sorts in LISTS.items():
        for query in (
            {"sort": "taste"},
            {"sort": ""},
            {"sort": "NEWEST"},
            {"cursor": "x"},
            {"cursor": "bnVsbA"},
            {"sort": sorts[-1], "cursor": "WyJ4IiwgMV0"},
        ):
            status, problem = await call(api, "GET", path, params={"site": str(site)} | query)
            assert status in (400, 422), (path, query, problem)


async def test_a_cursor_of_one_order_does_not_open_another(
    api: aiohttp.ClientSession, site: SiteId
) -> None:
    pairs = (
        ("/api/pages", "oldest", "changed"),
        ("/api/duplicates", "oldest", "largest"),
        ("/api/schedules", "newest", "name"),
    )
    for path, one, other in pairs:
        query = {"site": str(site), "limit": "1"}
        _, page = await call(api, "GET", path, params=query | {"sort": one})
        query |= {"sort": other, "cursor": page["next"]}
        assert (await call(api, "GET", path, params=query))[0] == 400, path


@pytest.mark.parametrize("path", LISTS)
async def test_pages_of_a_list_join_exactly(
    api: aiohttp.ClientSession, site: SiteId, path: str
) -> None:
    wheres: list[dict[str, str]] = [{"site": str(site)}]
    if path != "/api/schedules":
        wheres.append({"site": str(site), "site_id": str(site)})
    for where in wheres:
        for sort in LISTS[path]:
            whole = await _all(api, path, 1000, sort=sort, **where)
            assert len(whole) == {"/api/duplicates": 3, "/api/schedules": 5}.get(path, 10)
            for most in (1, 2, 3):
                assert await _all(api, path, most, sort=sort, **where) == whole


async def test_what_the_orders_mean(api: aiohttp.ClientSession, site: SiteId) -> None:
    at = {"site": str(site)}
    for path in ("/api/pages", "/api/changes", "/api/duplicates", "/api/schedules"):
        oldest = [item["id"] for item in await _all(api, path, 2, sort="oldest", **at)]
        newest = [item["id"] for item in await _all(api, path, 2, sort="newest", **at)]
        assert newest == oldest[::-1], path
    changed = await _all(api, "/api/pages", 3, sort="changed", site_id=str(site))
    moments = [page["changed_at"] or page["first_seen_at"] for page in changed]
    assert moments == sorted(moments, reverse=True)
    assert len(set(moments)) == 3
    largest = await _all(api, "/api/duplicates", 2, sort="largest", **at)
    assert [group["pages"] for group in largest] == [3, 2, 2]
    named = [item["name"] for item in await _all(api, "/api/schedules", 2, sort="name")]
    assert named == [f"every {letter}" for letter in "abcde"]
    following = [item["next_at"] for item in await _all(api, "/api/schedules", 2, sort="next")]
    assert following[-1] is None
    assert following[:-1] == sorted(following[:-1])


async def test_groups_know_how_many_pages_they_have(
    database: Database, organisation_id: OrganisationId, site: SiteId
) -> None:
    async def differences() -> int:
        async with database.system_tx() as conn:
            found = await conn.fetchval(
                "SELECT count(*) FROM (SELECT group_id, count(*) AS pages FROM store.likeness"
                " WHERE group_id IS NOT NULL GROUP BY group_id) l"
                " FULL JOIN (SELECT * FROM store.duplicate_group WHERE pages > 0) g"
                " USING (group_id) WHERE l.pages IS DISTINCT FROM g.pages"
            )
        assert isinstance(found, int)
        return found

    assert await differences() == 0
    async with database.tenant_tx(organisation_id) as conn:
        ids = [PageId(row["page_id"]) for row in await conn.fetch(_MEMBERS)]
        await store.set_duplicate_of(conn, ids[0], ids[4])
        await store.set_duplicate_of(conn, ids[1], None)
        await store.set_duplicate_of(conn, ids[2], ids[9])
        await store.clear_decision(conn, ids[0])
    assert await differences() == 0
    async with database.system_tx() as conn:
        await conn.execute("DELETE FROM store.page WHERE id = ANY ($1::uuid[])", ids[2:4])
    assert await differences() == 0
    async with database.system_tx() as conn:
        await conn.execute("DELETE FROM store.content_hash WHERE id % 2 = 0")
        await conn.execute("DELETE FROM store.page")
        assert await conn.fetchval("SELECT sum(pages) FROM store.duplicate_group") == 0


_MEMBERS = "SELECT page_id FROM store.likeness ORDER BY content_id"

_MANY = """
    WITH other AS (
        INSERT INTO store.site (organisation_id, name, base_url) VALUES ($1, 'other', 'x')
        RETURNING id
    ),
    page AS (
        INSERT INTO store.page (
            id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, changed_at
        )
        SELECT gen_random_uuid(), $1, CASE WHEN n % 5 > 0 THEN other.id ELSE $2 END, 1000 + n,
            now(), now(), now() - n * interval '1 second'
        FROM other, generate_series(1, $3::integer) n RETURNING *
    ),
    change AS (
        INSERT INTO store.change
            (organisation_id, site_id, page_id, url_id, status, source, detected_at)
        SELECT organisation_id, site_id, id, url_id, 'new', 'visit', now() FROM page
    ),
    content AS (
        INSERT INTO store.content_hash (
            organisation_id, site_id, content_hash, first_seen_page_id, first_version_id,
            created_at, last_seen_at
        )
        SELECT organisation_id, site_id, sha256(url_id::text::bytea), id, url_id, now(), now()
        FROM page RETURNING id
    ),
    groups AS (
        INSERT INTO store.duplicate_group (group_id, organisation_id, site_id, pages)
        SELECT id, $1, $2, 1 + (id % 10 = 0)::integer * (id % 7)::integer FROM content
    ),
    sites AS (
        INSERT INTO store.site (organisation_id, name, base_url)
        SELECT $1, 'many ' || n, 'x' FROM generate_series(1, $3::integer) n
    )
    INSERT INTO queue.schedule (id, organisation_id, name, kind, cron, template, next_at, created_at)
    SELECT gen_random_uuid(), $1, 'many ' || n, 'recurring', '0 0 * * *', '{}',
        CASE WHEN n % 10 > 0 THEN now() + n * interval '1 second' END,
        now() - n * interval '1 second'
    FROM generate_series(1, $3::integer) n
"""


async def test_each_order_reads_along_an_index_from_its_place(
    database: Database, organisation_id: OrganisationId, site: SiteId
) -> None:
    async with database.owner() as owner:
        other = await owner.fetchval(
            "INSERT INTO tenancy.organisation (name) VALUES ('other') RETURNING id"
        )
        theirs = await owner.fetchval(
            "INSERT INTO store.site (organisation_id, name, base_url) VALUES ($1, 'theirs', 'x')"
            " RETURNING id",
            other,
        )
        await owner.execute(_MANY, organisation_id, site, 2_000)
        await owner.execute(_MANY, other, theirs, 40_000)
        await owner.execute("VACUUM ANALYZE")
    now, any_id, number = datetime.now(UTC), UUID(int=2**127), 1_000
    anything = (None, None, None, None)
    statements: Mapping[str, tuple[str, tuple[Any, ...]]] = {
        pages._PAGES_OF_ORGANISATION: (
            "page_organisation_idx",
            (organisation_id, any_id, *anything, 50),
        ),
        pages._PAGES_OF_ORGANISATION_NEWEST: (
            "page_organisation_idx",
            (organisation_id, any_id, *anything, 50),
        ),
        pages._PAGES_OF_ORGANISATION_CHANGED: (
            "page_changed_idx",
            (organisation_id, now, any_id, *anything, 50),
        ),
        pages._PAGES_OF_SITE: ("page_site_id_url_id_key", (site, number, *anything, 50)),
        pages._PAGES_OF_SITE_NEWEST: ("page_site_id_url_id_key", (site, number, *anything, 50)),
        pages._PAGES_OF_SITE_CHANGED: (
            "page_site_changed_idx",
            (site, now, any_id, *anything, 50),
        ),
        changes._LIST_CHANGES: ("change_feed_idx", (organisation_id, number, *([None] * 5), 50)),
        changes._LIST_CHANGES_OLDEST: (
            "change_feed_idx",
            (organisation_id, number, *([None] * 5), 50),
        ),
        changes._LIST_SITE_CHANGES: ("change_site_idx", (site, number, *([None] * 6), 50)),
        changes._LIST_SITE_CHANGES_OLDEST: ("change_site_idx", (site, number, *([None] * 6), 50)),
        duplicates._LIST_GROUPS: ("duplicate_group_site_idx", (site, number, 50)),
        duplicates._LIST_GROUPS_NEWEST: ("duplicate_group_site_idx", (site, number, 50)),
        duplicates._LIST_GROUPS_LARGEST: ("duplicate_group_pages_idx", (site, 4, number, 50)),
        schedules._LIST_SCHEDULES: (
            "schedule_organisation_idx",
            (organisation_id, None, None, now, any_id, 50),
        ),
        schedules._LIST_SCHEDULES_OLDEST: (
            "schedule_organisation_idx",
            (organisation_id, None, None, now, any_id, 50),
        ),
        schedules._LIST_SCHEDULES_NEXT: (
            "schedule_next_idx",
            (organisation_id, None, None, now, any_id, 50),
        ),
        sites._LIST_SITES_NAMED: ("site_name_key", (organisation_id, None, None, "many 2", 50)),
        schedules._LIST_SCHEDULES_NAMED: (
            "schedule_name_key",
            (organisation_id, None, None, "many 2", 50),
        ),
    }
    async with database.tenant_tx(organisation_id) as conn:
        for statement, (index, arguments) in statements.items():
            plan = await conn.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) {statement}", *arguments)
            lines = "\n".join(row[0] for row in plan)
            assert re.search(rf"Index.* Scan.* using {index}\b", lines), lines
            # From its place: what comes before it is not read and thrown away.
            removed = re.findall(r"Rows Removed by Filter: (\d+)", lines)
            assert all(int(rows) < 100 for rows in removed), lines
            assert not re.search(r"Sort Key.*\n.*Sort Method.*\n.*actual rows=\d{3}", lines), lines
