"""POST /v2/map: the URLs of a site, without a visit to each."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from trapline.api.access import Writer
from trapline.api.engine import CurrentEngine, Engine
from trapline.api.firecrawl import crawl
from trapline.api.firecrawl.answers import Done, responses
from trapline.api.firecrawl.crawl_request import Patterns
from trapline.api.firecrawl.fields import Address, Headers, Origin
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.scrape_options import Location
from trapline.db.tenancy import Principal
from trapline.errors import TookTooLong
from trapline.pipeline.asking import Asker
from trapline.pipeline.mapping import Mapped
from trapline.pipeline.options import MapOptions
from trapline.pipeline.site_urls import MappedLink

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())


class MapBody(Origin):
    """POST /v2/map."""

    url: Address
    search: Annotated[str | None, Field(max_length=1000)] = None
    sitemap: Literal["only", "include", "skip"] = "include"
    include_subdomains: bool = True
    ignore_query_parameters: bool = True
    limit: Annotated[int, Field(ge=1, le=100_000)] = 5000
    timeout: Annotated[int | None, Field(ge=1000, le=3_600_000)] = None
    location: Location | None = None
    headers: Headers = {}
    filter_by_path: bool = True
    use_index: bool = True
    ignore_cache: bool = False
    include_paths: Patterns = []
    exclude_paths: Patterns = []
    allow_external_links: bool = False
    use_mock: str | None = None
    threat_protection: Any = None
    audit_metadata: Any = None

    def map_options(self) -> MapOptions:
        scrape: dict[str, Any] = {"headers": self.headers}
        if self.timeout is not None:
            scrape["timeout"] = self.timeout / 1000
        if self.location is not None:
            scrape["languages"] = self.location.languages
            scrape["country"] = self.location.country
        return MapOptions.parse(
            url=self.url,
            search=self.search,
            limit=self.limit,
            sitemap=self.sitemap,
            subdomains=self.include_subdomains,
            external_links=self.allow_external_links,
            ignore_query=self.ignore_query_parameters,
            same_section=self.filter_by_path,
            use_known=self.use_index and not self.ignore_cache,
            include=tuple(self.include_paths),
            exclude=tuple(self.exclude_paths),
            scrape=scrape,
        )


@router.post("/v2/map", response_model=Done)
async def map_site(body: MapBody, who: Writer, parts: CurrentEngine) -> Response:
    """List the URLs of a site."""
    found = await mapped(parts, who, body)
    links = [_link(link) for link in found.links]
    return answer(200, success=True, id=str(found.job_id), links=links, warning=found.warning)


async def mapped(parts: Engine, who: Principal, body: MapBody) -> Mapped:
    """Map a site in its time."""
    metadata = crawl.described(who, {"version": "v2"}, body.origin)
    try:
        return await parts.mapper.map(
            Asker(who.organisation_id, metadata=metadata), body.map_options()
        )
    except TookTooLong as error:
        raise Refusal(408, error.message, "MAP_TIMEOUT") from None


def _link(link: MappedLink) -> dict[str, str]:
    said = {"url": link.url, "title": link.title, "description": link.description}
    return {name: value for name, value in said.items() if value}
