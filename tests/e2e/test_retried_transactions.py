"""Finishing transactions that fail at every one of their statements: each result is there once."""

from ipaddress import ip_network

import pytest

from tests.site.site import Site
from tests.support.faulty_connection import FaultyTransactions
from tests.support.queue_jobs import ended
from tests.support.settings import change_settings
from trapline import app
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.pipeline import submit
from trapline.pipeline.options import CrawlOptions
from trapline.queue import audit

_COUNTS = """
SELECT count(*) FILTER (WHERE e.type = 'page') AS pages,
       count(DISTINCT e.task_id) FILTER (WHERE e.type = 'page') AS page_tasks,
       count(*) FILTER (WHERE e.type = 'item') AS items,
       count(DISTINCT e.task_id) FILTER (WHERE e.type = 'item') AS item_tasks,
       (SELECT count(*) FROM archive.visit) AS visits,
       (SELECT count(*) FROM store.version) AS versions,
       (SELECT count(*) FROM knowledge.entry) AS entries,
       (SELECT sum(completed) FROM knowledge.tally) AS counted
FROM queue.event e
"""


async def test_each_result_is_there_once(
    database: Database,
    organisation_id: OrganisationId,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = change_settings(database.settings, {"allow_nets": (ip_network("127.0.0.0/8"),)})
    options = CrawlOptions.parse(
        url=f"{site.url}manual/", limit=4, delay=0, sitemap="skip", index=True
    )
    async with database.tenant_tx(organisation_id) as conn:
        job_id = await submit.crawl(conn, organisation_id, options)
    faults = FaultyTransactions()
    faults.install(monkeypatch)
    async with app.run_worker(database, settings, concurrency=4):
        job = await ended(database, job_id)
    assert job.status == "completed"
    assert faults.injected >= 20
    async with database.system_tx() as conn:
        row = await conn.fetchrow(_COUNTS)
        differences = await audit.audit(conn)
    assert row is not None
    assert (row["pages"], row["page_tasks"], row["visits"], row["versions"]) == (4, 4, 4, 4)
    assert (row["items"], row["item_tasks"], row["entries"], row["counted"]) == (4, 4, 4, 4)
    assert differences == []
