"""Crawl and batch requests, and their translation to pipeline options."""

from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field

from trapline.api.firecrawl.requests.base_models import (
    LONGEST_PROMPT,
    Address,
    Headers,
    Origin,
    Wire,
    wrong,
)
from trapline.api.firecrawl.requests.scrape_options import ScrapeOptionsBody, for_job
from trapline.deliver.subscriptions import Webhook
from trapline.pipeline.options import CrawlOptions, ScrapeOptions, VisitOptions

EVENTS: Final = frozenset({"started", "page", "completed", "failed", "cancelled"})
_UUID: Final = r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"


def _event(value: str) -> str:
    if value.rpartition(".")[2] not in EVENTS:
        raise wrong(f"{value!r} is not an event of webhooks; they are {', '.join(sorted(EVENTS))}.")
    return value


class WebhookBody(Wire):
    """The webhook of a job."""

    url: Address
    headers: Headers = {}
    metadata: Annotated[dict[str, str], Field(max_length=200)] = {}
    events: Annotated[list[Annotated[str, AfterValidator(_event)]], Field(max_length=50)] = []

    def webhook(self) -> Webhook:
        return Webhook(self.url, self.headers, self.metadata, self.events)


WebhookField = Annotated[
    WebhookBody, BeforeValidator(lambda v: {"url": v} if isinstance(v, str) else v)
]
Concurrency = Annotated[int, Field(ge=1, le=100_000)]
Patterns = Annotated[list[Annotated[str, Field(max_length=2000)]], Field(max_length=1000)]


class CrawlBody(Origin):
    """POST /v2/crawl."""

    url: Address
    prompt: Annotated[str | None, Field(max_length=LONGEST_PROMPT)] = None
    include_paths: Patterns = []
    exclude_paths: Patterns = []
    max_discovery_depth: Annotated[int | None, Field(ge=0, le=10**6)] = None
    limit: Annotated[int, Field(ge=1, le=10**9)] = 10_000
    crawl_entire_domain: bool | None = None
    allow_external_links: bool = False
    allow_subdomains: bool = False
    ignore_robots_txt: bool = False
    robots_user_agent: Annotated[str | None, Field(max_length=500)] = None
    ignore_query_parameters: bool = False
    regex_on_full_url: Annotated[bool, Field(alias="regexOnFullURL")] = False
    sitemap: Literal["skip", "include", "only"] = "include"
    deduplicate_similar_urls: Annotated[bool, Field(alias="deduplicateSimilarURLs")] = True
    delay: Annotated[float | None, Field(gt=0, le=60)] = None
    max_concurrency: Concurrency | None = None
    scrape_options: ScrapeOptionsBody = ScrapeOptionsBody()
    webhook: WebhookField | None = None
    zero_data_retention: bool = False

    def crawl_options(self) -> CrawlOptions:
        """Translate the request; refuse an invalid regular expression."""
        scrape = self.scrape_options.scrape_options(zero_data_retention=self.zero_data_retention)
        return CrawlOptions.parse(
            url=self.url,
            include=tuple(self.include_paths),
            exclude=tuple(self.exclude_paths),
            max_depth=self.max_discovery_depth,
            limit=self.limit,
            entire_domain=self.crawl_entire_domain,
            external_links=self.allow_external_links,
            subdomains=self.allow_subdomains,
            ignore_robots=self.ignore_robots_txt,
            robots_user_agent=self.robots_user_agent,
            ignore_query=self.ignore_query_parameters,
            regex_on_full_url=self.regex_on_full_url,
            sitemap=self.sitemap,
            similar_urls_once=self.deduplicate_similar_urls,
            delay=self.delay,
            max_concurrency=_bounded(self.max_concurrency),
            scrape=_kept(scrape),
        )

    def described(self) -> dict[str, Any]:
        """Return the crawl's options as the list of crawls shows them."""
        return self.model_dump(
            mode="json",
            by_alias=True,
            exclude={"url", "webhook", "origin", "integration", "zero_data_retention"},
            exclude_none=True,
        )


class BatchBody(ScrapeOptionsBody):
    """POST /v2/batch/scrape."""

    urls: Annotated[list[str], Field(min_length=1, max_length=100_000)]
    webhook: WebhookField | None = None
    append_to_id: Annotated[str | None, Field(pattern=_UUID)] = None
    ignore_invalid_urls: Annotated[bool, Field(alias="ignoreInvalidURLs")] = True
    max_concurrency: Concurrency | None = None
    zero_data_retention: bool = False
    origin: Annotated[str | None, Field(max_length=500)] = None
    integration: Annotated[str | None, Field(max_length=500)] = None

    def visit_options(self) -> VisitOptions:
        return VisitOptions.parse(
            max_concurrency=_bounded(self.max_concurrency),
            scrape=_kept(self.scrape_options(zero_data_retention=self.zero_data_retention)),
        )


def _bounded(concurrency: int | None) -> int | None:
    """Lower a limit to the most that one job may have."""
    return None if concurrency is None else min(concurrency, 1000)


def _kept(scrape: ScrapeOptions) -> dict[str, Any]:
    """Force the pages of a job to be stored: it returns them from there."""
    return {**msgspec.to_builtins(for_job(scrape)), "store": True}
