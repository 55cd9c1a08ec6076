"""Options of scrapes, crawls and maps, stored with the job so that every worker reads the same.

The names are ours; the APIs translate theirs. Times are seconds.
"""

import hashlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

import msgspec
from msgspec import Meta

from trapline.errors import InvalidInput, VisitFailed
from trapline.extract.html.selectors import check_selectors
from trapline.fetch.country_languages import languages_of
from trapline.frontier.canonical_url import Query, typed_url
from trapline.frontier.patterns import Patterns
from trapline.frontier.scope import Scope, ScopeRules
from trapline.model import ExtractOptions, Format, SiteId, SourceId
from trapline.rendering import Action, BrowserUse, Screenshot, Wait

DEFAULT_LIMIT = 10_000
DEFAULT_TIMEOUT: Final = 60.0
_MAX_WAIT: Final = 60.0
_STORED: Final = frozenset({Format.MARKDOWN, Format.LINKS})
_CANONICAL: Final = ExtractOptions(formats=_STORED)

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")

Seconds = Annotated[float, Meta(ge=0)]


class AttributeSelector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An attribute to read from all elements that match a CSS selector."""

    selector: Annotated[str, Meta(min_length=1)]
    attribute: Annotated[str, Meta(min_length=1)]


class LlmRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request to a language model about a page."""

    kind: Literal["json", "question", "summary"]
    prompt: str | None = None
    schema: dict[str, Any] | None = None


class Tracking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compare each page of a job with its last scrape under a tag."""

    tag: Annotated[str, Meta(max_length=200)] = ""
    diff: bool = False
    fields: LlmRequest | None = None
    """The fields that a language model reads of both, to report which changed."""


class ScrapeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to fetch one page, and the formats to return.

    The stored version does not depend on the formats: else other formats would be a change.
    """

    # What to answer with.
    formats: frozenset[Format] = frozenset({Format.MARKDOWN})
    only_main_content: bool = True
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    remove_base64_images: bool = True
    attributes: tuple[AttributeSelector, ...] = ()
    # Questions to a language model about the page; stored as `wishes`.
    llm_requests: tuple[LlmRequest, ...] = msgspec.field(default=(), name="wishes")
    # Compare with the version before.
    track_changes: bool = False
    # As clients of Firecrawl ask for it, in a job: by tag, whatever the version before is.
    tracking: Tracking | None = None
    # Also hand over the bytes as they came.
    with_body: bool = False
    # Files that are not HTML: read at all, and how many of their pages.
    read_files: bool = True
    max_pages: Annotated[int, Meta(ge=1, le=10_000)] | None = None

    # How to fetch.
    headers: dict[str, str] = {}
    timeout: Annotated[float, Meta(gt=0, le=3600)] | None = None
    mobile: bool = False
    languages: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9*-]{1,35}$")], ...] = ()
    country: Annotated[str, Meta(pattern=r"^[A-Za-z]{2}$")] | None = None
    proxy: str | None = None
    verify_tls: bool = True

    # Whether a browser shows the page, and what it does there.
    browser: BrowserUse = BrowserUse.AUTO
    wait: Annotated[float, Meta(ge=0, le=60)] = 0.0
    actions: Annotated[tuple[Action, ...], Meta(max_length=50)] = ()
    screenshot: Screenshot | None = None
    scroll_to_end: bool = False
    block_ads: bool = True

    # Whether an older answer will do, and what is kept of this one.
    max_age: Seconds | None = None
    # Only an older answer will do, and it must be at least so old.
    min_age: Seconds | None = None
    only_cached: bool = False
    store: bool = True
    zero_data_retention: bool = False

    @property
    def extraction(self) -> ExtractOptions:
        """The extraction that the caller requests."""
        return ExtractOptions(
            formats=self.formats,
            only_main_content=self.only_main_content,
            include_tags=self.include_tags,
            exclude_tags=self.exclude_tags,
            remove_base64_images=self.remove_base64_images,
            max_pages=self.max_pages,
        )

    @property
    def stored_extraction(self) -> ExtractOptions:
        """What is stored of the page; with what the caller wants, where one reading gives both."""
        return replace(_CANONICAL, formats=self.formats | _STORED if self.canonical else _STORED)

    @property
    def canonical(self) -> bool:
        """Whether the caller requests the content as it is stored, in whatever format."""
        whole = self.include_tags or self.exclude_tags or self.max_pages is not None
        return self.only_main_content and self.remove_base64_images and not whole

    @property
    def as_stored(self) -> bool:
        """Whether a stored version suffices, without its bytes."""
        more = self.attributes or self.with_body or not self.read_files or self.has_results
        return self.canonical and self.formats <= _STORED and not more

    @property
    def reads_cache(self) -> bool:
        """Whether a stored answer will do. Never one to own headers: they may say who asks."""
        fresh = self.headers or self.has_results
        return not fresh and bool(self.max_age or self.needs_cache)

    @property
    def has_results(self) -> bool:
        """Whether the browser returns more than the page: a stored version has none of it."""
        return bool(self.actions) or self.screenshot is not None

    @property
    def browser_reason(self) -> str | None:
        """Why a browser has to show the page, whatever it is like; None if HTTP may do."""
        reasons = {
            "requested": self.browser is BrowserUse.ALWAYS,
            "actions": bool(self.actions),
            "screenshot": self.screenshot is not None,
            "wait": self.wait > 0,
            "scroll to the end": self.scroll_to_end,
        }
        return next((reason for reason, applies in reasons.items() if applies), None)

    @property
    def needs_cache(self) -> bool:
        """Whether only a stored answer will do."""
        return self.only_cached or self.min_age is not None

    @property
    def accept_language(self) -> str | None:
        """The Accept-Language header, best language first; without languages, those of the country."""
        languages = self.languages or languages_of(self.country)
        parts = [f"{language};q={1 - n / 10:.1f}" for n, language in enumerate(languages[:9])]
        return ",".join(parts) or None

    def check(self) -> None:
        """Refuse what the types cannot: invalid selectors and headers."""
        check_selectors(
            (*self.include_tags, *self.exclude_tags, *(a.selector for a in self.attributes))
        )
        self._check_browser()
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise InvalidInput(f"{name!r} is not a header that can be sent.")

    def _check_browser(self) -> None:
        reason = self.browser_reason
        if self.browser is BrowserUse.NEVER and reason is not None:
            raise InvalidInput(f"{reason} needs a browser, which the request rules out.")
        waits = [action for action in self.actions if isinstance(action, Wait)]
        if any((wait.milliseconds is None) == (wait.selector is None) for wait in waits):
            raise InvalidInput(
                "Either 'milliseconds' or 'selector' must be provided, but not both."
            )
        seconds = self.wait + sum((wait.milliseconds or 1000) / 1000 for wait in waits)
        if seconds > _MAX_WAIT:
            raise InvalidInput("Total wait time (waitFor + wait actions) cannot exceed 60 seconds")


@lru_cache(maxsize=256)
def _patterns(sources: tuple[str, ...]) -> Patterns:
    # Most jobs have no patterns; they share one object.
    return Patterns(sources)


class VisitOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of all jobs that visit pages: scrape, batch, crawl, map."""

    site_id: SiteId | None = None
    ignore_robots: bool = False
    robots_user_agent: str | None = None
    delay: Annotated[float, Meta(ge=0, le=60)] | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=1000)] | None = None
    # Ask for every page again, whether or not the server says that it changed.
    force: bool = False
    # Leave pages alone that are not due yet by how often they change.
    only_due: bool = False
    # Whether pages that ask not to be indexed become versions.
    store_noindex: bool = True
    # What is no part of a page's content, and lines whose change is none.
    ignore_selectors: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    ignore_patterns: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    # Make what is found searchable: in a source of its own, or in that of the page's site.
    index: bool = False
    source_id: SourceId | None = None
    scrape: ScrapeOptions = ScrapeOptions()

    @classmethod
    def parse(cls, **values: Any) -> Self:
        """Parse and check options; InvalidInput says what is wrong."""
        given = {name: value for name, value in values.items() if value is not None}
        try:
            if "url" in cls.__struct_fields__:
                given["url"] = typed_url(given.get("url", ""))
            options = msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise InvalidInput(str(error)) from None
        except VisitFailed as error:
            raise InvalidInput(error.message) from None
        options.check()
        return options

    def check(self) -> None:
        """Refuse what the types cannot."""
        self.scrape.check()
        check_selectors(self.ignore_selectors)
        self.noise()

    def noise(self) -> Patterns:
        return _patterns(self.ignore_patterns)

    @property
    def variant(self) -> bytes:
        """The cache key beside the URL: a hash of all that shapes what is stored of a page.

        Empty for a plain request. A new option that shapes the fetch or the stored text belongs here.
        """
        key = _variant_key(self)
        if key == _PLAIN:
            return b""
        return hashlib.sha256(msgspec.json.encode(key)).digest()[:16]

    @property
    def stored_extraction(self) -> ExtractOptions:
        """The extraction of the stored version."""
        return replace(self.scrape.stored_extraction, exclude_tags=self.ignore_selectors)


def _variant_key(options: VisitOptions) -> tuple[object, ...]:
    scrape = options.scrape
    # Only where a browser is requested: the keys of stored pages must stay what they are.
    rendered = (
        ()
        if scrape.browser_reason is None
        else (
            "browser",
            scrape.wait,
            scrape.scroll_to_end,
            scrape.block_ads,
            msgspec.to_builtins(scrape.actions),
            msgspec.to_builtins(scrape.screenshot),
        )
    )
    return (
        sorted((name.lower(), value) for name, value in scrape.headers.items()),
        scrape.mobile,
        scrape.accept_language,
        scrape.proxy,
        scrape.verify_tls,
        sorted(set(options.ignore_selectors)),
        *rendered,
    )


_PLAIN: Final = _variant_key(VisitOptions())
# Most scrapes over Firecrawl's API, whose default this is.
_UNVERIFIED: Final = VisitOptions(scrape=ScrapeOptions(verify_tls=False)).variant


class PageOptions(VisitOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scrape: one page. `url` is canonical."""

    url: str


class CrawlOptions(VisitOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A crawl: every page in scope that links and sitemaps lead to. `url` is canonical."""

    url: str
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
    # Further hosts that belong to the site; a subdomain of one does too.
    allowed_domains: tuple[str, ...] = ()
    # Views by path: pages with many of them are visited early.
    traffic: Annotated[dict[str, Annotated[int, Meta(ge=0)]], Meta(max_length=10_000)] = {}

    def check(self) -> None:
        super().check()
        Scope(self.scope_rules())

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


class MapOptions(VisitOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A map: the URLs of a site, without visiting each page. `url` is canonical."""

    url: str
    search: Annotated[str, Meta(max_length=1000)] | None = None
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 5_000
    sitemap: Literal["include", "skip", "only"] = "include"
    subdomains: bool = True
    external_links: bool = False
    ignore_query: bool = True
    # Only what is below the path of the URL.
    same_section: bool = True
    # Also what earlier jobs have found.
    use_known: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def known_variants(self) -> list[bytes]:
        """The variants whose pages this map may show: its own, and what anybody is given."""
        return list({b"", _UNVERIFIED, self.variant})

    def check(self) -> None:
        super().check()
        Scope(self.scope_rules())

    def scope_rules(self) -> ScopeRules:
        return ScopeRules(
            seed=self.url,
            include=self.include,
            exclude=self.exclude,
            entire_domain=not self.same_section,
            subdomains=self.subdomains,
            external=self.external_links,
        )

    @property
    def query(self) -> Query:
        return Query.DROP if self.ignore_query else Query.KEEP
