"""What a page asks of crawlers: meta robots and X-Robots-Tag, for everyone or for one agent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from trapline.frontier.dates import parse_date
from trapline.frontier.robots.file import EVERYONE, product_token

# Directives that take a value, so that a colon after them does not make them an agent's name.
_WITH_VALUE = frozenset(
    {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}
)
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Directives:
    """The strictest of all that applies."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    nosnippet: bool = False
    unavailable_after: datetime | None = None

    def is_indexable(self, now: datetime) -> bool:
        return not self.noindex and (self.unavailable_after is None or now < self.unavailable_after)


def page_directives(
    metas: Iterable[tuple[str, str]], headers: Iterable[str], user_agent: str
) -> Directives:
    """Combine (name, content) of the page's meta tags with the values of its X-Robots-Tag headers."""
    agents = {EVERYONE, "robots", product_token(user_agent)}
    words: set[str] = set()
    until: datetime | None = None
    for name, value in _applying(metas, headers, agents):
        words.add(name)
        if name == "unavailable_after" and (date := parse_date(value)):
            until = min(until, date) if until else date
    nothing = "none" in words
    return Directives(
        noindex=nothing or "noindex" in words,
        nofollow=nothing or "nofollow" in words,
        noarchive="noarchive" in words or "nocache" in words,
        nosnippet="nosnippet" in words,
        unavailable_after=until,
    )


def _applying(
    metas: Iterable[tuple[str, str]], headers: Iterable[str], agents: set[str]
) -> Iterator[tuple[str, str]]:
    for name, content in metas:
        if name.strip().lower() in agents:
            yield from _directives(content)
    for header in headers:
        agent, rest = _addressed(header)
        if agent in agents:
            yield from _directives(rest)


def _addressed(header: str) -> tuple[str, str]:
    """`googlebot: noindex` is for one agent, `noindex` for everyone."""
    name, colon, rest = header.partition(":")
    name = name.strip().lower()
    if not colon or "," in name or name in _WITH_VALUE:
        return EVERYONE, header
    return name, rest


def _directives(content: str) -> Iterator[tuple[str, str]]:
    parts = content[:_LONGEST].split(",")
    while parts:
        name, _, value = parts.pop(0).partition(":")
        name = name.strip().lower()
        if name == "unavailable_after":
            # Dates may hold commas: "Tue, 25 Jun 2030 …".
            yield name, ",".join([value, *parts]).strip()
        else:
            yield name, value.strip()
