"""A crawl that leaves no trace can be read for an hour, whole, and then not at all."""

import pytest

from tests.marked import MARKER, crawled
from trapline.db import pool
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId
from trapline.pipeline.results import PageResult, Results
from trapline.queue import jobs
from trapline.store.blobs import Blobs


async def _pages(database: Database, job_id: JobId) -> list[PageResult]:
    async with database.system_tx() as conn:
        job = await jobs.get(conn, job_id)
    return [page async for page in Results(database, Blobs.of(database.settings)).pages(job)]


@pytest.mark.parametrize(("minutes", "readable"), [(0, True), (59, True), (61, False)])
async def test_results_are_readable_until_the_hour_ends(
    open_database: Database,
    organisation_id: OrganisationId,
    origin: str,
    minutes: int,
    readable: bool,
) -> None:
    job_id = await crawled(open_database, organisation_id, origin, zdr=True)
    async with pool.owner(open_database.dsn, open_database.settings) as owner:
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
