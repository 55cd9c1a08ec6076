"""What earlier visits left of a page, looked up for many at once."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from trapline.db.pool import Database
from trapline.errors import ExitCode
from trapline.frontier import url_rows
from trapline.frontier.sql import candidates
from trapline.model import OrganisationId, SiteId
from trapline.pipeline.crawl.page_lookup import PageLookup
from trapline.pipeline.sql import page_lookup as queries
from trapline.store import sites

ORIGIN = "https://site.test"
PAGES = [f"{ORIGIN}/{n}" for n in range(60)]
VISITED = PAGES[::2]


@pytest.fixture
async def site_id(database: Database, organisation_id: OrganisationId) -> SiteId:
    """A site of which all pages are discovered, and every other one is visited."""
    async with database.system_tx() as conn:
        site_id = await sites.get_or_create_implicit(conn, organisation_id, ORIGIN)
        ids = await url_rows.intern(conn, [(organisation_id, url) for url in PAGES])
        await candidates.discover_candidates(
            conn,
            site_ids=[site_id] * len(PAGES),
            url_ids=list(ids.values()),
            organisation_ids=[organisation_id] * len(PAGES),
        )
        some, now = len(VISITED), datetime.now(UTC)
        await candidates.visit_candidates(
            conn,
            site_ids=[site_id] * some,
            url_ids=[ids[organisation_id, url] for url in VISITED],
            organisation_ids=[organisation_id] * some,
            visited_ats=[now] * some,
            exit_codes=[ExitCode.CONTENT] * some,
            contentful_ats=[now] * some,
            etags=[f'"{url}"' for url in VISITED],
            last_modifieds=[None] * some,
            looks=[0.0] * some,
            changes=[0.0] * some,
            seconds=[0.0] * some,
            failures=[0] * some,
            due_ats=[None] * some,
        )
    return site_id


async def test_all_that_ask_at_once_share_a_look(
    database: Database,
    organisation_id: OrganisationId,
    site_id: SiteId,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    look = queries.known_pages

    async def counted(conn: Any, **arguments: Any) -> Any:
        looks.append(len(arguments["hashes"]))
        return await look(conn, **arguments)

    monkeypatch.setattr(queries, "known_pages", counted)
    known = PageLookup(database)
    twice = await asyncio.gather(
        *(known.find(organisation_id, site_id, url) for url in [*PAGES, *PAGES])
    )
    found = {url: row.last_etag for url, row in zip([*PAGES, *PAGES], twice, strict=True)}
    assert found == {url: f'"{url}"' if url in VISITED else None for url in PAGES}
    # One that was only discovered was never visited.
    assert [row.last_visit_at is None for row in twice[:2]] == [False, True]
    assert looks == [len(PAGES)]
    elsewhere = await known.find(OrganisationId(organisation_id), SiteId(organisation_id), PAGES[0])
    assert (elsewhere.last_visit_at, elsewhere.failures) == (None, 0)
    assert looks == [len(PAGES), 1]


async def test_who_names_no_site_means_the_one_of_the_origin(
    database: Database, organisation_id: OrganisationId, site_id: SiteId
) -> None:
    known = PageLookup(database)
    visited, unvisited, elsewhere = await asyncio.gather(
        known.find(organisation_id, None, PAGES[0]),
        known.find(organisation_id, None, f"{ORIGIN}/never"),
        known.find(organisation_id, None, "https://other.test/"),
    )
    assert (visited.site_id, visited.last_etag) == (site_id, f'"{PAGES[0]}"')
    assert (unvisited.site_id, unvisited.last_visit_at) == (site_id, None)
    assert elsewhere.site_id is None
    assert (await known.find(organisation_id, None, PAGES[0], b"mobile")).site_id is None
    async with database.system_tx() as conn:
        await conn.execute("UPDATE store.site SET deleted_at = now()")
    assert (await known.find(organisation_id, None, PAGES[0])).site_id is None


async def test_who_is_cancelled_takes_no_answer_from_others(
    database: Database, organisation_id: OrganisationId, site_id: SiteId
) -> None:
    known = PageLookup(database)
    asking = [asyncio.create_task(known.find(organisation_id, site_id, PAGES[0])) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    rows = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(rows[0], asyncio.CancelledError)
    assert all(row is not None and row.last_etag for row in rows[1:])  # type: ignore[union-attr]
