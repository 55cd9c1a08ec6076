"""POST /v2/scrape: one page at once; GET /v2/scrape/{id}: its result later."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import structs
from pydantic import Field

from trapline.api.dependencies import CurrentServices, services_of
from trapline.api.firecrawl import (
    crawl,
)
from trapline.api.firecrawl.errors import FirecrawlRoute, Handler, Refusal, answer, valid_body
from trapline.api.firecrawl.job_ids import JobReference
from trapline.api.firecrawl.redaction_option import (
    find_names,
    job_details,
    names_warning,
    require_names,
)
from trapline.api.firecrawl.requests.base_models import Address
from trapline.api.firecrawl.requests.formats import ChangeTracking
from trapline.api.firecrawl.requests.scrape_options import NEEDS_MODEL, ScrapeOptionsBody
from trapline.api.firecrawl.response_models import DocumentAnswer, responses
from trapline.api.principal import Reader, ScrapePrincipal, ScrapeWriter, scrape_writer
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.deliver import firecrawl_document
from trapline.deliver.firecrawl_document import (
    VisitFacts,
    action_results,
    add_warnings,
    document,
    redact_document,
)
from trapline.errors import DeadlineExceeded, ExitCode, NotFound
from trapline.model import JobId, new_uuid
from trapline.pipeline.caller import Caller, CallerChanged, Claim
from trapline.pipeline.crawl import change_tracking
from trapline.pipeline.kinds import SCRAPE
from trapline.pipeline.llm import Answers
from trapline.pipeline.options import PageOptions
from trapline.pipeline.reports import job_document, usage
from trapline.pipeline.scrape.scraper import NotCached, ScrapeResult
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

# How long the result of a scrape is waited for that has not ended.
_RESULT_WAIT_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
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


async def scrape(body: ScrapeBody, writer: ScrapeWriter, services: CurrentServices) -> Response:
    """Scrape one page and answer with it."""
    principal, scraped = await scrape_for(services, writer, body)
    data = await build_document(services, principal, body, scraped)
    return answer(200, success=True, data=data, scrape_id=data["metadata"]["scrapeId"])


class _ScrapeRoute(FirecrawlRoute):
    """Passes a valid request straight to the endpoint: there are hundreds a second."""

    def handler(self) -> Handler:
        usual = super().handler()

        async def answered(request: Request) -> Response:
            body = await valid_body(request, ScrapeBody)
            if body is None:
                return await usual(request)
            return await scrape(body, await scrape_writer(request), services_of(request))

        return answered


router.add_api_route(
    "/v2/scrape",
    scrape,
    methods=["POST"],
    response_model=DocumentAnswer,
    route_class_override=_ScrapeRoute,
)


@router.get("/v2/scrape/{job_id}", response_model=DocumentAnswer)
async def scrape_status(
    job_id: JobReference, principal: Reader, services: CurrentServices
) -> Response:
    """Return the result of a scrape, as long as it is stored."""
    job = await _ended(services, principal, job_id)
    async for result in services.results.pages(job, most=1):
        return answer(200, success=True, data=job_document.build(result, job))
    raise NotFound(_UNKNOWN)


async def _ended(services: Services, principal: Principal, job_id: JobId) -> JobRow:
    """Return a scrape's job, once it has ended: another process may be about to store what it answered."""
    deadline = asyncio.get_running_loop().time() + _RESULT_WAIT_SECONDS
    while True:
        try:
            async with services.results.database.tenant_tx(principal.organisation_id) as conn:
                job = await jobs.get(conn, job_id)
        except NotFound:
            raise NotFound(_UNKNOWN) from None
        late = asyncio.get_running_loop().time() > deadline
        if job.kind != SCRAPE or job.status in jobs.ENDED or late:
            return job
        await asyncio.sleep(_POLL_SECONDS)


async def scrape_for(
    services: Services, writer: ScrapePrincipal, body: ScrapeBody
) -> tuple[Principal, ScrapeResult]:
    """Visit a page; return the principal and the result."""
    try:
        return writer.principal, await visit(
            services, caller(writer.principal, body, writer.claim), body
        )
    except CallerChanged:
        writer = await writer.verified()
        return writer.principal, await visit(
            services, caller(writer.principal, body, writer.claim), body
        )


def caller(principal: Principal, body: ScrapeBody, claim: Claim | None = None) -> Caller:
    """Return the caller, with the metadata for the job."""
    details = job_details(body)
    metadata = crawl.job_metadata(principal, details, body.origin)
    return Caller(principal.organisation_id, metadata=metadata, claim=claim)


async def visit(services: Services, caller: Caller, body: ScrapeBody) -> ScrapeResult:
    """Visit a page; a failure becomes the contract's error for it."""
    options = body.page_options()
    services.model.require(body.all_llm_requests(), NEEDS_MODEL)
    require_names(services.model, body)
    try:
        scraped = await services.scraper.scrape(caller, options, answer_first=True)
    except DeadlineExceeded as error:
        queued = error.waited_for == "organisation"
        code = "CONCURRENCY_QUEUE_TIMEOUT" if queued else "SCRAPE_TIMEOUT"
        raise Refusal(408, error.message, code) from None
    except NotCached as error:
        code = "SCRAPE_LOCKDOWN_CACHE_MISS" if body.lockdown else "SCRAPE_NO_CACHED_DATA"
        raise Refusal(404, error.message, code) from None
    if scraped.code is ExitCode.ACTION_FAILED:
        raise _failed_action(scraped)
    if scraped.document is None:
        outcome = scraped.outcome
        raise Refusal(
            200 if scraped.code is ExitCode.DNS_FAILURE else max(outcome.http_status, 400),
            scraped.error or outcome.sentence,
            outcome.firecrawl_code or "SCRAPE_SITE_ERROR",
        )
    return scraped


def _failed_action(scraped: ScrapeResult) -> Refusal:
    """Return the contract's error, with what the actions before the failed one returned."""
    rendering = scraped.rendering
    reason = None if rendering is None else rendering.action_error
    error = f"Action(s) failed to complete. Error code: {reason or scraped.error}"
    details = None if rendering is None else {"actions": action_results(rendering.actions)}
    return Refusal(500, error, "SCRAPE_ACTION_ERROR", details)


async def build_document(
    services: Services, principal: Principal, body: ScrapeOptionsBody, scraped: ScrapeResult
) -> dict[str, Any]:
    """Build the document of a scrape's response."""
    page = scraped.document
    if page is None:
        raise NotFound("The scrape has no document.")
    facts = VisitFacts(
        url=scraped.final_url,
        source_url=str(getattr(body, "url", scraped.url)),
        # A cache hit has no job, and an id of its own all the same.
        scrape_id=str(scraped.job_id or new_uuid()),
        status=scraped.status,
        content_type=scraped.content_type,
        error=None if scraped.ok else scraped.error,
        cache=scraped.cache if body.max_age else None,
        cached_at=scraped.cached_at,
        max_pages=body.max_pages,
        waited_ms=round(scraped.waited * 1000) if scraped.waited_for == "organisation" else None,
    )
    redaction, used = await find_names(services.model, body, page)
    if redaction is not None:
        # Before a language model reads it, and before it becomes a snapshot.
        page = structs.replace(page, markdown=redaction.text(page.markdown))
        scraped = replace(scraped, document=page)
    out = document(page, body.names, facts, body=scraped.body)
    if scraped.rendering is not None:
        firecrawl_document.add_rendering(out, scraped.rendering)
    if scraped.attributes:
        out["attributes"] = [msgspec.to_builtins(values) for values in scraped.attributes]
    await _add_results(services, principal, body, scraped, out, used)
    add_warnings(out, [*body.warnings(), *names_warning(services.model, body)])
    return out if redaction is None else redact_document(out, redaction.value)


async def _add_results(
    services: Services,
    principal: Principal,
    body: ScrapeOptionsBody,
    scraped: ScrapeResult,
    out: dict[str, Any],
    used: int,
) -> None:
    """Add the language model's answers and the changes since the last scrape."""
    llm_requests = body.llm_requests()
    if llm_requests and scraped.document is not None:
        answers = await services.model.answer(llm_requests, scraped.document.markdown)
        firecrawl_document.add_llm_results(out, answers.values, answers.warnings)
        used += answers.usage.total
    change = body.the(ChangeTracking)
    if change is not None and scraped.document is not None:
        used += await _track_changes(services, principal, change, scraped, out)
    if used:
        async with services.results.database.tenant_tx(principal.organisation_id) as conn:
            await usage.add_tokens(conn, principal.organisation_id, principal.api_key_id, used)


async def _track_changes(
    services: Services,
    principal: Principal,
    change: ChangeTracking,
    scraped: ScrapeResult,
    out: dict[str, Any],
) -> int:
    """Add the changes since the last scrape; return the tokens used."""
    assert scraped.document is not None  # noqa: S101 (the caller looked)
    database = services.results.database
    new = change_tracking.take_snapshot(
        principal.organisation_id,
        scraped.url,
        scraped.document.markdown,
        scraped_at=datetime.now(UTC),
        tag=change.tag,
        status=scraped.status,
        extracted=out.get("json"),
        variant=scraped.variant,
    )
    async with database.tenant_tx(principal.organisation_id) as conn:
        tracked = await change_tracking.compare(conn, new, modes=change.modes)
    answers = Answers()
    llm_request = change.fields
    if llm_request is not None:
        tracked, new, answers = await change_tracking.read_fields(
            services.model, llm_request, tracked, new
        )
        firecrawl_document.add_llm_results(out, {}, answers.warnings)
    async with database.tenant_tx(principal.organisation_id) as conn:
        await change_tracking.store_snapshots(conn, [new])
    out["changeTracking"] = tracked.as_json()
    return answers.usage.total
