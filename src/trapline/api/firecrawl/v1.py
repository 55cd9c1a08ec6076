"""/v1/*: requests translated to v2, responses to v1's form."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Body, Request, Response

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import batch as newer_batch
from trapline.api.firecrawl import crawl as newer
from trapline.api.firecrawl import extract as newer_extract
from trapline.api.firecrawl import job_ids, job_status, v1_translation
from trapline.api.firecrawl import map as newer_map
from trapline.api.firecrawl import scrape as newer_scrape
from trapline.api.firecrawl import search as newer_search
from trapline.api.firecrawl.crawl import IdempotencyKey
from trapline.api.firecrawl.errors import FirecrawlRoute, answer
from trapline.api.firecrawl.extract import ExtractBody
from trapline.api.firecrawl.job_ids import JobReference
from trapline.api.firecrawl.job_status import PageCursor
from trapline.api.firecrawl.map import MapBody
from trapline.api.firecrawl.requests.crawl_request import BatchBody, CrawlBody
from trapline.api.firecrawl.response_models import (
    Cancelled,
    DocumentAnswer,
    Done,
    ErrorsAnswer,
    Started,
    StatusAnswer,
    responses,
)
from trapline.api.firecrawl.scrape import ScrapeBody
from trapline.api.firecrawl.search import SearchBody
from trapline.api.principal import Reader, ScrapeWriter, Tenant, Writer
from trapline.pipeline.kinds import BATCH, CRAWL

router = APIRouter(
    prefix="/v1", route_class=FirecrawlRoute, tags=["firecrawl v1"], responses=responses()
)

Given = Annotated[dict[str, Any], Body()]


@router.post("/scrape", response_model=DocumentAnswer)
async def scrape(v1_body: Given, writer: ScrapeWriter, services: CurrentServices) -> Response:
    """Scrape one page."""
    body = v1_translation.validate(ScrapeBody, v1_translation.scrape(v1_body))
    principal, scraped = await newer_scrape.scrape_for(services, writer, body)
    data = await newer_scrape.build_document(services, principal, body, scraped)
    formats = v1_body.get("formats") or ()
    if "extract" in formats and "json" in data:
        data["extract"] = data["json"] if "json" in formats else data.pop("json")
    return answer(200, success=True, data=data)


@router.post("/crawl", response_model=Started)
async def start_crawl(
    request: Request,
    v1_body: Given,
    principal: Writer,
    services: CurrentServices,
    key: IdempotencyKey = None,
) -> Response:
    """Start a crawl."""
    body = v1_translation.validate(CrawlBody, v1_translation.crawl(v1_body))
    job_id = await newer.submit_job(
        services, principal, body, "v1", job_ids.of_key(principal.organisation_id, key)
    )
    url = f"{job_status.base(request)}/v1/crawl/{job_id}"
    return answer(200, success=True, id=str(job_id), url=url)


@router.get("/crawl/active", response_model=Done)
@router.get("/crawl/ongoing", response_model=Done)
async def active(principal: Reader, conn: Tenant) -> Response:
    """List the active crawls."""
    return answer(200, success=True, crawls=await newer.ongoing(conn, principal.organisation_id))


@router.get("/crawl/{job_id}", response_model=StatusAnswer)
async def crawl_status(
    request: Request,
    job_id: JobReference,
    principal: Reader,
    services: CurrentServices,
    cursor: PageCursor,
) -> Response:
    """Return the progress of a crawl, with a page of its documents."""
    return await newer.status_of(request, services, principal, job_id, CRAWL, cursor, "v1")


@router.get("/crawl/{job_id}/errors", response_model=ErrorsAnswer)
async def crawl_errors(job_id: JobReference, principal: Reader, conn: Tenant) -> Response:
    """List the pages that failed."""
    return await newer.errors(job_id, principal, conn)


@router.delete("/crawl/{job_id}", response_model=Cancelled)
async def cancel_crawl(
    job_id: JobReference, principal: Writer, services: CurrentServices
) -> Response:
    """Cancel a crawl."""
    return await newer.cancel_job(services, principal, job_id, CRAWL)


@router.post("/batch/scrape", response_model=Started)
async def start_batch(
    request: Request,
    v1_body: Given,
    principal: Writer,
    services: CurrentServices,
    key: IdempotencyKey = None,
) -> Response:
    """Start a batch, or add to one."""
    body = v1_translation.validate(BatchBody, v1_translation.scrape(v1_body))
    job = job_ids.of_key(principal.organisation_id, key)
    job_id, bad = await newer_batch.submit_job(services, principal, body, job)
    url = f"{job_status.base(request)}/v1/batch/scrape/{job_id}"
    return answer(200, success=True, id=str(job_id), url=url, invalidURLs=bad)


@router.get("/batch/scrape/{job_id}", response_model=StatusAnswer)
async def batch_status(
    request: Request,
    job_id: JobReference,
    principal: Reader,
    services: CurrentServices,
    cursor: PageCursor,
) -> Response:
    """Return the progress of a batch, with a page of its documents."""
    return await newer.status_of(request, services, principal, job_id, BATCH, cursor, "v1")


@router.get("/batch/scrape/{job_id}/errors", response_model=ErrorsAnswer)
async def batch_errors(job_id: JobReference, principal: Reader, conn: Tenant) -> Response:
    """List the pages that failed."""
    return await newer_batch.errors(job_id, principal, conn)


@router.delete("/batch/scrape/{job_id}", response_model=Cancelled)
async def cancel_batch(
    job_id: JobReference, principal: Writer, services: CurrentServices
) -> Response:
    """Cancel a batch."""
    return await newer.cancel_job(services, principal, job_id, BATCH)


@router.get("/scrape/{job_id}", response_model=DocumentAnswer)
async def scrape_status(
    job_id: JobReference, principal: Reader, services: CurrentServices
) -> Response:
    """Return the result of a scrape."""
    return await newer_scrape.scrape_status(job_id, principal, services)


@router.post("/map", response_model=Done)
async def map_site(v1_body: Given, principal: Writer, services: CurrentServices) -> Response:
    """List the URLs of a site, as plain strings."""
    body = v1_translation.validate(MapBody, v1_translation.map_(v1_body))
    mapped = await newer_map.map_for(services, principal, body)
    links = [link.url for link in mapped.links]
    return answer(200, success=True, links=links, warning=mapped.warning)


@router.post("/search", response_model=Done)
async def search(v1_body: Given, principal: Writer, services: CurrentServices) -> Response:
    """Search the web; the results are one flat list."""
    body = v1_translation.validate(SearchBody, v1_translation.search(v1_body))
    response: dict[str, Any] = msgspec.json.decode(
        (await newer_search.search(body, principal, services)).body
    )
    return answer(200, success=True, data=response["data"].get("web", []))


@router.post("/extract", response_model=Done)
async def start_extract(v1_body: Given, principal: Writer, services: CurrentServices) -> Response:
    """Start an extraction."""
    body = v1_translation.validate(ExtractBody, v1_translation.extract(v1_body))
    return await newer_extract.start(body, principal, services)


@router.get("/extract/{job_id}", response_model=Done)
async def extract_status(job_id: JobReference, principal: Reader, conn: Tenant) -> Response:
    """Return the progress of an extraction, and its data."""
    return await newer_extract.status(job_id, principal, conn)
