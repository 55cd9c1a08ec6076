"""What the stages hand each other: id types and frozen dataclasses.

Ids are distinct types, so that swapped arguments fail the type check.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType
from uuid import UUID

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


@dataclass(frozen=True, slots=True)
class Link:
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


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a page or a file says about itself.

    `declared` holds every other meta tag under its own name, and the Firecrawl names
    (`ogTitle`, `dcTermsCreated`, …); a tag that is repeated gives a tuple.
    """

    title: str | None = None
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
    declared: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
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
    metadata: Metadata = field(default_factory=Metadata)
    links: tuple[Link, ...] = ()
    images: tuple[Image, ...] = ()
    language: str | None = None
    structured: Mapping[str, object] | None = None
    branding: Mapping[str, object] | None = None
    summary: str | None = None
    warning: str | None = None


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
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76
    return UUID(int=value | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62))
