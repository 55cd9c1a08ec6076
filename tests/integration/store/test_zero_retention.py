"""A crawl that leaves no trace can be read for an hour, whole, and then not at all."""

import pytest

from tests.support.marker_site import MARKER, crawled
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.pipeline.reports.job_results import JobResults, PageResult
from trapline.queue import jobs
from trapline.store.blobs import BlobStore


async def _pages(database: Database, job_id: JobId) -> list[PageResult]:
    async with database.system_tx() as conn:
        job = await jobs.get(conn, job_id)
    return [
        page
        async for page in JobResults(database, BlobStore.of(database.settings.blobs)).pages(job)
    ]


@pytest.mark.parametrize(("minutes", "readable"), [(0, True), (59, True), (61, False)])
async def test_results_are_readable_until_the_hour_ends(
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
    minutes: int,
    readable: bool,
) -> None:
    job_id = await crawled(open_database, organisation_id, origin, zdr=True)
    async with open_database.owner() as owner:
        moved = await owner.execute(
            "UPDATE store.fleeting SET stored_at = stored_at - make_interval(mins => $1)", minutes
        )
    assert moved == "UPDATE 2"
    pages = await _pages(open_database, job_id)
    assert len(pages) == 2
    assert all((MARKER in page.document.markdown) is readable for page in pages)
    assert all(
        ("no longer stored" in (page.document.warning or "")) is not readable for page in pages
    )
