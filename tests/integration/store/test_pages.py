"""Pages of one batch, each with an end of its own, written by one statement for each kind of row."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from trapline.db.pool import Database
from trapline.model import OrganisationId, SiteId, UrlId
from trapline.store import pages, sites
from trapline.store.changes import Extent
from trapline.store.pages import Comparison, PageChange, PageContent, RecordedPage, Sighting

THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEW, KEPT, CHANGED, ALIKE, CONFIRMED, RETURNED, EMPTY = (UrlId(n) for n in range(1, 8))
CHANGES = """
SELECT url_id, status, version_id, previous_version_id, added_lines, added_words FROM store.change
WHERE id > $1 ORDER BY url_id
"""


@pytest.fixture
async def site_id(database: Database, organisation_id: OrganisationId) -> SiteId:
    async with database.system_tx() as conn:
        return await sites.get_or_create_implicit(conn, organisation_id, "https://site.test")


class Visits:
    """Writes what visits of one site saw."""

    def __init__(self, database: Database, organisation_id: OrganisationId, site: SiteId) -> None:
        self.database, self.organisation_id, self.site = database, organisation_id, site
        self.now = THEN

    def sighting(
        self,
        url: UrlId,
        text: str | None,
        comparison: Comparison | None = None,
        variant: bytes = b"",
    ) -> Sighting:
        content = (
            None if text is None else PageContent(text, f"# {text}", 1, links=("https://a.test/",))
        )
        return Sighting(
            self.organisation_id,
            self.site,
            url,
            1,
            None,
            self.now,
            200,
            content,
            comparison,
            variant,
        )

    async def record(self, *sightings: Sighting) -> list[RecordedPage]:
        async with self.database.system_tx() as conn:
            recorded = await pages.record(conn, sightings)
        self.now += timedelta(days=1)
        return recorded


@pytest.fixture
def visits(database: Database, organisation_id: OrganisationId, site_id: SiteId) -> Visits:
    return Visits(database, organisation_id, site_id)


async def test_a_batch_of_every_kind(visits: Visits) -> None:
    known = (KEPT, CHANGED, ALIKE, CONFIRMED, RETURNED)
    first = await visits.record(*(visits.sighting(url, f"text {url}") for url in known))
    kept, changed, alike, confirmed, returned = first
    assert {one.change for one in first} == {PageChange.NEW}
    assert {one.number for one in first} == {1}
    async with visits.database.system_tx() as conn:
        await pages.mark_gone(conn, [(visits.site, RETURNED, visits.now)])
        before = await conn.fetchval("SELECT max(id) FROM store.change")
    assert changed.version_id is not None
    assert alike.version_id is not None

    found = await visits.record(
        visits.sighting(EMPTY, None),
        visits.sighting(
            CHANGED,
            "another",
            Comparison(changed.version_id, same=False, extent=Extent(1, 2, 3, 4)),
        ),
        visits.sighting(KEPT, f"text {KEPT}"),
        visits.sighting(NEW, "first of two"),
        visits.sighting(NEW, "last of two"),
        visits.sighting(ALIKE, "as good as that", Comparison(alike.version_id, same=True)),
        visits.sighting(CONFIRMED, None),
        visits.sighting(RETURNED, f"text {RETURNED}"),
    )
    assert [one.change for one in found] == [
        PageChange.SAME, PageChange.CHANGED, PageChange.SAME, PageChange.NEW, PageChange.NEW, PageChange.SAME, PageChange.SAME,
        PageChange.SAME,
    ]  # fmt: skip
    assert [one.number for one in found] == [0, 2, 1, 1, 1, 1, 1, 1]
    assert found[0].version_id is None
    assert found[1].version_id not in (None, changed.version_id)
    assert found[3] == found[4]
    assert [found[i] == RecordedPage(old.page_id, old.version_id, 1, PageChange.SAME)
            for i, old in ((2, kept), (5, alike), (6, confirmed), (7, returned))] == [True] * 4  # fmt: skip

    async with visits.database.system_tx() as conn:
        told = [tuple(row) for row in await conn.fetch(CHANGES, before)]
        seen = await conn.fetch(
            "SELECT version_id, count(*) AS n FROM store.sighting WHERE seen_at = $1 GROUP BY 1",
            THEN + timedelta(days=1),
        )
        texts = await conn.fetchval(
            "SELECT array_agg(v.text ORDER BY p.url_id) FROM store.page p"
            " JOIN store.version v ON v.id = p.version_id"
        )
        back = await conn.fetchrow("SELECT * FROM store.page WHERE url_id = $1", RETURNED)
    assert told == [
        (NEW, "new", found[3].version_id, None, None, None),
        (CHANGED, "changed", found[1].version_id, changed.version_id, 1, 3),
        (RETURNED, "new", returned.version_id, returned.version_id, None, None),
    ]
    # The one that was seen twice counts twice; the one without a version cannot be counted.
    assert {row["version_id"]: row["n"] for row in seen} == {
        one.version_id: 2 if one.version_id == found[3].version_id else 1
        for one in found
        if one.version_id
    }
    assert texts == ["last of two", "text 2", "another", "text 4", "text 5", "text 6"]
    assert back is not None
    assert (back["gone_at"], back["returned_at"]) == (None, THEN + timedelta(days=1))


async def test_a_page_that_was_asked_for_in_another_way_is_a_version_and_no_change(
    visits: Visits,
) -> None:
    first, other = await visits.record(
        visits.sighting(KEPT, "one"), visits.sighting(KEPT, "one", variant=b"mobile")
    )
    assert first.version_id != other.version_id
    for text, variant in (("one", b"mobile"), ("two", b"mobile"), ("one", b"")):
        (found,) = await visits.record(visits.sighting(KEPT, text, variant=variant))
        expected = {("one", b"mobile"): PageChange.SAME, ("two", b"mobile"): PageChange.CHANGED}
        assert found.change is expected.get((text, variant), PageChange.NEW)
    assert found.number == 4
    async with visits.database.system_tx() as conn:
        told = await conn.fetchval("SELECT array_agg(status ORDER BY id) FROM store.change")
        variants = await conn.fetchval("SELECT array_agg(variant ORDER BY id) FROM store.version")
        assert await conn.fetchval("SELECT variant FROM store.page") == b""
    assert told == ["new", "changed"]
    assert variants == [b"", b"mobile", b"mobile", b""]


async def test_a_page_from_before_variants_is_compared_but_not_taken_for_the_same(
    visits: Visits,
) -> None:
    await visits.record(visits.sighting(KEPT, "one"), visits.sighting(CHANGED, "one"))
    async with visits.database.system_tx() as conn:
        await conn.execute(r"UPDATE store.page SET variant = '\x00'")
    kept, changed = await visits.record(
        visits.sighting(KEPT, "one"), visits.sighting(CHANGED, "two")
    )
    assert (kept.number, changed.number) == (2, 2)
    assert (kept.change, changed.change) == (PageChange.NEW, PageChange.CHANGED)
    async with visits.database.system_tx() as conn:
        told = await conn.fetchval("SELECT array_agg(status ORDER BY id) FROM store.change")
    assert told == ["new", "new", "changed"]


async def test_a_page_that_another_batch_makes_is_looked_at_again(visits: Visits) -> None:
    async with visits.database.system_tx() as other:
        await pages.record(other, [visits.sighting(KEPT, "theirs")])
        async with visits.database.system_tx() as conn:
            await conn.execute("SET LOCAL lock_timeout = '200ms'")
            # It waits for the other one, instead of making the page a second time.
            with pytest.raises(asyncpg.LockNotAvailableError):
                async with conn.transaction():
                    await pages.record(conn, [visits.sighting(KEPT, "ours")])
    again = await visits.record(visits.sighting(KEPT, "ours"), visits.sighting(NEW, "new"))
    assert [one.change for one in again] == [PageChange.CHANGED, PageChange.NEW]


async def test_texts_are_stored_as_they_are(visits: Visits) -> None:
    long = "a line that repeats itself\n" * 2000
    await visits.record(visits.sighting(NEW, long))
    async with visits.database.system_tx() as conn:
        row = await conn.fetchrow(
            "SELECT text, markdown, pg_column_size(text) AS size, links FROM store.version"
        )
    assert row is not None
    assert (row["text"], row["markdown"]) == (long, f"# {long}")
    assert row["size"] == len(long)
    assert row["links"] == ["https://a.test/"]
