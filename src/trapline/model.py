"""What the stages hand each other: id types and frozen dataclasses.

Ids are distinct types, so that swapped arguments fail the type check.
"""

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import NewType, Protocol
from uuid import UUID

import msgspec
from msgspec import Struct

from trapline.errors import ExitCode

OrganisationId = NewType("OrganisationId", UUID)
MemberId = NewType("MemberId", UUID)
ApiKeyId = NewType("ApiKeyId", UUID)
JobId = NewType("JobId", UUID)
TaskId = NewType("TaskId", int)
AgentId = NewType("AgentId", int)
SiteId = NewType("SiteId", UUID)
PageId = NewType("PageId", UUID)
UrlId = NewType("UrlId", int)
TraceId = NewType("TraceId", UUID)
ScheduleId = NewType("ScheduleId", UUID)
ApplicationId = NewType("ApplicationId", UUID)
SourceId = NewType("SourceId", UUID)


class PageType(StrEnum):
    """What kind of page a Document was made from; `DOCUMENT` is a file, such as a PDF."""

    ARTICLE = "article"
    DOCUMENTATION = "documentation"
    SERVICE = "service"
    FORUM = "forum"
    PRODUCT = "product"
    COLLECTION = "collection"
    LISTING = "listing"
    DOCUMENT = "document"


class Region(StrEnum):
    """Where on a page something stands: a crawl orders links by it."""

    HEADER = "header"
    NAV = "nav"
    BODY = "body"
    FOOTER = "footer"


class Format(StrEnum):
    """What a caller may ask of an extraction; only what is asked is computed."""

    MARKDOWN = "markdown"
    HTML = "html"
    RAW_HTML = "rawHtml"
    LINKS = "links"
    IMAGES = "images"
    STRUCTURED = "structured"
    SUMMARY = "summary"
    BRANDING = "branding"


class Link(Struct, frozen=True, gc=False):
    """A hyperlink of a page; `url` is absolute and without a fragment.

    A Struct, for a page has hundreds: it is as frozen as a dataclass, and ten times faster to make.
    """

    url: str
    text: str = ""
    rel: tuple[str, ...] = ()
    region: Region = Region.BODY
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a page; `url` is absolute."""

    url: str
    alt: str = ""


class Metadata(Struct, frozen=True):
    """What a page or a file says about itself.

    `declared` holds every other meta tag under its own name, and the Firecrawl names
    (`ogTitle`, `dcTermsCreated`, …); a tag that is repeated gives a tuple.
    """

    title: str | None = None
    headline: str | None = None
    """The title as the page itself gives it, without the site's name."""
    description: str | None = None
    language: str | None = None
    author: str | None = None
    published: str | None = None
    modified: str | None = None
    canonical: str | None = None
    site_name: str | None = None
    favicon: str | None = None
    robots: str | None = None
    keywords: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()
    alternates: tuple[tuple[str, str], ...] = ()
    words: int = 0
    reading_minutes: int = 0
    pages: int | None = None
    declared: Mapping[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)


class Document(Struct, frozen=True):
    """What extraction makes of a body. Fields of formats that were not asked for stay empty.

    `text` and `markdown` are the main content (the whole page with `only_main_content=False`);
    `warning` says, for people, when something was guessed, cut or fell back.
    """

    url: str
    content_type: str | None = None
    page_type: PageType = PageType.ARTICLE
    text: str = ""
    markdown: str = ""
    html: str | None = None
    raw_html: str | None = None
    metadata: Metadata = Metadata()
    links: tuple[Link, ...] = ()
    images: tuple[Image, ...] = ()
    language: str | None = None
    structured: Mapping[str, object] | None = None
    branding: Mapping[str, object] | None = None
    summary: str | None = None
    warning: str | None = None
    charset: str | None = None
    """Of HTML: the character set that it was read in."""


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """How a body is to be extracted: the part of a scrape's options that concerns its content."""

    formats: frozenset[Format] = frozenset({Format.MARKDOWN, Format.LINKS})
    only_main_content: bool = True
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    remove_base64_images: bool = True
    max_pages: int | None = None


def new_uuid() -> UUID:
    """Return a UUIDv7: those made one after the other lie side by side in every index."""
    milliseconds = time.time_ns() // 1_000_000
    chance = int.from_bytes(os.urandom(10))
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (chance >> 68) << 64
    return UUID(int=value | 0b10 << 62 | chance & ((1 << 62) - 1))


# Fetching. What is made for every request is a Struct: it is as frozen as a dataclass, and ten times
# faster to make.


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be requested. `robots_approved` is False when robots.txt was overruled."""

    refusal: ExitCode | None = None
    detail: str | None = None
    robots_approved: bool = True


APPROVED = Verdict()

Approve = Callable[[str], Awaitable[Verdict]]
"""Asked before every request of a fetch, redirect hops included."""


class Cookies(Protocol):
    """The cookies of one job."""

    def header(self, url: str) -> str:
        """Return what to send to this URL as `Cookie`; empty when there is nothing."""

    def remember(self, url: str, set_cookie: Sequence[str]) -> None:
        """Keep what this URL has set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional:
    """The validators of the version that a 304 would confirm.

    They are sent only to `url`, from which they came: a redirect may lead elsewhere since.
    """

    url: str
    etag: str | None = None
    last_modified: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much a server may send and how long it may take. Times are seconds."""

    body_bytes: int = 32 * 2**20
    decompressed_bytes: int = 64 * 2**20
    header_bytes: int = 64 * 2**10
    headers: int = 256
    url_bytes: int = 16 * 2**10
    redirects: int = 10
    connect: float = 10.0
    first_byte: float = 30.0
    total: float = 120.0
    """For the whole way, with all redirects."""


class FetchRequest(Struct, frozen=True, kw_only=True):
    """One URL to be fetched, in canonical form, and how. What is None comes from the settings."""

    url: str
    approve: Approve
    headers: Mapping[str, str] = MappingProxyType({})
    conditional: Conditional | None = None
    cookies: Cookies | None = None
    user_agent: str | None = None
    mobile: bool = False
    language: str | None = None
    """The value of Accept-Language, such as `de-DE,de;q=0.9`."""
    proxy: str | None = None
    verify_tls: bool = True
    limits: FetchLimits | None = None


class RedirectSource(IntEnum):
    """Where a redirect was read. Numbers are stored: never reuse one."""

    HTTP = 1
    HSTS = 2
    META_REFRESH = 3
    CANONICAL = 4


@dataclass(frozen=True, slots=True)
class RedirectTrace:
    """One redirect, followed or not."""

    from_url: str
    to_url: str
    source: RedirectSource
    permanent: bool
    request: int | None = None
    """Position in `Fetched.requests` of the request that was answered with it."""

    @property
    def downgrade(self) -> bool:
        """From https to http."""
        return self.from_url.startswith("https:") and self.to_url.startswith("http:")


class RequestTrace(Struct, frozen=True, gc=False):
    """One request as it was sent. Times are milliseconds.

    A connection that was reused has no DNS, connect and TLS times; http has no TLS time.
    """

    url: str
    sent_at: datetime
    exit_code: ExitCode
    robots_approved: bool
    total_ms: float
    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    status: int | None = None
    etag: str | None = None
    last_modified: datetime | None = None
    remote_address: str | None = None


class Fetched(Struct, frozen=True, kw_only=True):
    """How a fetch ended, and everything that was seen on the way.

    `body` is complete and decompressed, or empty. `url` is the last one that was requested or
    refused. An answer with an error status keeps its status, headers and body.
    """

    exit_code: ExitCode
    message: str
    url: str
    requests: tuple[RequestTrace, ...] = ()
    redirects: tuple[RedirectTrace, ...] = ()
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str | None = None
    """As the server says."""
    sniffed_type: str | None = None
    """As the bytes say."""
    media_type: str | None = None
    """What to treat the body as, from both."""
    wire_bytes: int = 0
    """Bytes of the body as they were sent, without framing."""
    retry_after: float | None = None
    """Seconds."""
    remote_address: str | None = None
    proxy: str | None = None

    def header(self, name: str) -> str | None:
        """Return a header by its name in any case; repeated ones are joined by commas."""
        wanted, length = name.lower(), len(name)
        found = [
            value for key, value in self.headers if len(key) == length and key.lower() == wanted
        ]
        return ", ".join(found) if found else None

    @property
    def etag(self) -> str | None:
        return self.requests[-1].etag if self.requests else None

    @property
    def last_modified(self) -> datetime | None:
        return self.requests[-1].last_modified if self.requests else None

    @property
    def cache_headers(self) -> dict[str, str]:
        """What caches on the way say of themselves, by lower-case name."""
        return {key.lower(): value for key, value in self.headers if key.lower() in _CACHE_HEADERS}


_CACHE_HEADERS = frozenset(
    {"age", "cache-control", "cache-status", "cf-cache-status", "x-cache", "x-vercel-cache"}
)
