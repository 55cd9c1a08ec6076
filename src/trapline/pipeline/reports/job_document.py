"""A page of a job as a Firecrawl document, for job status, WebSockets and webhooks."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trapline.deliver.firecrawl_document import (
    VisitFacts,
    add_llm_results,
    document,
    redact_document,
)
from trapline.extract.redaction import Redaction
from trapline.pipeline.reports.job_results import PageResult
from trapline.queue.sql.jobs import JobRow

FORMATS: Final = "formats"
_REDACTION: Final = "redaction"
_UNTRACKED: Final = {"previousScrapeAt": None, "changeStatus": "new", "visibility": "visible"}


def encode(result: PageResult, job: JobRow) -> bytes:
    return msgspec.json.encode(build(result, job))


def build(result: PageResult, job: JobRow) -> dict[str, Any]:
    """Build the document of one page."""
    facts = VisitFacts(
        url=result.url,
        source_url=result.source_url,
        scrape_id=str(job.id),
        status=result.status,
        content_type=result.document.content_type,
        max_pages=job.options.get("scrape", {}).get("max_pages"),
    )
    out = document(result.document, requested_formats(job), facts, body=result.body)
    if result.attributes:
        out["attributes"] = [msgspec.to_builtins(values) for values in result.attributes]
    add_llm_results(out, result.answers, result.warnings)
    if "changeTracking" in requested_formats(job):
        out["changeTracking"] = result.tracking or _UNTRACKED
    redaction = requested_redaction(job)
    return out if redaction is None else redact_document(out, redaction.value)


def redaction_details(redaction: Redaction) -> dict[str, Any]:
    """Return a redaction as the metadata of a job holds it."""
    style, eager = redaction.style, redaction.aggressive
    return {
        _REDACTION: {"entities": sorted(redaction.entities), "style": style, "aggressive": eager}
    }


def requested_redaction(job: JobRow) -> Redaction | None:
    """Return the redaction in the request of a job, if any."""
    stored = job.metadata.get("firecrawl", {}).get(_REDACTION)
    return None if stored is None else msgspec.convert(stored, Redaction)


def requested_formats(job: JobRow) -> frozenset[str]:
    """Return the names of the formats in the request of a job."""
    request: Mapping[str, Any] = job.metadata.get("firecrawl", {})
    return frozenset(request.get(FORMATS, ("markdown",)))
