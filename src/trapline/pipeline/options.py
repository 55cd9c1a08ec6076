"""What a crawl is asked to do. Stored with its job, so that every worker reads the same."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trapline.errors import InvalidInput, VisitFailed
from trapline.extract.selectors import check_selector
from trapline.frontier.patterns import Patterns
from trapline.frontier.scope import Scope, ScopeRules
from trapline.frontier.url import Query, typed_url
from trapline.model import SiteId

DEFAULT_LIMIT = 10_000


class CrawlOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`url` is canonical. The names are ours; the edges translate theirs."""

    url: str
    site_id: SiteId | None = None
    limit: Annotated[int, Meta(ge=1, le=10**9)] = DEFAULT_LIMIT
    max_depth: Annotated[int, Meta(ge=0)] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    regex_on_full_url: bool = False
    entire_domain: bool = False
    subdomains: bool = False
    external_links: bool = False
    ignore_query: bool = False
    similar_urls_once: bool = True
    sitemap: Literal["include", "skip", "only"] = "include"
    follow_nofollow: bool = True
    follow_hidden: bool = True
    ignore_robots: bool = False
    robots_user_agent: str | None = None
    delay: Annotated[float, Meta(ge=0, le=60)] | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=1000)] | None = None
    # Ask for every page again, whether or not the server says that it changed.
    force: bool = False
    headers: dict[str, str] = {}
    proxy: str | None = None
    verify_tls: bool = True
    mobile: bool = False
    language: str | None = None
    # Further hosts that belong to the site; a subdomain of one does too.
    allowed_domains: tuple[str, ...] = ()
    # What is no part of a page's content, and lines whose change is none.
    ignore_selectors: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    ignore_patterns: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    index: bool = False

    @classmethod
    def parse(cls, **values: Any) -> "CrawlOptions":
        """Check what a person or a program asks for; InvalidInput says what is wrong."""
        given = {name: value for name, value in values.items() if value is not None}
        try:
            options = msgspec.convert(given | {"url": typed_url(given.get("url", ""))}, cls)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error)) from None
        except VisitFailed as error:
            raise InvalidInput(error.message) from None
        Scope(options.scope_rules())
        options.noise()
        for selector in options.ignore_selectors:
            check_selector(selector)
        return options

    def noise(self) -> Patterns:
        return Patterns(self.ignore_patterns)

    def scope_rules(self) -> ScopeRules:
        return ScopeRules(
            seed=self.url,
            include=self.include,
            exclude=self.exclude,
            on_full_url=self.regex_on_full_url,
            max_depth=self.max_depth,
            entire_domain=self.entire_domain,
            subdomains=self.subdomains,
            external=self.external_links,
            domains=self.allowed_domains,
            follow_nofollow=self.follow_nofollow,
            follow_hidden=self.follow_hidden,
        )

    @property
    def query(self) -> Query:
        return Query.DROP if self.ignore_query else Query.KEEP
