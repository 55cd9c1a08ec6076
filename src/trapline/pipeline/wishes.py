"""What a page and its server wish: where it really is, and what robots may do with it."""

import re
from typing import Final

from msgspec import Struct

from trapline.errors import VisitFailed
from trapline.extract.metadata import robots_directives
from trapline.frontier import canonical
from trapline.model import Document, Fetched

# Longer than this, a reader may want to read the page first.
LONGEST_REFRESH: Final = 10.0
_REFRESH: Final = re.compile(
    r"\s*+(?P<seconds>[0-9]*+(?:\.[0-9]*+)?+)\s*+[;,]?+\s*+(?:url\s*+=\s*+)?+(?P<url>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ROBOTS_TAG: Final = "x-robots-tag"
_CANONICAL: Final = re.compile(r"<([^>]*)>\s*;[^,]*\brel\s*=\s*\"?canonical\"?", re.IGNORECASE)


class Refresh(Struct, frozen=True, gc=False):
    """Where a page sends its visitor, after so many seconds."""

    url: str
    seconds: float

    @property
    def at_once(self) -> bool:
        return self.seconds <= LONGEST_REFRESH


class Claims(Struct, frozen=True, gc=False):
    """Where a page says that it is, and where it sends its visitor."""

    refresh: Refresh | None
    canonical: str | None


def claims_of(fetched: Fetched, document: Document | None) -> Claims:
    return Claims(refresh_of(fetched, document), canonical_of(fetched, document))


def refresh_of(fetched: Fetched, document: Document | None) -> Refresh | None:
    """Read the meta tag or the header; None where it names the page itself."""
    declared = {} if document is None else document.metadata.declared
    tags = [value for name, value in declared.items() if name.lower() == "refresh"]
    tag = tags[0] if tags else fetched.header("Refresh")
    found = _REFRESH.fullmatch(tag if isinstance(tag, str) else tag[0]) if tag else None
    if found is None:
        return None
    url = _url(found["url"].strip().strip("'\""), fetched.url)
    return None if url is None else Refresh(url, float(found["seconds"].strip(".") or 0))


def canonical_of(fetched: Fetched, document: Document | None) -> str | None:
    """Return where the page says that its canonical version is, if that is elsewhere."""
    link = _CANONICAL.search(fetched.header("Link") or "")
    named = document.metadata.canonical if document is not None else None
    named = named or (link[1] if link else None)
    return _url(named, fetched.url) if named else None


def robots_of(fetched: Fetched, document: Document | None, agent: str) -> frozenset[str]:
    """Return what the robots meta tag and X-Robots-Tag ask of this agent, in lower case."""
    asked: set[str] = set()
    if document is not None and document.metadata.robots:
        asked |= robots_directives(document.metadata.robots)
    for name, value in fetched.headers:
        if len(name) == len(_ROBOTS_TAG) and name.lower() == _ROBOTS_TAG:
            asked |= _for_agent(value, agent)
    return frozenset(asked)


def _for_agent(value: str, agent: str) -> frozenset[str]:
    """`noindex` is for all, `otherbot: noindex` for one; a date after a colon is neither."""
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
