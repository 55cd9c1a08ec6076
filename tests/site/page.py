"""What the site knows of one URL: how it answers, and where its links lead."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from typing import TYPE_CHECKING

from tests.site.message import Headers, Request, Response

if TYPE_CHECKING:
    from tests.site.state import State
    from tests.site.wire import Wire

EPOCH = datetime(2024, 3, 1, 8, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Link:
    """One `<a>` of a page. `href` as written; the flags say why a crawler may leave it alone."""

    href: str
    text: str = ""
    nofollow: bool = False
    hidden: bool = False
    scripted: bool = False
    """Made by JavaScript: not in the HTML that the server sends."""


class Hop(Enum):
    """How a page sends its visitor elsewhere."""

    HTTP = auto()
    META_REFRESH = auto()
    REFRESH_HEADER = auto()
    CANONICAL = auto()
    SCRIPT = auto()


@dataclass(frozen=True, slots=True)
class Redirect:
    to: str
    how: Hop = Hop.HTTP


Respond = Callable[[Request, "State"], Response]
"""Answers from the request and what happened before."""
Perform = Callable[[Request, "Wire", "State"], Awaitable[None]]
"""Writes to the socket by itself: the way to be slow, endless or malformed."""


@dataclass(slots=True, kw_only=True)
class Page:
    """One row of the page table. With neither `respond` nor `perform`, the answer is static."""

    target: str
    body: bytes = b""
    status: int = 200
    content_type: str | None = "text/html; charset=utf-8"
    headers: Headers = ()
    links: tuple[Link, ...] = ()
    redirect: Redirect | None = None
    respond: Respond | None = None
    perform: Perform | None = None

    title: str = ""
    kind: str = "page"
    main_text: str = ""
    """The main content as a reader would name it, one block a line; empty where none is claimed."""
    modified: datetime = EPOCH
    listed: bool = False
    """In the host's sitemap."""
    noindex: bool = False
    nofollow: bool = False
    validators: frozenset[str] = field(default=frozenset({"etag", "last-modified"}))
    endless: bool = False
    """Part of an area that a crawl without a bound never finishes."""
