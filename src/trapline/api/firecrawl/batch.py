"""/v2/batch/scrape: many pages in one job, to which more can be added."""

import msgspec
from fastapi import APIRouter, Request, Response

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import crawl, job_ids, job_status, redaction_option
from trapline.api.firecrawl.crawl import IdempotencyKey
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.job_ids import JobReference
from trapline.api.firecrawl.job_status import PageCursor
from trapline.api.firecrawl.requests.crawl_request import BatchBody
from trapline.api.firecrawl.requests.scrape_options import NEEDS_MODEL
from trapline.api.firecrawl.response_models import (
    Cancelled,
    ErrorsAnswer,
    Started,
    StatusAnswer,
    responses,
)
from trapline.api.principal import Reader, Tenant, Writer
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.deliver import subscriptions
from trapline.errors import Conflict, VisitFailed
from trapline.frontier.canonical_url import typed_url
from trapline.model import JobId
from trapline.pipeline import submit
from trapline.pipeline.kinds import BATCH

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())


@router.post("/v2/batch/scrape", response_model=Started)
async def start(
    request: Request,
    body: BatchBody,
    principal: Writer,
    services: CurrentServices,
    key: IdempotencyKey = None,
) -> Response:
    """Start a batch, or add to one."""
    job_id, bad = await submit_job(
        services, principal, body, job_ids.of_key(principal.organisation_id, key)
    )
    url = f"{job_status.base(request)}/v2/batch/scrape/{job_id}"
    invalid = bad if body.ignore_invalid_urls else None
    warning = " ".join(redaction_option.job_warnings(body)) or None
    return answer(200, success=True, id=str(job_id), url=url, invalidURLs=invalid, warning=warning)


async def submit_job(
    services: Services, principal: Principal, body: BatchBody, job_id: JobId | None = None
) -> tuple[JobId, list[str]]:
    """Store the batch and its webhook; return its id and the strings that are no URLs."""
    options = body.visit_options()
    services.model.require(body.all_llm_requests(), NEEDS_MODEL)
    redaction_option.require_names(services.model, body)
    good, bad = split_urls(body.urls)
    if bad and not body.ignore_invalid_urls:
        raise Refusal(400, f"Not valid URLs: {', '.join(bad[:10])}", "BAD_REQUEST")
    if not good:
        raise Refusal(400, "No valid URLs were given.", "BAD_REQUEST")
    details = redaction_option.job_details(body)
    metadata = crawl.job_metadata(principal, details, body.origin)
    async with services.results.database.tenant_tx(principal.organisation_id) as conn:
        if body.append_to_id is not None:
            job_id = job_ids.parse(body.append_to_id)
            job = await crawl.find_job(conn, job_id, BATCH)
            await submit.append(conn, job.id, good, options)
        else:
            try:
                job_id = await submit.batch(
                    conn,
                    principal.organisation_id,
                    good,
                    options,
                    job_id=job_id,
                    metadata=metadata,
                )
            except Conflict:
                raise Refusal(409, "Idempotency key already used") from None
            if body.webhook is not None:
                await subscriptions.subscribe(
                    conn, principal.organisation_id, job_id, BATCH, body.webhook.webhook()
                )
    services.notifier.notify(ready=True)
    return job_id, bad


def split_urls(urls: list[str]) -> tuple[list[str], list[str]]:
    """Return the distinct URLs in canonical form, and the strings that are no URLs."""
    good: dict[str, None] = {}
    bad = []
    for url in urls:
        try:
            good[typed_url(url)] = None
        except VisitFailed:
            bad.append(url)
    return list(good), bad


@router.get("/v2/batch/scrape/{job_id}", response_model=StatusAnswer)
async def status(
    request: Request,
    job_id: JobReference,
    principal: Reader,
    services: CurrentServices,
    cursor: PageCursor,
) -> Response:
    """Return the progress of a batch, with a page of its documents."""
    return await crawl.status_of(request, services, principal, job_id, BATCH, cursor, "v2")


@router.get("/v2/batch/scrape/{job_id}/errors", response_model=ErrorsAnswer)
async def errors(job_id: JobReference, principal: Reader, conn: Tenant) -> Response:
    """List the pages that failed."""
    del principal
    job = await crawl.find_job(conn, job_id, BATCH)
    return Response(
        msgspec.json.encode(await job_status.errors(conn, job)), media_type="application/json"
    )


@router.delete("/v2/batch/scrape/{job_id}", response_model=Cancelled)
async def cancel(job_id: JobReference, principal: Writer, services: CurrentServices) -> Response:
    """Cancel a batch; its documents so far stay."""
    return await crawl.cancel_job(services, principal, job_id, BATCH)
