"""POST /v2/search: the web through a SearXNG, else our own index; on request with the pages scraped."""

import asyncio
from typing import Annotated, Any, Final, Literal, Self, cast, get_args

from fastapi import APIRouter, Response
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import scrape
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.redaction_option import require_names
from trapline.api.firecrawl.requests.base_models import Origin, Wire, wrong
from trapline.api.firecrawl.requests.formats import Formats
from trapline.api.firecrawl.requests.scrape_options import (
    NEEDS_MODEL,
    ScrapeOptionsBody,
    ignored_options,
)
from trapline.api.firecrawl.response_models import Done, responses
from trapline.api.firecrawl.scrape import ScrapeBody
from trapline.api.principal import Writer
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.errors import TraplineError
from trapline.model import new_uuid
from trapline.pipeline.scrape.web_search import Hit, SearchSource, WebQuery

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

_AT_ONCE: Final = 5
_SOURCES: Final = frozenset(get_args(SearchSource))
_HOSTS: Final[dict[str, tuple[str, ...]]] = {
    "github": ("github.com",),
    "research": ("arxiv.org", "nature.com", "ieee.org", "pubmed.ncbi.nlm.nih.gov"),
}


class SourceBody(Wire):
    """Where to search. A source of a newer client is ignored, with a warning."""

    model_config = ConfigDict(extra="ignore")

    type: Annotated[str, Field(min_length=1, max_length=100)]
    tbs: str | None = None
    filter: str | None = None
    lang: str | None = None
    country: str | None = None
    location: str | None = None


class CategoryBody(Wire):
    """What to search for."""

    type: Literal["github", "research", "pdf", "developer", "gov"]


def _objects(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{"type": item} if isinstance(item, str) else item for item in value]


class SearchScrapeOptions(ScrapeOptionsBody):
    """Scrape options of a search: without a format, nothing is scraped."""

    formats: Formats = []


class SearchBody(Origin):
    """POST /v2/search. Fields of newer clients are ignored, with a warning that names them."""

    model_config = ConfigDict(extra="allow")

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    sources: Annotated[list[SourceBody], BeforeValidator(_objects), Field(max_length=10)] = [
        SourceBody(type="web")
    ]
    categories: Annotated[list[CategoryBody], BeforeValidator(_objects), Field(max_length=5)] = []
    include_domains: Annotated[list[str], Field(max_length=100)] = []
    exclude_domains: Annotated[list[str], Field(max_length=100)] = []
    tbs: str | None = None
    filter: str | None = None
    lang: str = "en"
    country: str | None = None
    location: str | None = None
    safe: Any = None
    timeout: Annotated[int, Field(ge=1000, le=600_000)] = 60_000
    ignore_invalid_urls: Annotated[bool, Field(alias="ignoreInvalidURLs")] = False
    async_scraping: bool = False
    highlights: Any = None
    enterprise: Any = None
    scrape_options: SearchScrapeOptions = SearchScrapeOptions()
    threat_protection: Any = None
    domain_tools: Any = None
    tool_detail: Any = None
    zero_data_retention: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.include_domains and self.exclude_domains:
            raise wrong("includeDomains and excludeDomains exclude each other.")
        kinds = [category.type for category in self.categories]
        if "developer" in kinds and len(kinds) > 1:
            raise wrong("The category developer cannot be combined with others.")
        return self

    @property
    def known_sources(self) -> list[SearchSource]:
        """The sources that this server has; the web where the request names no other."""
        known = [source.type for source in self.sources if source.type in _SOURCES]
        return [cast("SearchSource", name) for name in known] or ["web"]

    def warnings(self) -> list[str]:
        """Return a sentence for each option that is accepted and has no effect here."""
        unknown = [f"sources.{s.type}" for s in self.sources if s.type not in _SOURCES]
        ignored = {
            **dict.fromkeys([*unknown, *sorted(self.model_extra or {})], True),
            "filter": self.filter is not None,
            "country": self.country is not None,
            "location": self.location is not None,
            "safe": self.safe is not None,
            "ignoreInvalidURLs": self.ignore_invalid_urls,
            "asyncScraping": self.async_scraping,
            "highlights": bool(self.highlights),
            "enterprise": bool(self.enterprise),
            "threatProtection": self.threat_protection is not None,
            "domainTools": bool(self.domain_tools),
            "toolDetail": self.tool_detail is not None,
        }
        return ignored_options(ignored)

    def web_query(self, source: SearchSource) -> WebQuery:
        """Return the query for one of the sources."""
        kinds = [category.type for category in self.categories]
        own = next((body for body in self.sources if body.type == source), None)
        return WebQuery(
            words=self.query,
            source=source,
            most=self.limit,
            language=(own and own.lang) or self.lang,
            time=(own and own.tbs) or self.tbs,
            seconds=self.timeout / 1000,
            hosts=(*self.include_domains, *(h for k in kinds for h in _HOSTS.get(k, ()))),
            not_hosts=tuple(self.exclude_domains),
            types=("pdf",) if "pdf" in kinds else (),
        )


@router.post("/v2/search", response_model=Done)
async def search(body: SearchBody, principal: Writer, services: CurrentServices) -> Response:
    """Search the web, or our own index; with formats, scrape the results."""
    scrape_options = body.scrape_options
    if scrape_options.formats:
        # Refused as a scrape would be, before anything is searched.
        scrape_options.scrape_options()
        services.model.require(scrape_options.all_llm_requests(), NEEDS_MODEL)
        require_names(services.model, scrape_options)
    try:
        async with asyncio.timeout(body.timeout / 1000):
            data = {
                source: await _search_source(services, principal, body, source)
                for source in body.known_sources
            }
    except TimeoutError:
        raise Refusal(408, "The search was not done in its time.", "SEARCH_TIMEOUT") from None
    used = sum(map(len, data.values()))
    warning = " ".join(filter(None, (services.web_search.warning, *body.warnings()))) or None
    return answer(
        200, success=True, data=data, creditsUsed=used, id=str(new_uuid()), warning=warning
    )


async def _search_source(
    services: Services, principal: Principal, body: SearchBody, source: SearchSource
) -> list[dict[str, Any]]:
    hits = await services.web_search.search(principal.organisation_id, body.web_query(source))
    results = [result_of(hit, source, number) for number, hit in enumerate(hits, 1)]
    if body.scrape_options.formats and source != "images":
        limit = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(
            *(_scrape_result(services, principal, body, item, limit) for item in results)
        )
    return results


def result_of(hit: Hit, source: SearchSource, position: int) -> dict[str, Any]:
    """Build a result in Firecrawl's form."""
    if source == "images":
        out: dict[str, Any] = {"title": hit.title, "imageUrl": hit.img_src, "url": hit.url}
        width, _, height = (hit.resolution or "").replace("\u00d7", "x").partition("x")
        if width.strip().isdigit() and height.strip().isdigit():
            out |= {"imageWidth": int(width), "imageHeight": int(height)}
    elif source == "news":
        out = {"title": hit.title, "url": hit.url, "snippet": hit.content or ""}
        out |= {"date": hit.publishedDate, "imageUrl": hit.img_src or hit.thumbnail_src}
    else:
        out = {"url": hit.url, "title": hit.title, "description": hit.content or ""}
    out["position"] = position
    return {name: value for name, value in out.items() if value is not None}


async def _scrape_result(
    services: Services,
    principal: Principal,
    body: SearchBody,
    item: dict[str, Any],
    limit: asyncio.Semaphore,
) -> None:
    """Add the scraped page to a result; if the page fails, leave the result as it is."""
    options = body.scrape_options.model_dump(by_alias=True, exclude_unset=True)
    options |= {"url": item["url"], "zeroDataRetention": body.zero_data_retention}
    request = ScrapeBody.model_validate(options)
    async with limit:
        try:
            scraped = await scrape.visit(services, scrape.caller(principal, request), request)
            page = await scrape.build_document(services, principal, request, scraped)
        except TraplineError as error:
            item["metadata"] = {"sourceURL": item["url"], "error": error.message}
            return
    # Clients take a result with content for a document, and read these from its metadata alone.
    for name in ("title", "description"):
        page["metadata"].setdefault(name, item.get(name, ""))
    item |= page
