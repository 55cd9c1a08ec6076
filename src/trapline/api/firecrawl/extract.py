"""POST /v2/extract: data from some pages, by a schema or a prompt, through a language model."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Response
from pydantic import Field, model_validator

from trapline.api.access import Reader, Tenant, Writer
from trapline.api.engine import CurrentEngine, Engine
from trapline.api.firecrawl import crawl
from trapline.api.firecrawl.answers import Done, responses
from trapline.api.firecrawl.batch import told_apart
from trapline.api.firecrawl.crawl_request import WebhookField
from trapline.api.firecrawl.documents import moment
from trapline.api.firecrawl.fields import JsonSchema, Origin, Prompt, wrong
from trapline.api.firecrawl.identity import JobReference
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.scrape_options import ScrapeOptionsBody
from trapline.db.tenancy import Principal
from trapline.deliver import webhooks
from trapline.model import JobId
from trapline.pipeline import extracts
from trapline.pipeline.kinds import EXTRACT
from trapline.pipeline.options import Wish

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

_WORDS: Final = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}


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

    def wish(self) -> Wish:
        prompt = " ".join(filter(None, (self.system_prompt, self.prompt)))
        return Wish("json", prompt or None, self.json_schema)


@router.post("/v2/extract", response_model=Done)
async def start(body: ExtractBody, who: Writer, parts: CurrentEngine) -> Response:
    """Start an extraction."""
    job_id, bad = await started(parts, who, body)
    invalid = bad if body.ignore_invalid_urls else None
    return answer(200, success=True, id=str(job_id), urlTrace=[], invalidURLs=invalid)


async def started(parts: Engine, who: Principal, body: ExtractBody) -> tuple[JobId, list[str]]:
    parts.model.require([body.wish()], "Extraction")
    if body.enable_web_search or not body.urls:
        raise Refusal(
            400, "Extraction without urls needs a web index; name the urls.", "BAD_REQUEST"
        )
    good, bad = told_apart([url.removesuffix("/*") for url in body.urls])
    if bad and not body.ignore_invalid_urls:
        raise Refusal(400, f"Not valid URLs: {', '.join(bad)}", "BAD_REQUEST")
    if not good:
        raise Refusal(400, "No valid URLs were given.", "BAD_REQUEST")
    options = body.scrape_options.scrape_options()
    noted = {"showSources": body.show_sources, "version": "v2"}
    asked = crawl.described(who, noted, body.origin)
    async with parts.results.database.tenant_tx(who.organisation_id) as conn:
        job_id = await extracts.submit(
            conn,
            who.organisation_id,
            good,
            body.wish(),
            options,
            metadata=asked,
        )
        if body.webhook is not None:
            await webhooks.subscribe(
                conn, who.organisation_id, job_id, EXTRACT, body.webhook.webhook()
            )
    parts.bell.ring(ready=True)
    return job_id, bad


@router.get("/v2/extract/{job_id}", response_model=Done)
async def status(job_id: JobReference, who: Reader, conn: Tenant) -> Response:
    """Say how far an extraction is, and what it found."""
    del who
    job = await crawl.found(conn, job_id, EXTRACT)
    result = await extracts.result(conn, job)
    body: dict[str, Any] = {
        "status": _WORDS.get(job.status, "processing"),
        "data": [] if result is None or result.data is None else result.data,
        "expiresAt": moment(job.expires_at or datetime.now(UTC) + job.ttl),
        "error": None if result is None else result.error,
        "tokensUsed": None if result is None else result.tokens,
    }
    if result is not None and job.metadata.get("firecrawl", {}).get("showSources"):
        body["sources"] = result.sources
    return answer(200, success=True, **body)
