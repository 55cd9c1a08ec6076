"""Webhook bodies in Firecrawl's format."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from trapline.db.connection import Connection
from trapline.deliver.firecrawl_document import VisitFacts, metadata
from trapline.deliver.sql.webhooks import LeaseEndpointsRow, NextDeliveriesRow
from trapline.errors import NotFound
from trapline.model import Metadata
from trapline.pipeline.reports import job_document
from trapline.pipeline.reports.job_results import JobResults
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow


def renderer(
    results: JobResults,
) -> Callable[[Connection, LeaseEndpointsRow, NextDeliveriesRow], Awaitable[bytes]]:
    """Return the function that renders a delivery's body."""

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
        body |= await _event_fields(conn, results, endpoint, delivery)
        return msgspec.json.encode(body)

    return render


async def _event_fields(
    conn: Connection, results: JobResults, endpoint: LeaseEndpointsRow, delivery: NextDeliveriesRow
) -> dict[str, Any]:
    """Return the fields that depend on the type of event."""
    word = delivery.name.rpartition(".")[2]
    if word == "page":
        job = await jobs.get(conn, endpoint.job_id)
        return await _page(conn, results, job, delivery)
    if word == "cancelled":
        return {"success": False, "error": "The job was cancelled."}
    if word == "failed":
        return {"success": False, "error": "No page could be fetched."}
    return {}


async def _page(
    conn: Connection, results: JobResults, job: JobRow, delivery: NextDeliveriesRow
) -> dict[str, Any]:
    error = delivery.data.get("error")
    if error is None:
        result = await results.page(conn, job, delivery.number)
        if result is None:
            raise NotFound("The page of this event is no longer stored.")
        return {"data": [job_document.build(result, job)]}
    url = str(delivery.data.get("url") or "")
    facts = VisitFacts(
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
