"""Duplicates of pages: exact and near, in groups, by hand, and none among pages that are all frame."""

from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from tests.unit.store.test_similarity import edited, text_of
from trapline.db.pool import Database
from trapline.frontier import url_rows
from trapline.model import OrganisationId, SiteId
from trapline.pipeline import after_job
from trapline.store import pages, similarity, sites
from trapline.store.pages import PageChange, PageContent, RecordedPage, Sighting
from trapline.store.sql import duplicates as queries

START = datetime(2026, 11, 1, tzinfo=UTC)
FRAME = " ".join(text_of(60, 99))


class Shelf:
    """A site whose pages a test puts there itself."""

    def __init__(
        self, database: Database, organisation_id: OrganisationId, site_id: SiteId
    ) -> None:
        self.database = database
        self.organisation_id = organisation_id
        self.site_id = site_id
        self.clock = START

    async def see(self, *found: tuple[str, str, str | None]) -> list[RecordedPage]:
        """Record path, text and title of pages, as a batch of visits would."""
        self.clock += timedelta(minutes=1)
        places = [(self.organisation_id, f"https://shelf.test{path}") for path, _, _ in found]
        async with self.database.system_tx() as conn:
            ids = await url_rows.intern(conn, places)
            return await pages.record(
                conn,
                [
                    Sighting(
                        self.organisation_id,
                        self.site_id,
                        ids[place],
                        1,
                        None,
                        self.clock,
                        200,
                        PageContent(text, text, 1, title=title),
                    )
                    for place, (_, text, title) in zip(places, found, strict=True)
                ],
            )

    async def groups(self) -> list[list[str]]:
        """Look for duplicates; return the paths of each group, the original first."""
        await after_job.roll_up_sightings(self.database)
        async with self.database.system_tx() as conn:
            rows = await conn.fetch(_GROUPS, self.site_id)
        found: dict[int, list[str]] = {}
        for row in rows:
            found.setdefault(row["group_id"], []).append(row["path"])
        return sorted(paths for paths in found.values() if len(paths) > 1)


_GROUPS = """
    SELECT l.group_id, u.path FROM store.likeness l
    JOIN store.page p ON p.id = l.page_id JOIN frontier.url u ON u.id = p.url_id
    WHERE l.site_id = $1 AND l.group_id IS NOT NULL ORDER BY l.group_id, l.by_hand, l.page_id
"""


@pytest.fixture
async def shelf(database: Database, organisation_id: OrganisationId) -> Shelf:
    async with database.system_tx() as conn:
        row = await sites.create(conn, organisation_id, "shelf", "https://shelf.test/", config={})
    return Shelf(database, organisation_id, row.id)


def prose(seed: int, words: int = 400) -> str:
    return " ".join(text_of(words, seed))


def retold(text: str, edits: int) -> str:
    return " ".join(edited(text.split(), edits, 3))


async def test_of_two_sightings_of_a_page_in_one_batch_the_last_one_counts(
    shelf: Shelf, database: Database
) -> None:
    first, second = await shelf.see(("/a", prose(1), None), ("/a", prose(2), None))
    assert first == second
    assert (first.number, first.change) == (1, PageChange.NEW)
    [same] = await shelf.see(("/a", prose(2), None))
    assert (same.version_id, same.change) == (first.version_id, PageChange.SAME)
    [changed] = await shelf.see(("/a", prose(3), None))
    assert (changed.number, changed.change, changed.page_id) == (
        2,
        PageChange.CHANGED,
        first.page_id,
    )
    async with database.system_tx() as conn:
        statuses = await conn.fetch(
            "SELECT status, previous_version_id FROM store.change ORDER BY id"
        )
        seen = await conn.fetchval("SELECT count(*) FROM store.sighting")
        page = await conn.fetchrow("SELECT version_id, version_number FROM store.page")
    assert [tuple(row) for row in statuses] == [("new", None), ("changed", first.version_id)]
    assert seen == 4
    assert page is not None
    assert tuple(page) == (changed.version_id, 2)


async def test_exact_and_near_ones_are_found_in_one_batch_and_across_batches(shelf: Shelf) -> None:
    one, two = prose(1), prose(2)
    await shelf.see(("/a", one, "A"), ("/b", two, "B"))
    await shelf.see(("/a-copy", one, "A"))
    await shelf.see(("/a-print", one, "A, printed"), ("/b-retold", retold(two, 2), "B"))
    await shelf.see(("/c", prose(3), "C"), ("/b-other", retold(two, 60), "B"))
    assert await shelf.groups() == [["/a", "/a-copy", "/a-print"], ["/b", "/b-retold"]]


async def test_pages_of_nothing_but_frame_are_no_duplicates(shelf: Shelf) -> None:
    short = "Thin page. Letters from the path, one a month, and you can leave with one click."
    await shelf.see(*((f"/thin/{n}", short, f"Thin {n}") for n in range(20)))
    await shelf.see(*((f"/wall/{n}", FRAME, f"Article {n}") for n in range(20)))
    await shelf.see(*((f"/tag/{n}", f"{FRAME} {n}", f"Tag {n}") for n in range(20)))
    # A wall of terms may be longer than any article; only the titles tell the pages apart.
    await shelf.see(*((f"/terms/{n}", prose(98), f"Offer {n} | Shelf") for n in range(20)))
    await shelf.see(*((f"/late/{n}", retold(prose(98), n % 3), f"Late {n}") for n in range(20)))
    await shelf.see(("/empty/1", "", None), ("/empty/2", "", None))
    assert await shelf.groups() == []
    # The same short text under the same title is the same page.
    await shelf.see(("/one", prose(5, 80), "Imprint"))
    await shelf.see(("/two", prose(5, 80), "Imprint"))
    assert await shelf.groups() == [["/one", "/two"]]


async def test_a_page_leaves_its_group_when_it_changes_and_the_next_one_leads(shelf: Shelf) -> None:
    text = prose(1)
    for path in ("/a", "/b", "/c"):
        await shelf.see((path, text, "T"))
    assert await shelf.groups() == [["/a", "/b", "/c"]]
    await shelf.see(("/a", prose(2), "T"))
    assert await shelf.groups() == [["/b", "/c"]]
    await shelf.see(("/b", prose(2), "T"))
    assert await shelf.groups() == [["/a", "/b"]]


async def test_contents_are_counted(shelf: Shelf, api: aiohttp.ClientSession) -> None:
    text = prose(1)
    await shelf.see(("/a", text, "T"))
    await shelf.see(("/a", text, "T"), ("/b", text, "T"))
    await shelf.groups()
    page = await _first(api, shelf, "/a")
    path = f"/api/duplicates/contents/{page['content_hash']}"
    async with api.get(path, params={"site": "shelf"}) as answer:
        content = await answer.json()
    assert content["occurrence_count"] == 3
    assert content["first_seen_page_id"] == page["id"]
    assert datetime.fromisoformat(content["created_at"]) == START + timedelta(minutes=1)
    assert datetime.fromisoformat(content["last_seen_at"]) == START + timedelta(minutes=2)


async def test_groups_are_listed_and_overridden_by_hand(
    shelf: Shelf, api: aiohttp.ClientSession
) -> None:
    text = prose(1)
    await shelf.see(("/a", text, "T"))
    await shelf.see(("/b", retold(text, 1), "T"), ("/c", prose(2), "T"))
    await shelf.groups()
    async with api.get("/api/duplicates", params={"site": "shelf"}) as answer:
        (group,) = (await answer.json())["items"]
    assert (group["pages"], group["original_url"]) == (2, "https://shelf.test/a")
    async with api.get(f"/api/duplicates/{group['id']}", params={"site": "shelf"}) as answer:
        members = await answer.json()
    assert [m["url"][-2:] for m in members] == ["/a", "/b"]
    assert 95 <= members[1]["similarity"] < 100
    a, b, c = [await _first(api, shelf, path) for path in ("/a", "/b", "/c")]
    assert (b["is_duplicate"], b["duplicate_of"]) == (True, a["id"])

    # b is none, c is one: whatever is found later.
    decided = await _decide(api, b["id"], None)
    assert (decided["is_duplicate"], decided["by_hand"]) == (False, True)
    decided = await _decide(api, c["id"], a["id"])
    assert decided["duplicate_of"] == a["id"]
    await shelf.see(("/b", text, "T"), ("/c", prose(9), "T"))
    assert await shelf.groups() == [["/a", "/c"]]
    async with api.delete(f"/api/duplicates/pages/{b['id']}") as answer:
        assert (await answer.json())["duplicate_of"] == a["id"]
    async with api.delete(f"/api/duplicates/pages/{b['id']}") as answer:
        assert answer.status == 409
    async with api.put(
        f"/api/duplicates/pages/{a['id']}", json={"duplicate_of": a["id"]}
    ) as answer:
        assert answer.status == 400


async def test_a_site_may_set_its_own_threshold(
    shelf: Shelf, database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        row = await sites.find(conn, organisation_id, "shelf")
        await sites.update(conn, row, sites.SiteUpdate(config={"duplicate_threshold": 85}))
    text = prose(1)
    await shelf.see(("/a", text, "T"))
    await shelf.see(("/b", retold(text, 8), "T"), ("/c", retold(text, 40), "T"))
    assert await shelf.groups() == [["/a", "/b"]]


async def _first(api: aiohttp.ClientSession, shelf: Shelf, path: str) -> Any:
    query = {"site_id": str(shelf.site_id), "url": f"https://shelf.test{path}"}
    async with api.get("/api/pages", params=query) as answer:
        (page,) = (await answer.json())["items"]
    return page


async def _decide(api: aiohttp.ClientSession, page: str, other: str | None) -> Any:
    async with api.put(f"/api/duplicates/pages/{page}", json={"duplicate_of": other}) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_lookups_read_the_index_of_bands(shelf: Shelf, database: Database) -> None:
    async with database.owner() as owner:
        await owner.execute(_FINGERPRINTS, shelf.organisation_id, shelf.site_id)
        await owner.execute("ANALYZE store.fingerprint, store.content_hash")
    async with database.system_tx() as conn:
        statement = f"EXPLAIN {queries._SIMILAR_CONTENTS}"
        plan = await conn.fetch(statement, [0], ["{1,2,3}"], similarity.ALGORITHM, 50)
    lines = "\n".join(row[0] for row in plan)
    assert "fingerprint_bands_idx" in lines
    assert "Seq Scan on fingerprint" not in lines


_FINGERPRINTS = """
    WITH content AS (
        INSERT INTO store.content_hash (
            organisation_id, site_id, content_hash, first_seen_page_id, first_version_id,
            created_at, last_seen_at
        )
        SELECT $1, $2, sha256(n::text::bytea), gen_random_uuid(), n, now(), now()
        FROM generate_series(1, 20000) n
        RETURNING id
    )
    INSERT INTO store.fingerprint (content_id, organisation_id, algorithm, signature, bands)
    SELECT id, $1, 102, '', ARRAY(SELECT id * 100 + band FROM generate_series(1, 15) band) FROM content
"""
