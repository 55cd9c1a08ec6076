"""/v2/batch/scrape: many pages at once, in one job that can be added to."""

import msgspec
from fastapi import APIRouter, Request, Response

from trapline.api.access import Reader, Tenant, Writer
from trapline.api.engine import CurrentEngine, Engine
from trapline.api.firecrawl import crawl, identity, statuses
from trapline.api.firecrawl.answers import Cancelled, ErrorsAnswer, Started, StatusAnswer, responses
from trapline.api.firecrawl.crawl import IdempotencyKey
from trapline.api.firecrawl.crawl_request import BatchBody
from trapline.api.firecrawl.identity import JobReference
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.scrape_options import NEEDS_MODEL
from trapline.api.firecrawl.statuses import PageCursor
from trapline.db.tenancy import Principal
from trapline.deliver import webhooks
from trapline.errors import Conflict, VisitFailed
from trapline.frontier.url import typed_url
from trapline.model import JobId
from trapline.pipeline import submit
from trapline.pipeline.kinds import BATCH

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())


@router.post("/v2/batch/scrape", response_model=Started)
async def start(
    request: Request,
    body: BatchBody,
    who: Writer,
    parts: CurrentEngine,
    key: IdempotencyKey = None,
) -> Response:
    """Start a batch, or add to one."""
    job_id, bad = await started(parts, who, body, identity.of_key(who.organisation_id, key))
    url = f"{statuses.base(request)}/v2/batch/scrape/{job_id}"
    invalid = bad if body.ignore_invalid_urls else None
    return answer(200, success=True, id=str(job_id), url=url, invalidURLs=invalid)


async def started(
    parts: Engine, who: Principal, body: BatchBody, job_id: JobId | None = None
) -> tuple[JobId, list[str]]:
    """Write the batch and who is told of it; return its id and what was no URL."""
    parts.model.require(body.needed(), NEEDS_MODEL)
    good, bad = told_apart(body.urls)
    if bad and not body.ignore_invalid_urls:
        raise Refusal(400, f"Not valid URLs: {', '.join(bad[:10])}", "BAD_REQUEST")
    if not good:
        raise Refusal(400, "No valid URLs were given.", "BAD_REQUEST")
    options = body.visit_options()
    noted = {"formats": sorted(body.names), "version": "v2"}
    asked = crawl.described(who, noted, body.origin)
    async with parts.results.database.tenant_tx(who.organisation_id) as conn:
        if body.append_to_id is not None:
            job_id = identity.parse(body.append_to_id)
            job = await crawl.found(conn, job_id, BATCH)
            await submit.append(conn, job.id, good, options)
        else:
            try:
                job_id = await submit.batch(
                    conn,
                    who.organisation_id,
                    good,
                    options,
                    job_id=job_id,
                    metadata=asked,
                )
            except Conflict:
                raise Refusal(409, "Idempotency key already used") from None
            if body.webhook is not None:
                await webhooks.subscribe(
                    conn, who.organisation_id, job_id, BATCH, body.webhook.webhook()
                )
    parts.bell.ring(ready=True)
    return job_id, bad


def told_apart(urls: list[str]) -> tuple[list[str], list[str]]:
    """Return what are URLs, in canonical form and each once, and what are none."""
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
    who: Reader,
    parts: CurrentEngine,
    cursor: PageCursor,
) -> Response:
    """Say how far a batch is, with a page of its documents."""
    return await crawl.status_of(request, parts, who, job_id, BATCH, cursor, "v2")


@router.get("/v2/batch/scrape/{job_id}/errors", response_model=ErrorsAnswer)
async def errors(job_id: JobReference, who: Reader, conn: Tenant) -> Response:
    """List the pages that could not be had."""
    del who
    job = await crawl.found(conn, job_id, BATCH)
    return Response(
        msgspec.json.encode(await statuses.errors(conn, job)), media_type="application/json"
    )


@router.delete("/v2/batch/scrape/{job_id}", response_model=Cancelled)
async def cancel(job_id: JobReference, who: Writer, parts: CurrentEngine) -> Response:
    """Cancel a batch; what it has already found stays."""
    return await crawl.cancelled(parts, who, job_id, BATCH)
