"""What is asked for: of one page, of a job that visits pages, of a crawl. Stored with the job, so
that every worker reads the same. The names are ours; the edges translate theirs. Times are seconds.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

import msgspec
from msgspec import Meta

from trapline.errors import InvalidInput, VisitFailed
from trapline.extract.selectors import check_selectors
from trapline.frontier.patterns import Patterns
from trapline.frontier.scope import Scope, ScopeRules
from trapline.frontier.url import Query, typed_url
from trapline.model import ExtractOptions, Format, SiteId, SourceId
from trapline.pipeline.countries import languages_of

DEFAULT_LIMIT = 10_000
DEFAULT_TIMEOUT: Final = 60.0
_STORED: Final = frozenset({Format.MARKDOWN, Format.LINKS})
_CANONICAL: Final = ExtractOptions(formats=_STORED)

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")

Seconds = Annotated[float, Meta(ge=0)]


class AttributeSelector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An attribute to be read from all elements that a CSS selector finds."""

    selector: Annotated[str, Meta(min_length=1)]
    attribute: Annotated[str, Meta(min_length=1)]


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to ask a language model about a page."""

    kind: Literal["json", "question", "summary"]
    prompt: str | None = None
    schema: dict[str, Any] | None = None


class Tracking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compare each page of a job with its last scrape under a tag."""

    tag: Annotated[str, Meta(max_length=200)] = ""
    diff: bool = False
    fields: Wish | None = None
    """What a language model reads of both, to say which fields changed."""


class ScrapeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one page is fetched, and what its caller wants of it.

    What is stored of a page does not depend on this: else every other wish would be a change.
    """

    # What to answer with.
    formats: frozenset[Format] = frozenset({Format.MARKDOWN})
    only_main_content: bool = True
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    remove_base64_images: bool = True
    attributes: tuple[AttributeSelector, ...] = ()
    # What a language model is to make of the page.
    wishes: tuple[Wish, ...] = ()
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

    # Whether an older answer will do, and what is kept of this one.
    max_age: Seconds | None = None
    # Only an older answer will do, and it must be at least so old.
    min_age: Seconds | None = None
    only_cached: bool = False
    store: bool = True
    zero_data_retention: bool = False

    @property
    def extraction(self) -> ExtractOptions:
        """What the caller wants of the extractor."""
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
        """Whether the caller wants the content as it is stored, in whatever format."""
        whole = self.include_tags or self.exclude_tags or self.max_pages is not None
        return self.only_main_content and self.remove_base64_images and not whole

    @property
    def as_stored(self) -> bool:
        """Whether a stored version alone answers this, without the bytes that it came from."""
        more = self.attributes or self.with_body or not self.read_files
        return self.canonical and self.formats <= _STORED and not more

    @property
    def accept_language(self) -> str | None:
        """The header's value: the first language is liked best. A country stands for its own."""
        languages = self.languages or languages_of(self.country)
        parts = [f"{language};q={1 - n / 10:.1f}" for n, language in enumerate(languages[:9])]
        return ",".join(parts) or None

    def check(self) -> None:
        """Refuse what the types cannot: bad selectors, headers that are more than one line."""
        check_selectors(
            (*self.include_tags, *self.exclude_tags, *(a.selector for a in self.attributes))
        )
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise InvalidInput(f"{name!r} is not a header that can be sent.")


@lru_cache(maxsize=256)
def _patterns(sources: tuple[str, ...]) -> Patterns:
    # Most jobs have none, and each would compile that.
    return Patterns(sources)


class VisitOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all jobs that visit pages may be asked: a scrape, a batch of them, a crawl."""

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
        """Check what a person or a program asks for; InvalidInput says what is wrong."""
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
    def stored_extraction(self) -> ExtractOptions:
        """How what is stored of a page is read."""
        return replace(self.scrape.stored_extraction, exclude_tags=self.ignore_selectors)


class PageOptions(VisitOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scrape: one page. `url` is canonical."""

    url: str


class CrawlOptions(VisitOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A crawl: all that links and sitemaps lead to, within its scope. `url` is canonical."""

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
    """A map: the URLs of a site, without a visit to each. `url` is canonical."""

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
