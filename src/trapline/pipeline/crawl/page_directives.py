"""Directives of a page and its server: refresh, canonical URL, and robots meta tags and headers."""

import re
from typing import Final

from msgspec import Struct

from trapline.errors import VisitFailed
from trapline.extract.metadata.page_metadata import robots_directives
from trapline.frontier import canonical
from trapline.model import Document, Fetched

# After a longer delay the page itself is meant to be read.
IMMEDIATE_REFRESH_SECONDS: Final = 10.0
_REFRESH: Final = re.compile(
    r"\s*+(?P<seconds>[0-9]*+(?:\.[0-9]*+)?+)\s*+[;,]?+\s*+(?:url\s*+=\s*+)?+(?P<url>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ROBOTS_TAG: Final = "x-robots-tag"
_CANONICAL: Final = re.compile(r"<([^>]*)>\s*;[^,]*\brel\s*=\s*\"?canonical\"?", re.IGNORECASE)


class Refresh(Struct, frozen=True, gc=False):
    """A redirect by meta tag or header, after some seconds."""

    url: str
    seconds: float

    @property
    def is_immediate(self) -> bool:
        return self.seconds <= IMMEDIATE_REFRESH_SECONDS


class Directives(Struct, frozen=True, gc=False):
    """The refresh and the canonical URL of a page, where they lead elsewhere."""

    refresh: Refresh | None
    canonical: str | None


def read_directives(fetched: Fetched, document: Document | None) -> Directives:
    return Directives(read_refresh(fetched, document), read_canonical(fetched, document))


def read_refresh(fetched: Fetched, document: Document | None) -> Refresh | None:
    """Read the meta tag or the header; None where it leads to the page itself."""
    declared = {} if document is None else document.metadata.declared
    tags = [value for name, value in declared.items() if name.lower() == "refresh"]
    tag = tags[0] if tags else fetched.header("Refresh")
    match = _REFRESH.fullmatch(tag if isinstance(tag, str) else tag[0]) if tag else None
    if match is None:
        return None
    url = _url(match["url"].strip().strip("'\""), fetched.url)
    return None if url is None else Refresh(url, float(match["seconds"].strip(".") or 0))


def read_canonical(fetched: Fetched, document: Document | None) -> str | None:
    """Return the canonical URL that the page declares, if it is another one."""
    link = _CANONICAL.search(fetched.header("Link") or "")
    declared = document.metadata.canonical if document is not None else None
    declared = declared or (link[1] if link else None)
    return _url(declared, fetched.url) if declared else None


def read_robots(fetched: Fetched, document: Document | None, agent: str) -> frozenset[str]:
    """Return the robots meta tag and X-Robots-Tag directives for this agent, in lower case."""
    directives: set[str] = set()
    if document is not None and document.metadata.robots:
        directives |= robots_directives(document.metadata.robots)
    for name, value in fetched.headers:
        if len(name) == len(_ROBOTS_TAG) and name.lower() == _ROBOTS_TAG:
            directives |= _for_agent(value, agent)
    return frozenset(directives)


def _for_agent(value: str, agent: str) -> frozenset[str]:
    """`noindex` is for all agents, `otherbot: noindex` for one; a date after a colon is neither."""
    who, colon, what = value.partition(":")
    if not colon or "," in who or who.strip().lower() in _WITH_VALUE:
        return robots_directives(value)
    return robots_directives(what) if who.strip().lower() in agent.lower() else frozenset()


_WITH_VALUE: Final = frozenset(
    ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
)


def _url(text: str, base: str) -> str | None:
    try:
        url = canonical(text, base)
    except VisitFailed:
        return None
    return None if url == base else url
