"""POST /v2/map: the URLs of a site, without fetching each."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl import crawl
from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.requests.base_models import Address, Headers, Origin
from trapline.api.firecrawl.requests.crawl_request import Patterns
from trapline.api.firecrawl.requests.scrape_options import Location, ignored_options
from trapline.api.firecrawl.response_models import Done, responses
from trapline.api.principal import Writer
from trapline.api.services import Services
from trapline.db.tenancy import Principal
from trapline.errors import DeadlineExceeded
from trapline.pipeline.caller import Caller
from trapline.pipeline.crawl.url_discovery import MappedLink
from trapline.pipeline.options import MapOptions
from trapline.pipeline.scrape.mapper import MapResult

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())


class MapBody(Origin):
    """POST /v2/map."""

    url: Address
    search: Annotated[str | None, Field(max_length=1000)] = None
    sitemap: Literal["only", "include", "skip"] = "include"
    include_subdomains: bool = True
    ignore_query_parameters: bool = True
    limit: Annotated[int, Field(ge=1, le=100_000)] = 5000
    timeout: Annotated[int | None, Field(ge=1, le=3_600_000)] = None
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

    def warnings(self) -> list[str]:
        """Return a sentence for the options that are accepted and have no effect here."""
        return ignored_options(
            {
                "useMock": self.use_mock is not None,
                "threatProtection": self.threat_protection is not None,
                "auditMetadata": self.audit_metadata is not None,
            }
        )

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
async def map_site(body: MapBody, principal: Writer, services: CurrentServices) -> Response:
    """List the URLs of a site."""
    result = await map_for(services, principal, body)
    links = [_link(link) for link in result.links]
    warning = " ".join(filter(None, (result.warning, *body.warnings()))) or None
    return answer(200, success=True, id=str(result.job_id), links=links, warning=warning)


async def map_for(services: Services, principal: Principal, body: MapBody) -> MapResult:
    """Map a site within the timeout."""
    metadata = crawl.job_metadata(principal, {"version": "v2"}, body.origin)
    try:
        return await services.mapper.map(
            Caller(principal.organisation_id, metadata=metadata), body.map_options()
        )
    except DeadlineExceeded as error:
        raise Refusal(408, error.message, "MAP_TIMEOUT") from None


def _link(link: MappedLink) -> dict[str, str]:
    fields = {"url": link.url, "title": link.title, "description": link.description}
    return {name: value for name, value in fields.items() if value}
