"""Change tracking of scrapes: by URL and tag, in each organisation for itself."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline.crawl import change_tracking
from trapline.pipeline.crawl.change_tracking import TrackedChange

URL = "https://example.com/page"
START = datetime(2026, 11, 1, tzinfo=UTC)


async def track(
    database: Database,
    organisation_id: OrganisationId,
    markdown: str,
    hour: int,
    *,
    modes: Sequence[str] = (),
    remember: bool = True,
    **options: Any,
) -> TrackedChange:
    """Compare and store a snapshot, as a scrape does."""
    scraped_at = START + timedelta(hours=hour)
    new = change_tracking.take_snapshot(
        organisation_id, URL, markdown, scraped_at=scraped_at, **options
    )
    async with database.tenant_tx(organisation_id) as conn:
        tracked = await change_tracking.compare(conn, new, modes=modes)
        if remember:
            await change_tracking.store_snapshots(conn, [new])
    return tracked


async def test_the_life_of_a_page(database: Database, organisation_id: OrganisationId) -> None:
    first = await track(database, organisation_id, "# A\n\none", 0)
    assert first.as_json() == {
        "previousScrapeAt": None,
        "changeStatus": "new",
        "visibility": "visible",
    }
    same = await track(database, organisation_id, "# A\n\none  ", 1, modes=["git-diff"])
    assert (same.change_status, same.previous_scrape_at, same.diff) == ("same", START, None)
    changed = await track(database, organisation_id, "# A\n\ntwo", 2, modes=["git-diff"])
    assert changed.change_status == "changed"
    assert changed.diff is not None
    shown = changed.as_json()
    assert shown["previousScrapeAt"] == (START + timedelta(hours=1)).isoformat()
    assert isinstance(shown["diff"], dict)
    assert "-one" in shown["diff"]["text"]
    assert shown["diff"]["json"]["files"]
    assert (await track(database, organisation_id, "three", 3)).diff is None
    gone = await track(database, organisation_id, "Not found", 4, status=404)
    assert gone.change_status == "removed"
    assert (await track(database, organisation_id, "# A\n\ntwo", 5)).change_status == "new"


async def test_tags_and_organisations_are_apart(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, "other")).id
    await track(database, organisation_id, "one", 0, tag="hourly")
    for owner, tag in ((organisation_id, "daily"), (organisation_id, None), (other, "hourly")):
        assert (await track(database, owner, "one", 1, tag=tag)).change_status == "new"
    assert (await track(database, organisation_id, "one", 1, tag="hourly")).change_status == "same"


async def test_variants_are_apart(database: Database, organisation_id: OrganisationId) -> None:
    await track(database, organisation_id, "one", 0, variant=b"alice")
    assert (await track(database, organisation_id, "two", 1)).change_status == "new"
    again = await track(database, organisation_id, "one", 2, variant=b"alice")
    assert (again.change_status, again.previous_scrape_at) == ("same", START)


async def test_json_is_kept_for_the_next_comparison(
    database: Database, organisation_id: OrganisationId
) -> None:
    await track(database, organisation_id, "one", 0, extracted={"price": 12})
    found = await track(
        database, organisation_id, "two", 1, modes=["json"], extracted={"price": 13}
    )
    assert (found.previous_json, found.diff) == ({"price": 12}, None)


async def test_a_late_scrape_does_not_take_the_place_of_a_newer_one(
    database: Database, organisation_id: OrganisationId
) -> None:
    await track(database, organisation_id, "new", 5)
    await track(database, organisation_id, "old", 1)
    assert (await track(database, organisation_id, "new", 6)).change_status == "same"
    looked = await track(database, organisation_id, "else", 7, remember=False, tag="x" * 500)
    assert looked.change_status == "new"
