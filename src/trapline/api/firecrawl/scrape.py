"""POST /v2/scrape: one page, at once; and what it came to, by its id."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Request, Response
from pydantic import Field

from trapline.api.access import Hasty, HastyWriter, Reader, hasty_writer
from trapline.api.engine import CurrentEngine, Engine, engine
from trapline.api.firecrawl import crawl, documents, statuses
from trapline.api.firecrawl.answers import DocumentAnswer, responses
from trapline.api.firecrawl.documents import Facts, document
from trapline.api.firecrawl.fields import Address
from trapline.api.firecrawl.formats import ChangeTracking
from trapline.api.firecrawl.identity import JobReference
from trapline.api.firecrawl.refusals import (
    FirecrawlRoute,
    Handler,
    Refusal,
    answer,
    plainly,
)
from trapline.api.firecrawl.scrape_options import NEEDS_MODEL, ScrapeOptionsBody
from trapline.db.tenancy import Principal
from trapline.errors import ExitCode, NotFound, TookTooLong
from trapline.model import JobId
from trapline.pipeline import tracking, usage
from trapline.pipeline.asking import Asker, AskerChanged, Claim
from trapline.pipeline.kinds import SCRAPE
from trapline.pipeline.language import Answers
from trapline.pipeline.options import PageOptions
from trapline.pipeline.scraping import NotCached, Scraped
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

# How long the result of a scrape is waited for that has not ended.
_PATIENCE: Final = 5.0
_POLL: Final = 0.05
_UNKNOWN: Final = "Job not found"


class ScrapeBody(ScrapeOptionsBody):
    """POST /v2/scrape."""

    url: Address
    zero_data_retention: bool = False
    origin: Annotated[str | None, Field(max_length=500)] = None
    integration: Annotated[str | None, Field(max_length=500)] = None

    def page_options(self) -> PageOptions:
        scrape = self.scrape_options(zero_data_retention=self.zero_data_retention)
        return PageOptions.parse(url=self.url, scrape=msgspec.to_builtins(scrape))


async def scrape(body: ScrapeBody, asking: HastyWriter, parts: CurrentEngine) -> Response:
    """Scrape one page and answer with it."""
    who, scraped = await scraped_for(parts, asking, body)
    data = await wanted(parts, who, body, scraped)
    scrape_id = None if scraped.job_id is None else str(scraped.job_id)
    return answer(200, success=True, data=data, scrape_id=scrape_id)


class _ScrapeRoute(FirecrawlRoute):
    """Hands a request that is in order to the endpoint itself: there are hundreds a second."""

    def handler(self) -> Handler:
        usual = super().handler()

        async def answered(request: Request) -> Response:
            body = await plainly(request, ScrapeBody)
            if body is None:
                return await usual(request)
            return await scrape(body, await hasty_writer(request), engine(request))

        return answered


router.add_api_route(
    "/v2/scrape",
    scrape,
    methods=["POST"],
    response_model=DocumentAnswer,
    route_class_override=_ScrapeRoute,
)


@router.get("/v2/scrape/{job_id}", response_model=DocumentAnswer)
async def scrape_status(job_id: JobReference, who: Reader, parts: CurrentEngine) -> Response:
    """Answer with what a scrape came to, as long as it is kept."""
    job = await _ended(parts, who, job_id)
    async for result in parts.results.pages(job, most=1):
        return answer(200, success=True, data=statuses.wire(result, job))
    raise NotFound(_UNKNOWN)


async def _ended(parts: Engine, who: Principal, job_id: JobId) -> JobRow:
    """Return a scrape's job, once it has ended: another process may be about to store what it answered."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        try:
            async with parts.results.database.tenant_tx(who.organisation_id) as conn:
                job = await jobs.get(conn, job_id)
        except NotFound:
            raise NotFound(_UNKNOWN) from None
        late = asyncio.get_running_loop().time() > deadline
        if job.kind != SCRAPE or job.status in jobs.ENDED or late:
            return job
        await asyncio.sleep(_POLL)


async def scraped_for(parts: Engine, asking: Hasty, body: ScrapeBody) -> tuple[Principal, Scraped]:
    """Visit a page for whoever asks, and say who that is."""
    try:
        return asking.who, await visited(parts, asker(asking.who, body, asking.claim), body)
    except AskerChanged:
        asking = await asking.established()
        return asking.who, await visited(parts, asker(asking.who, body, asking.claim), body)


def asker(who: Principal, body: ScrapeBody, claim: Claim | None = None) -> Asker:
    """Return who asks, with what is kept of it with the job."""
    noted = {"formats": sorted(body.names), "version": "v2"}
    metadata = crawl.described(who, noted, body.origin)
    return Asker(who.organisation_id, metadata=metadata, claim=claim)


async def visited(parts: Engine, asker: Asker, body: ScrapeBody) -> Scraped:
    """Visit a page; an end without a document is the contract's error for it."""
    parts.model.require(body.needed(), NEEDS_MODEL)
    try:
        scraped = await parts.scraper.scrape(asker, body.page_options(), answer_first=True)
    except TookTooLong as error:
        queued = error.waited_for == "organisation"
        code = "CONCURRENCY_QUEUE_TIMEOUT" if queued else "SCRAPE_TIMEOUT"
        raise Refusal(408, error.message, code) from None
    except NotCached as error:
        code = "SCRAPE_LOCKDOWN_CACHE_MISS" if body.lockdown else "SCRAPE_NO_CACHED_DATA"
        raise Refusal(404, error.message, code) from None
    if scraped.document is None:
        outcome = scraped.outcome
        raise Refusal(
            200 if scraped.code is ExitCode.DNS_FAILURE else max(outcome.http_status, 400),
            scraped.error or outcome.sentence,
            outcome.firecrawl_code or "SCRAPE_SITE_ERROR",
        )
    return scraped


async def wanted(
    parts: Engine, who: Principal, body: ScrapeOptionsBody, scraped: Scraped
) -> dict[str, Any]:
    """Build the document that a scrape is answered with."""
    page = scraped.document
    if page is None:
        raise NotFound("The scrape has no document.")
    facts = Facts(
        url=scraped.final_url,
        source_url=str(getattr(body, "url", scraped.url)),
        scrape_id=None if scraped.job_id is None else str(scraped.job_id),
        status=scraped.status,
        content_type=scraped.content_type,
        error=None if scraped.ok else scraped.error,
        cache=scraped.cache,
        cached_at=scraped.cached_at,
        waited_ms=round(scraped.waited * 1000) if scraped.waited_for == "organisation" else None,
    )
    out = document(page, body.names, facts, body=scraped.body)
    if scraped.attributes:
        out["attributes"] = [msgspec.to_builtins(values) for values in scraped.attributes]
    await _answered(parts, who, body, scraped, out)
    return out


async def _answered(
    parts: Engine, who: Principal, body: ScrapeOptionsBody, scraped: Scraped, out: dict[str, Any]
) -> None:
    """Add what a language model answers, and what changed since the last scrape."""
    wishes, used = body.wishes(), 0
    if wishes and scraped.document is not None:
        answers = await parts.model.answer(wishes, scraped.document.markdown)
        documents.add_answers(out, answers.values, answers.warnings)
        used = answers.usage.total
    change = body.the(ChangeTracking)
    if change is not None and scraped.document is not None:
        used += await _tracked(parts, who, change, scraped, out)
    if used:
        async with parts.results.database.tenant_tx(who.organisation_id) as conn:
            await usage.add_tokens(conn, who.organisation_id, who.api_key_id, used)


async def _tracked(
    parts: Engine, who: Principal, change: ChangeTracking, scraped: Scraped, out: dict[str, Any]
) -> int:
    """Add what changed since the last scrape; return the tokens that it took."""
    assert scraped.document is not None  # noqa: S101 (the caller looked)
    database = parts.results.database
    new = tracking.snapshot(
        who.organisation_id,
        scraped.url,
        scraped.document.markdown,
        scraped_at=datetime.now(UTC),
        tag=change.tag,
        status=scraped.status,
        extracted=out.get("json"),
    )
    async with database.tenant_tx(who.organisation_id) as conn:
        tracked = await tracking.compare(conn, new, modes=change.modes)
    answers = Answers()
    wish = change.fields
    if wish is not None:
        tracked, new, answers = await tracking.read_fields(parts.model, wish, tracked, new)
        documents.add_answers(out, {}, answers.warnings)
    async with database.tenant_tx(who.organisation_id) as conn:
        await tracking.keep(conn, [new])
    out["changeTracking"] = tracked.as_json()
    return answers.usage.total
