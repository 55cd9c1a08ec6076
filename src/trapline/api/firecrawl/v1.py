"""/v1/*: requests translated into v2, answers into what v1 answered."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Body, Request, Response

from trapline.api.access import HastyWriter, Reader, Tenant, Writer
from trapline.api.engine import CurrentEngine
from trapline.api.firecrawl import batch as newer_batch
from trapline.api.firecrawl import crawl as newer
from trapline.api.firecrawl import extract as newer_extract
from trapline.api.firecrawl import identity, older, statuses
from trapline.api.firecrawl import mapping as newer_map
from trapline.api.firecrawl import scrape as newer_scrape
from trapline.api.firecrawl import search as newer_search
from trapline.api.firecrawl.answers import (
    Cancelled,
    DocumentAnswer,
    Done,
    ErrorsAnswer,
    Started,
    StatusAnswer,
    responses,
)
from trapline.api.firecrawl.crawl import IdempotencyKey
from trapline.api.firecrawl.crawl_request import BatchBody, CrawlBody
from trapline.api.firecrawl.extract import ExtractBody
from trapline.api.firecrawl.identity import JobReference
from trapline.api.firecrawl.mapping import MapBody
from trapline.api.firecrawl.refusals import FirecrawlRoute, answer
from trapline.api.firecrawl.scrape import ScrapeBody
from trapline.api.firecrawl.search import SearchBody
from trapline.api.firecrawl.statuses import PageCursor
from trapline.pipeline.kinds import BATCH, CRAWL

router = APIRouter(
    prefix="/v1", route_class=FirecrawlRoute, tags=["firecrawl v1"], responses=responses()
)

Given = Annotated[dict[str, Any], Body()]


@router.post("/scrape", response_model=DocumentAnswer)
async def scrape(given: Given, asking: HastyWriter, parts: CurrentEngine) -> Response:
    """Scrape one page."""
    body = older.read(ScrapeBody, older.scrape(given))
    who, scraped = await newer_scrape.scraped_for(parts, asking, body)
    data = await newer_scrape.wanted(parts, who, body, scraped)
    if "extract" in (given.get("formats") or ()) and "json" in data:
        data["extract"] = data["json"]
    return answer(200, success=True, data=data)


@router.post("/crawl", response_model=Started)
async def start_crawl(
    request: Request,
    given: Given,
    who: Writer,
    parts: CurrentEngine,
    key: IdempotencyKey = None,
) -> Response:
    """Start a crawl."""
    body = older.read(CrawlBody, older.crawl(given))
    job_id = await newer.started(parts, who, body, "v1", identity.of_key(who.organisation_id, key))
    url = f"{statuses.base(request)}/v1/crawl/{job_id}"
    return answer(200, success=True, id=str(job_id), url=url)


@router.get("/crawl/active", response_model=Done)
@router.get("/crawl/ongoing", response_model=Done)
async def active(who: Reader, conn: Tenant) -> Response:
    """List the crawls that run now."""
    return answer(200, success=True, crawls=await newer.ongoing(conn, who.organisation_id))


@router.get("/crawl/{job_id}", response_model=StatusAnswer)
async def crawl_status(
    request: Request, job_id: JobReference, who: Reader, parts: CurrentEngine, cursor: PageCursor
) -> Response:
    """Say how far a crawl is, with a page of its documents."""
    return await newer.status_of(request, parts, who, job_id, CRAWL, cursor, "v1")


@router.get("/crawl/{job_id}/errors", response_model=ErrorsAnswer)
async def crawl_errors(job_id: JobReference, who: Reader, conn: Tenant) -> Response:
    """List the pages that could not be had."""
    return await newer.errors(job_id, who, conn)


@router.delete("/crawl/{job_id}", response_model=Cancelled)
async def cancel_crawl(job_id: JobReference, who: Writer, parts: CurrentEngine) -> Response:
    """Cancel a crawl."""
    return await newer.cancelled(parts, who, job_id, CRAWL)


@router.post("/batch/scrape", response_model=Started)
async def start_batch(
    request: Request,
    given: Given,
    who: Writer,
    parts: CurrentEngine,
    key: IdempotencyKey = None,
) -> Response:
    """Start a batch, or add to one."""
    body = older.read(BatchBody, older.scrape(given))
    job = identity.of_key(who.organisation_id, key)
    job_id, bad = await newer_batch.started(parts, who, body, job)
    url = f"{statuses.base(request)}/v1/batch/scrape/{job_id}"
    return answer(200, success=True, id=str(job_id), url=url, invalidURLs=bad)


@router.get("/batch/scrape/{job_id}", response_model=StatusAnswer)
async def batch_status(
    request: Request, job_id: JobReference, who: Reader, parts: CurrentEngine, cursor: PageCursor
) -> Response:
    """Say how far a batch is, with a page of its documents."""
    return await newer.status_of(request, parts, who, job_id, BATCH, cursor, "v1")


@router.get("/batch/scrape/{job_id}/errors", response_model=ErrorsAnswer)
async def batch_errors(job_id: JobReference, who: Reader, conn: Tenant) -> Response:
    """List the pages that could not be had."""
    return await newer_batch.errors(job_id, who, conn)


@router.delete("/batch/scrape/{job_id}", response_model=Cancelled)
async def cancel_batch(job_id: JobReference, who: Writer, parts: CurrentEngine) -> Response:
    """Cancel a batch."""
    return await newer.cancelled(parts, who, job_id, BATCH)


@router.get("/scrape/{job_id}", response_model=DocumentAnswer)
async def scrape_status(job_id: JobReference, who: Reader, parts: CurrentEngine) -> Response:
    """Answer with what a scrape came to."""
    return await newer_scrape.scrape_status(job_id, who, parts)


@router.post("/map", response_model=Done)
async def map_site(given: Given, who: Writer, parts: CurrentEngine) -> Response:
    """List the URLs of a site; here they are plain strings."""
    body = older.read(MapBody, older.mapped(given))
    mapped = await newer_map.mapped(parts, who, body)
    links = [link.url for link in mapped.links]
    return answer(200, success=True, links=links, warning=mapped.warning)


@router.post("/search", response_model=Done)
async def search(given: Given, who: Writer, parts: CurrentEngine) -> Response:
    """Search the web; here the results are one flat list."""
    body = older.read(SearchBody, older.search(given))
    found: dict[str, Any] = msgspec.json.decode((await newer_search.search(body, who, parts)).body)
    return answer(200, success=True, data=found["data"].get("web", []))


@router.post("/extract", response_model=Done)
async def start_extract(given: Given, who: Writer, parts: CurrentEngine) -> Response:
    """Start an extraction."""
    body = older.read(ExtractBody, older.extract(given))
    return await newer_extract.start(body, who, parts)


@router.get("/extract/{job_id}", response_model=Done)
async def extract_status(job_id: JobReference, who: Reader, conn: Tenant) -> Response:
    """Say how far an extraction is, and what it found."""
    return await newer_extract.status(job_id, who, conn)
