"""POST /v2/extract: structured data from some pages, by a schema or a prompt, through a language model."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Response
from pydantic import Field, model_validator

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import crawl
from trapline.api.firecrawl.batch import split_urls
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.job_ids import JobReference
from trapline.api.firecrawl.requests.base_models import JsonSchema, Origin, Prompt, wrong
from trapline.api.firecrawl.requests.crawl_request import WebhookField
from trapline.api.firecrawl.requests.scrape_options import (
    ScrapeOptionsBody,
    for_job,
    ignored_options,
)
from trapline.api.firecrawl.response_models import Done, responses
from trapline.api.principal import Reader, Tenant, Writer
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.deliver import subscriptions
from trapline.deliver.firecrawl_document import iso_time
from trapline.model import JobId
from trapline.pipeline.kinds import EXTRACT
from trapline.pipeline.options import LlmRequest
from trapline.pipeline.scrape import llm_extract

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

_STATUSES: Final = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}


class ExtractBody(Origin):
    """POST /v2/extract."""

    urls: Annotated[list[str], Field(max_length=10)] = []
    prompt: Prompt | None = None
    system_prompt: Annotated[str | None, Field(max_length=10_000)] = None
    json_schema: Annotated[JsonSchema | None, Field(alias="schema")] = None
    limit: Annotated[int | None, Field(ge=1)] = None
    ignore_sitemap: bool = False
    include_subdomains: bool = True
    allow_external_links: bool = False
    enable_web_search: bool = False
    show_sources: bool = False
    ignore_invalid_urls: Annotated[bool, Field(alias="ignoreInvalidURLs")] = True
    scrape_options: ScrapeOptionsBody = ScrapeOptionsBody()
    timeout: Annotated[int | None, Field(ge=1000)] = None
    agent: Any = None
    webhook: WebhookField | None = None
    url_trace: bool = False
    zero_data_retention: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.urls and self.prompt is None:
            raise wrong("urls or a prompt is needed.")
        return self

    def refuse(self) -> None:
        """Refuse what an extraction would have to ignore to the caller's harm."""
        if self.zero_data_retention or self.scrape_options.redact_pii:
            raise Refusal(
                400, "zeroDataRetention and redactPII are not for extractions.", "BAD_REQUEST"
            )

    def warnings(self) -> list[str]:
        """Return a sentence for each option that is accepted and has no effect here."""
        ignored = {
            "limit": self.limit is not None,
            "ignoreSitemap": self.ignore_sitemap,
            "includeSubdomains": not self.include_subdomains,
            "allowExternalLinks": self.allow_external_links,
            "timeout": self.timeout is not None,
            "agent": self.agent is not None,
            "urlTrace": self.url_trace,
        }
        return [*ignored_options(ignored), *self.scrape_options.warnings()]

    def llm_request(self) -> LlmRequest:
        prompt = " ".join(filter(None, (self.system_prompt, self.prompt)))
        return LlmRequest("json", prompt or None, self.json_schema)


@router.post("/v2/extract", response_model=Done)
async def start(body: ExtractBody, principal: Writer, services: CurrentServices) -> Response:
    """Start an extraction."""
    job_id, bad = await submit_job(services, principal, body)
    invalid = bad if body.ignore_invalid_urls else None
    warning = " ".join(body.warnings()) or None
    return answer(
        200, success=True, id=str(job_id), urlTrace=[], invalidURLs=invalid, warning=warning
    )


async def submit_job(
    services: Services, principal: Principal, body: ExtractBody
) -> tuple[JobId, list[str]]:
    body.refuse()
    if body.enable_web_search or not body.urls:
        raise Refusal(
            400, "Extraction without urls needs a web index; name the urls.", "BAD_REQUEST"
        )
    options = for_job(body.scrape_options.scrape_options())
    good, bad = split_urls([url.removesuffix("/*") for url in body.urls])
    if bad and not body.ignore_invalid_urls:
        raise Refusal(400, f"Not valid URLs: {', '.join(bad)}", "BAD_REQUEST")
    if not good:
        raise Refusal(400, "No valid URLs were given.", "BAD_REQUEST")
    services.model.require([body.llm_request()], "Extraction")
    details = {"showSources": body.show_sources, "version": "v2"}
    metadata = crawl.job_metadata(principal, details, body.origin)
    async with services.results.database.tenant_tx(principal.organisation_id) as conn:
        job_id = await llm_extract.submit(
            conn,
            principal.organisation_id,
            good,
            body.llm_request(),
            options,
            metadata=metadata,
        )
        if body.webhook is not None:
            await subscriptions.subscribe(
                conn, principal.organisation_id, job_id, EXTRACT, body.webhook.webhook()
            )
    services.notifier.notify(ready=True)
    return job_id, bad


@router.get("/v2/extract/{job_id}", response_model=Done)
async def status(job_id: JobReference, principal: Reader, conn: Tenant) -> Response:
    """Return the progress of an extraction, and its data."""
    del principal
    job = await crawl.find_job(conn, job_id, EXTRACT)
    result = await llm_extract.result(conn, job)
    body: dict[str, Any] = {
        "status": _STATUSES.get(job.status, "processing"),
        "data": [] if result is None or result.data is None else result.data,
        "expiresAt": iso_time(job.expires_at or datetime.now(UTC) + job.ttl),
        "error": None if result is None else result.error,
        "tokensUsed": None if result is None else result.tokens,
    }
    if result is not None and job.metadata.get("firecrawl", {}).get("showSources"):
        body["sources"] = result.sources
    return answer(200, success=True, **body)
