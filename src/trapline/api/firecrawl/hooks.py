"""The bodies of webhooks, as receivers of Firecrawl's know them."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from trapline.api.firecrawl import statuses
from trapline.api.firecrawl.documents import Facts, metadata
from trapline.db.connection import Connection
from trapline.deliver.sql.webhooks import LeaseEndpointsRow, NextDeliveriesRow
from trapline.errors import NotFound
from trapline.model import Metadata
from trapline.pipeline.results import Results
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow


def renderer(
    results: Results,
) -> Callable[[Connection, LeaseEndpointsRow, NextDeliveriesRow], Awaitable[bytes]]:
    """Return what makes the body of a delivery."""

    async def render(
        conn: Connection, endpoint: LeaseEndpointsRow, delivery: NextDeliveriesRow
    ) -> bytes:
        body: dict[str, Any] = {
            "success": True,
            "type": delivery.name,
            "id": str(endpoint.job_id),
            "webhookId": str(delivery.id),
            "data": [],
        }
        if endpoint.metadata:
            body["metadata"] = endpoint.metadata
        body |= await _told(conn, results, endpoint, delivery)
        return msgspec.json.encode(body)

    return render


async def _told(
    conn: Connection, results: Results, endpoint: LeaseEndpointsRow, delivery: NextDeliveriesRow
) -> dict[str, Any]:
    """Return what an event's kind adds."""
    word = delivery.name.rpartition(".")[2]
    if word == "page":
        job = await jobs.get(conn, endpoint.job_id)
        return await _page(conn, results, job, delivery)
    if word == "cancelled":
        return {"success": False, "error": "The job was cancelled."}
    if word == "failed":
        return {"success": False, "error": "No page could be had."}
    return {}


async def _page(
    conn: Connection, results: Results, job: JobRow, delivery: NextDeliveriesRow
) -> dict[str, Any]:
    error = delivery.data.get("error")
    if error is None:
        result = await results.page(conn, job, delivery.number)
        if result is None:
            raise NotFound("The page that it tells of is no longer stored.")
        return {"data": [statuses.wire(result, job)]}
    url = str(delivery.data.get("url") or "")
    facts = Facts(
        url=url,
        source_url=url,
        scrape_id=str(job.id),
        status=delivery.data.get("status"),
        error=str(error),
    )
    return {
        "success": False,
        "error": str(error),
        "data": [{"metadata": metadata(Metadata(), facts)}],
    }
