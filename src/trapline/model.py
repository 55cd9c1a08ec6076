"""The types that stages pass to each other: ids, documents, and a fetch's request and result.

Ids are distinct types, so that swapped arguments fail the type check. Objects that are created for
every request or link are Structs: as frozen as a dataclass, and ten times faster to create.
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
from trapline.rendering import Rendering, RenderOptions

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
    """The kind of page a Document was read from; `DOCUMENT` is a file such as a PDF."""

    ARTICLE = "article"
    DOCUMENTATION = "documentation"
    SERVICE = "service"
    FORUM = "forum"
    PRODUCT = "product"
    COLLECTION = "collection"
    LISTING = "listing"
    DOCUMENT = "document"


class Region(StrEnum):
    """The region of a page that a link is in; it decides the link's priority."""

    HEADER = "header"
    NAV = "nav"
    BODY = "body"
    FOOTER = "footer"


class Format(StrEnum):
    """An output format of extraction; only the requested ones are computed."""

    MARKDOWN = "markdown"
    HTML = "html"
    RAW_HTML = "rawHtml"
    LINKS = "links"
    IMAGES = "images"
    STRUCTURED = "structured"
    SUMMARY = "summary"
    BRANDING = "branding"


class Link(Struct, frozen=True, gc=False):
    """A hyperlink of a page; `url` is absolute and without a fragment."""

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
    """The metadata that a page or a file declares.

    `declared` holds every other meta tag under its own name, and the Firecrawl names
    (`ogTitle`, `dcTermsCreated`, …); a repeated tag gives a tuple.
    """

    title: str | None = None
    headline: str | None = None
    """The title as the page shows it, without the site's name."""
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
    """The result of extraction. Fields of formats that were not requested stay empty.

    `text` and `markdown` are the main content (the whole page with `only_main_content=False`);
    `warning` tells a person when something was guessed, truncated or fell back.
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
    """The character set that HTML was decoded with."""


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """How to extract a body: the part of a scrape's options that concerns its content."""

    formats: frozenset[Format] = frozenset({Format.MARKDOWN, Format.LINKS})
    only_main_content: bool = True
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    remove_base64_images: bool = True
    max_pages: int | None = None


def new_uuid() -> UUID:
    """Return a UUIDv7: ids created in succession are neighbours in every index."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10))
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (random_bits >> 68) << 64
    return UUID(int=value | 0b10 << 62 | random_bits & ((1 << 62) - 1))


@dataclass(frozen=True, slots=True)
class Approval:
    """Whether a URL may be requested. `robots_approved` is False when robots.txt was overruled."""

    refusal: ExitCode | None = None
    detail: str | None = None
    robots_approved: bool = True


APPROVED = Approval()

Approve = Callable[[str], Awaitable[Approval]]
"""Called before every request of a fetch, redirect hops included."""


class Cookies(Protocol):
    """The cookies of one job."""

    def header(self, url: str) -> str:
        """Return the `Cookie` header for this URL; empty when there are no cookies."""

    def remember(self, url: str, set_cookie: Sequence[str]) -> None:
        """Store the cookies that this URL has set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional:
    """The validators of the version that a 304 would confirm.

    They are sent only to `url`, which they came from: a redirect may lead elsewhere by now.
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
    """For the whole fetch, with all redirects."""


class FetchRequest(Struct, frozen=True, kw_only=True):
    """A canonical URL and how to fetch it. None means the default of the settings."""

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
    render: RenderOptions | None = None
    """How to show the page in a browser; only the browser fetcher reads it."""


class RedirectSource(IntEnum):
    """Where a redirect was declared. Numbers are stored: never reuse one."""

    HTTP = 1
    HSTS = 2
    META_REFRESH = 3
    CANONICAL = 4
    SCRIPT = 5


@dataclass(frozen=True, slots=True)
class RedirectTrace:
    """One redirect, followed or not."""

    from_url: str
    to_url: str
    source: RedirectSource
    permanent: bool
    request: int | None = None
    """Position in `Fetched.requests` of the request that was answered with it."""


class RequestTrace(Struct, frozen=True, gc=False):
    """The trace of one request. Times are milliseconds.

    A reused connection has no DNS, connect and TLS times; http has no TLS time.
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
    """The outcome of a fetch, with the trace of all its requests.

    `body` is complete and decompressed, or empty. `url` is the last one that was requested or
    refused. A response with an error status keeps its status, headers and body.
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
    """As the server declares it."""
    sniffed_type: str | None = None
    """As detected in the bytes."""
    media_type: str | None = None
    """What the body is treated as, decided from both."""
    wire_bytes: int = 0
    """Size of the body as transferred, without framing."""
    retry_after: float | None = None
    """Seconds."""
    remote_address: str | None = None
    proxy: str | None = None
    rendering: Rendering | None = None
    """How a browser showed the page; None over plain HTTP."""

    def header(self, name: str) -> str | None:
        """Return a header by its name in any case; repeated ones are joined by commas."""
        lowered, length = name.lower(), len(name)
        values = [
            value for key, value in self.headers if len(key) == length and key.lower() == lowered
        ]
        return ", ".join(values) if values else None

    @property
    def etag(self) -> str | None:
        return self.requests[-1].etag if self.requests else None

    @property
    def last_modified(self) -> datetime | None:
        return self.requests[-1].last_modified if self.requests else None
