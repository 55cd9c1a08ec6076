"""/v2/crawl: start, status, errors, cancel, and what runs now."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Header, Request, Response

from trapline.api.access import Reader, Tenant, Writer
from trapline.api.engine import CurrentEngine, Engine
from trapline.api.firecrawl import identity, statuses
from trapline.api.firecrawl.answers import (
    Cancelled,
    Done,
    ErrorsAnswer,
    Started,
    StatusAnswer,
    responses,
)
from trapline.api.firecrawl.crawl_request import CrawlBody
from trapline.api.firecrawl.documents import moment
from trapline.api.firecrawl.fields import Address, Origin, Prompt
from trapline.api.firecrawl.identity import JobReference
from trapline.api.firecrawl.prompts import crawl_from_prompt
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.scrape_options import NEEDS_MODEL
from trapline.api.firecrawl.statuses import Cursor, PageCursor
from trapline.db.connection import Connection
from trapline.db.tenancy import Principal
from trapline.deliver import webhooks
from trapline.errors import Conflict, NotFound
from trapline.model import JobId, OrganisationId
from trapline.pipeline import results, submit, usage
from trapline.pipeline.kinds import BATCH, CRAWL
from trapline.queue import jobs, listing
from trapline.queue.jobs import Status
from trapline.queue.listing import Wanted
from trapline.queue.sql.jobs import JobRow

_OPEN: Final[tuple[Status, ...]] = ("pending", "running", "paused")

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

Kind = Literal["crawl", "batch_scrape"]
Path = {CRAWL: "crawl", BATCH: "batch/scrape"}
IdempotencyKey = Annotated[str | None, Header(alias="x-idempotency-key")]


class PreviewBody(Origin):
    """POST /v2/crawl/params-preview."""

    url: Address
    prompt: Prompt


@router.post("/v2/crawl", response_model=Started)
async def start(
    request: Request,
    body: CrawlBody,
    who: Writer,
    parts: CurrentEngine,
    key: IdempotencyKey = None,
) -> Response:
    """Start a crawl."""
    more: dict[str, Any] = {}
    if body.prompt is not None:
        body, generated = await crawl_from_prompt(parts.model, body)
        more = {"promptGeneratedOptions": generated, "finalCrawlerOptions": body.described()}
    job_id = await started(parts, who, body, "v2", identity.of_key(who.organisation_id, key))
    url = f"{statuses.base(request)}/v2/crawl/{job_id}"
    return answer(200, success=True, id=str(job_id), url=url, **more)


async def started(
    parts: Engine, who: Principal, body: CrawlBody, version: str, job_id: JobId | None = None
) -> JobId:
    """Write the crawl and who is told of it, in one transaction; then wake the workers."""
    parts.model.require(body.scrape_options.needed(), NEEDS_MODEL)
    options = body.crawl_options()
    noted = {
        "formats": sorted(body.scrape_options.names),
        "version": version,
        "options": body.described(),
    }
    asked = described(who, noted, body.origin)
    async with parts.results.database.tenant_tx(who.organisation_id) as conn:
        try:
            job_id = await submit.crawl(
                conn,
                who.organisation_id,
                options,
                job_id=job_id,
                metadata=asked,
            )
        except Conflict:
            raise Refusal(409, "Idempotency key already used") from None
        if body.webhook is not None:
            await webhooks.subscribe(
                conn, who.organisation_id, job_id, CRAWL, body.webhook.webhook()
            )
    parts.bell.ring(ready=True)
    return job_id


def described(who: Principal, noted: dict[str, Any], origin: str | None) -> dict[str, Any]:
    """Return what is kept with a job of who asked for it, how and when."""
    return {
        "firecrawl": noted,
        "origin": origin,
        "initiated_at": datetime.now(UTC).isoformat(),
        usage.API_KEY: None if who.api_key_id is None else str(who.api_key_id),
    }


@router.post("/v2/crawl/params-preview", response_model=Done)
async def preview(body: PreviewBody, who: Reader, parts: CurrentEngine) -> Response:
    """Say which options a prompt would give."""
    del who
    asked = CrawlBody(url=body.url, prompt=body.prompt)
    _, generated = await crawl_from_prompt(parts.model, asked)
    return answer(200, success=True, data={"url": body.url} | generated)


@router.get("/v2/crawl/active", response_model=Done)
@router.get("/v2/crawl/ongoing", response_model=Done)
async def active(who: Reader, conn: Tenant) -> Response:
    """List the crawls that run now."""
    return answer(200, success=True, crawls=await ongoing(conn, who.organisation_id))


async def ongoing(conn: Connection, organisation_id: OrganisationId) -> list[dict[str, Any]]:
    rows = [
        job
        for status in _OPEN
        for job in await listing.listed(conn, Wanted(organisation_id, status, CRAWL), most=1000)
    ]
    return [
        {
            "id": str(job.id),
            "teamId": str(job.organisation_id),
            "url": job.options.get("url", ""),
            "created_at": moment(job.created_at),
            "options": job.metadata.get("firecrawl", {}).get("options", {}),
        }
        for job in rows
    ]


@router.get("/v2/crawl/{job_id}", response_model=StatusAnswer)
async def status(
    request: Request,
    job_id: JobReference,
    who: Reader,
    parts: CurrentEngine,
    cursor: PageCursor,
) -> Response:
    """Say how far a crawl is, with a page of its documents."""
    return await status_of(request, parts, who, job_id, CRAWL, cursor, "v2")


async def status_of(
    request: Request,
    parts: Engine,
    who: Principal,
    job_id: JobId,
    kind: str,
    cursor: Cursor,
    version: str,
) -> Response:
    async with parts.results.database.tenant_tx(who.organisation_id) as conn:
        job = await found(conn, job_id, kind)
        counts = await results.counts(conn, job_id)
    url = f"{statuses.base(request)}/{version}/{Path[kind]}/{job_id}"
    written, _ = await statuses.page(parts.results, job, counts, cursor, url)
    return Response(written, media_type="application/json")


async def found(conn: Connection, job_id: JobId, kind: str) -> JobRow:
    """Return a job of this kind; one of another organisation is not there."""
    try:
        job = await jobs.get(conn, job_id)
    except NotFound:
        raise Refusal(404, "Job not found") from None
    if job.kind != kind:
        raise Refusal(404, "Job not found")
    return job


@router.get("/v2/crawl/{job_id}/errors", response_model=ErrorsAnswer)
async def errors(job_id: JobReference, who: Reader, conn: Tenant) -> Response:
    """List the pages that could not be had."""
    del who
    job = await found(conn, job_id, CRAWL)
    return Response(
        msgspec.json.encode(await statuses.errors(conn, job)), media_type="application/json"
    )


@router.delete("/v2/crawl/{job_id}", response_model=Cancelled)
async def cancel(job_id: JobReference, who: Writer, parts: CurrentEngine) -> Response:
    """Cancel a crawl; what it has already found stays."""
    return await cancelled(parts, who, job_id, CRAWL)


async def cancelled(parts: Engine, who: Principal, job_id: JobId, kind: str) -> Response:
    """Cancel at once. These answers have always been without `success`."""
    try:
        async with parts.results.database.tenant_tx(who.organisation_id) as conn:
            job = await found(conn, job_id, kind)
            if job.status != "cancelled":
                await jobs.cancel(conn, job_id, by="api")
    except Refusal as error:
        return answer(error.status, success=None, error=error.message)
    except Conflict:
        return answer(409, success=None, error="Crawl is already completed")
    parts.bell.ring(jobs=[job_id])
    return answer(200, success=None, status="cancelled")
