"""POST /v2/search: the web, by a SearXNG, or what was indexed; with the pages, where that is asked."""

import asyncio
from typing import Annotated, Any, Final, Literal, Self

from fastapi import APIRouter, Response
from pydantic import BeforeValidator, Field, model_validator

from trapline.api.access import Writer
from trapline.api.engine import CurrentEngine, Engine
from trapline.api.firecrawl import scrape
from trapline.api.firecrawl.answers import Done, responses
from trapline.api.firecrawl.fields import Origin, Wire, wrong
from trapline.api.firecrawl.formats import Formats
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.scrape import ScrapeBody
from trapline.api.firecrawl.scrape_options import ScrapeOptionsBody
from trapline.db.tenancy import Principal
from trapline.errors import TraplineError
from trapline.model import new_uuid
from trapline.pipeline.searching import Hit, Source, WebQuery

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

_AT_ONCE: Final = 5
_HOSTS: Final[dict[str, tuple[str, ...]]] = {
    "github": ("github.com",),
    "research": ("arxiv.org", "nature.com", "ieee.org", "pubmed.ncbi.nlm.nih.gov"),
}


class SourceBody(Wire):
    """Where to search."""

    type: Literal["web", "images", "news"]
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
    """Scrape options of a search: nothing is scraped unless a format is asked for."""

    formats: Formats = []


class SearchBody(Origin):
    """POST /v2/search."""

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    sources: Annotated[list[SourceBody], BeforeValidator(_objects), Field(max_length=3)] = [
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

    def asked(self, source: SourceBody) -> WebQuery:
        """Return what is to be searched for in one of the places."""
        kinds = [category.type for category in self.categories]
        return WebQuery(
            words=self.query,
            source=source.type,
            most=self.limit,
            language=source.lang or self.lang,
            time=source.tbs or self.tbs,
            seconds=self.timeout / 1000,
            hosts=(*self.include_domains, *(h for k in kinds for h in _HOSTS.get(k, ()))),
            not_hosts=tuple(self.exclude_domains),
            types=("pdf",) if "pdf" in kinds else (),
        )


@router.post("/v2/search", response_model=Done)
async def search(body: SearchBody, who: Writer, parts: CurrentEngine) -> Response:
    """Search the web, or the own index; scrape what is found, where formats are asked for."""
    try:
        async with asyncio.timeout(body.timeout / 1000):
            data = {
                source.type: await _searched(parts, who, body, source) for source in body.sources
            }
    except TimeoutError:
        raise Refusal(408, "The search was not done in its time.", "SEARCH_TIMEOUT") from None
    used = sum(map(len, data.values()))
    more: dict[str, Any] = (
        {} if parts.searching.warning is None else {"warning": parts.searching.warning}
    )
    return answer(200, success=True, data=data, creditsUsed=used, id=str(new_uuid()), **more)


async def _searched(
    parts: Engine, who: Principal, body: SearchBody, source: SourceBody
) -> list[dict[str, Any]]:
    hits = await parts.searching.search(who.organisation_id, body.asked(source))
    found = [shown(hit, source.type, number) for number, hit in enumerate(hits, 1)]
    if body.scrape_options.formats and source.type != "images":
        limit = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(_scraped(parts, who, body, item, limit) for item in found))
    return found


def shown(hit: Hit, source: Source, position: int) -> dict[str, Any]:
    """Build a result as clients read it."""
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


async def _scraped(
    parts: Engine,
    who: Principal,
    body: SearchBody,
    item: dict[str, Any],
    limit: asyncio.Semaphore,
) -> None:
    """Add to a result what its page says; a page that cannot be had leaves it as it is."""
    given = body.scrape_options.model_dump(by_alias=True, exclude_unset=True)
    wanted = ScrapeBody.model_validate({**given, "url": item["url"]})
    async with limit:
        try:
            scraped = await scrape.visited(parts, scrape.asker(who, wanted), wanted)
            page = await scrape.wanted(parts, who, wanted, scraped)
        except TraplineError as error:
            item["metadata"] = {"sourceURL": item["url"], "error": error.message}
            return
    # Clients take a result with content for a document, and read these from its metadata alone.
    for name in ("title", "description"):
        page["metadata"].setdefault(name, item.get(name, ""))
    item |= page
