"""/v2/crawl: start, status, errors, cancel, and the list of active crawls."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, Request, Response

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import job_ids, job_status, redaction_option
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.job_ids import JobReference
from trapline.api.firecrawl.job_status import Cursor, PageCursor
from trapline.api.firecrawl.requests.base_models import Address, Origin, Prompt
from trapline.api.firecrawl.requests.crawl_prompt import crawl_from_prompt
from trapline.api.firecrawl.requests.crawl_request import CrawlBody
from trapline.api.firecrawl.requests.scrape_options import NEEDS_MODEL
from trapline.api.firecrawl.response_models import (
    Cancelled,
    Done,
    ErrorsAnswer,
    Started,
    StatusAnswer,
    responses,
)
from trapline.api.principal import Reader, Tenant, Writer
from trapline.api.services import Services
from trapline.db.connection import Connection
from trapline.db.tenancy import Principal
from trapline.deliver import subscriptions
from trapline.deliver.firecrawl_document import iso_time
from trapline.errors import Conflict, NotFound
from trapline.model import JobId, OrganisationId
from trapline.pipeline import submit
from trapline.pipeline.kinds import BATCH, CRAWL
from trapline.pipeline.reports import job_results, usage
from trapline.queue import job_list, jobs
from trapline.queue.jobs import Status
from trapline.queue.sql.jobs import JobRow

_OPEN: Final[tuple[Status, ...]] = ("pending", "running", "paused")

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

PATHS: Final = {CRAWL: "crawl", BATCH: "batch/scrape"}
IdempotencyKey = Annotated[str | None, Header(alias="x-idempotency-key")]


class PreviewBody(Origin):
    """POST /v2/crawl/params-preview."""

    url: Address
    prompt: Prompt


@router.post("/v2/crawl", response_model=Started)
async def start(
    request: Request,
    body: CrawlBody,
    principal: Writer,
    services: CurrentServices,
    key: IdempotencyKey = None,
) -> Response:
    """Start a crawl."""
    # Refused before a language model is asked.
    body.crawl_options()
    more: dict[str, Any] = {
        "warning": " ".join(redaction_option.job_warnings(body.scrape_options)) or None
    }
    if body.prompt:
        body, generated = await crawl_from_prompt(services.model, body)
        more |= {"promptGeneratedOptions": generated, "finalCrawlerOptions": body.described()}
    job_id = await submit_job(
        services, principal, body, "v2", job_ids.of_key(principal.organisation_id, key)
    )
    url = f"{job_status.base(request)}/v2/crawl/{job_id}"
    return answer(200, success=True, id=str(job_id), url=url, **more)


async def submit_job(
    services: Services,
    principal: Principal,
    body: CrawlBody,
    version: str,
    job_id: JobId | None = None,
) -> JobId:
    """Store the crawl and its webhook in one transaction; then wake the workers."""
    options = body.crawl_options()
    services.model.require(body.scrape_options.all_llm_requests(), NEEDS_MODEL)
    redaction_option.require_names(services.model, body.scrape_options)
    details = redaction_option.job_details(
        body.scrape_options, version=version, options=body.described()
    )
    metadata = job_metadata(principal, details, body.origin)
    async with services.results.database.tenant_tx(principal.organisation_id) as conn:
        try:
            job_id = await submit.crawl(
                conn,
                principal.organisation_id,
                options,
                job_id=job_id,
                metadata=metadata,
            )
        except Conflict:
            raise Refusal(409, "Idempotency key already used") from None
        if body.webhook is not None:
            await subscriptions.subscribe(
                conn, principal.organisation_id, job_id, CRAWL, body.webhook.webhook()
            )
    services.notifier.notify(ready=True)
    return job_id


def job_metadata(
    principal: Principal, details: dict[str, Any], origin: str | None
) -> dict[str, Any]:
    """Return the metadata of a job: who requested it, how and when."""
    return {
        "firecrawl": details,
        "origin": origin,
        "initiated_at": datetime.now(UTC).isoformat(),
        usage.API_KEY: None if principal.api_key_id is None else str(principal.api_key_id),
    }


@router.post("/v2/crawl/params-preview", response_model=Done)
async def preview(body: PreviewBody, principal: Reader, services: CurrentServices) -> Response:
    """Return the crawl options that a prompt would give."""
    del principal
    request = CrawlBody(url=body.url, prompt=body.prompt)
    _, generated = await crawl_from_prompt(services.model, request)
    return answer(200, success=True, data={"url": body.url} | generated)


@router.get("/v2/crawl/active", response_model=Done)
@router.get("/v2/crawl/ongoing", response_model=Done)
async def active(principal: Reader, conn: Tenant) -> Response:
    """List the active crawls."""
    return answer(200, success=True, crawls=await ongoing(conn, principal.organisation_id))


async def ongoing(conn: Connection, organisation_id: OrganisationId) -> list[dict[str, Any]]:
    rows = [
        job
        for status in _OPEN
        for job in await job_list.jobs_of(organisation_id, status=status, kind=CRAWL).read(
            conn, "newest", most=1000
        )
    ]
    return [
        {
            "id": str(job.id),
            "teamId": str(job.organisation_id),
            "url": job.options.get("url", ""),
            "created_at": iso_time(job.created_at),
            "options": job.metadata.get("firecrawl", {}).get("options", {}),
        }
        for job in rows
    ]


@router.get("/v2/crawl/{job_id}", response_model=StatusAnswer)
async def status(
    request: Request,
    job_id: JobReference,
    principal: Reader,
    services: CurrentServices,
    cursor: PageCursor,
) -> Response:
    """Return the progress of a crawl, with a page of its documents."""
    return await status_of(request, services, principal, job_id, CRAWL, cursor, "v2")


async def status_of(
    request: Request,
    services: Services,
    principal: Principal,
    job_id: JobId,
    kind: str,
    cursor: Cursor,
    version: str,
) -> Response:
    async with services.results.database.tenant_tx(principal.organisation_id) as conn:
        job = await find_job(conn, job_id, kind)
        counts = await job_results.count_pages(conn, job_id)
    url = f"{job_status.base(request)}/{version}/{PATHS[kind]}/{job_id}"
    written, _ = await job_status.page(services.results, job, counts, cursor, url)
    return Response(written, media_type="application/json")


async def find_job(conn: Connection, job_id: JobId, kind: str) -> JobRow:
    """Return a job of this kind; a job of another organisation is not found."""
    try:
        job = await jobs.get(conn, job_id)
    except NotFound:
        raise Refusal(404, "Job not found") from None
    if job.kind != kind:
        raise Refusal(404, "Job not found")
    return job


@router.get("/v2/crawl/{job_id}/errors", response_model=ErrorsAnswer)
async def errors(job_id: JobReference, principal: Reader, conn: Tenant) -> Response:
    """List the pages that failed."""
    del principal
    job = await find_job(conn, job_id, CRAWL)
    return Response(
        msgspec.json.encode(await job_status.errors(conn, job)), media_type="application/json"
    )


@router.delete("/v2/crawl/{job_id}", response_model=Cancelled)
async def cancel(job_id: JobReference, principal: Writer, services: CurrentServices) -> Response:
    """Cancel a crawl; its documents so far stay."""
    return await cancel_job(services, principal, job_id, CRAWL)


async def cancel_job(
    services: Services, principal: Principal, job_id: JobId, kind: str
) -> Response:
    """Cancel at once. These responses have never had `success`."""
    try:
        async with services.results.database.tenant_tx(principal.organisation_id) as conn:
            job = await find_job(conn, job_id, kind)
            if job.status != "cancelled":
                await jobs.cancel(conn, job_id, by="api")
    except Refusal as error:
        return answer(error.status, success=None, error=error.message)
    except Conflict:
        return answer(409, success=None, error="Crawl is already completed")
    services.notifier.notify(jobs=[job_id])
    return answer(200, success=None, status="cancelled")
