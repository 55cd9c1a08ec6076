"""What a complete crawl must find, read from the page table: nothing here sends a request."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urljoin, urlsplit

from tests.site.atlas import Atlas
from tests.site.page import Hop, Link, Page

_MOST_PAGES = 100_000
AGENT = "trapline"


class Endless(Exception):
    """The crawl would never end: the seed leads into a trap. Give a depth."""


@dataclass(slots=True)
class Truth:
    """Sets of absolute URLs. `fetched` is every page that must be asked for, exactly once."""

    fetched: set[str] = field(default_factory=set)
    content: set[str] = field(default_factory=set)
    """Fetched, and answered with 200 and a body."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Fetched, and sent on by HTTP or a meta refresh: from where to where."""
    broken: dict[str, set[str]] = field(default_factory=dict)
    """Fetched, and answered with 4xx or 5xx: with the pages that link there."""
    forbidden: set[str] = field(default_factory=set)
    """Linked, but robots.txt forbids it."""
    external: set[str] = field(default_factory=set)
    """Linked, but on a host outside the crawl."""
    unfollowed: set[str] = field(default_factory=set)
    """Linked only in ways that the crawl was told to leave alone (nofollow, hidden, scripted)."""
    outside: set[str] = field(default_factory=set)
    """On the host, but not below the wanted prefix."""
    noindex: set[str] = field(default_factory=set)
    duplicates: dict[str, set[str]] = field(default_factory=dict)
    """Content that is byte for byte that of another page, by the first URL in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """How the crawl behaves. The defaults are those of a polite crawler without a browser."""

    robots: bool = True
    agent: str = AGENT
    nofollow: bool = False
    """Follow links that say nofollow."""
    hidden: bool = False
    """Follow links that CSS hides."""
    javascript: bool = False
    """Follow links that only a browser sees."""
    sitemaps: bool = False
    """Start from the sitemap as well."""
    depth: int | None = None
    """Links away from the seed; redirects cost nothing."""
    prefix: str = "/"
    hosts: frozenset[str] = frozenset()
    """Further hosts that belong to the crawl."""


def reachable(atlas: Atlas, seed: str, **options: object) -> Truth:
    """Return the truth about a crawl from an absolute URL; options as the fields of `Crawl`."""
    return _Walk(atlas, seed, Crawl(**options)).run()  # type: ignore[arg-type]


class _Walk:
    def __init__(self, atlas: Atlas, seed: str, crawl: Crawl) -> None:
        self._atlas = atlas
        self._seed = urldefrag(seed).url
        self._crawl = crawl
        self._hosts = crawl.hosts | {urlsplit(seed).hostname or ""}
        self._truth = Truth()
        self._linked_from: dict[str, set[str]] = {}
        self._waiting: deque[tuple[str, int]] = deque()

    def run(self) -> Truth:
        self._meet(self._seed, 0, "")
        if self._crawl.sitemaps:
            for url in self._listed():
                self._meet(url, 0, "")
        while self._waiting:
            self._visit(*self._waiting.popleft())
        self._finish()
        return self._truth

    def _listed(self) -> Iterator[str]:
        host = self._atlas.host(urlsplit(self._seed).hostname or "")
        for page in host.pages.values() if host else ():
            if page.listed:
                yield urljoin(self._seed, page.target)

    def _meet(self, url: str, depth: int, source: str) -> None:
        """Sort a URL that was found: into the queue, or into the reason why not."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"}:
            return
        if source:
            self._linked_from.setdefault(url, set()).add(source)
        host = self._atlas.host(parts.hostname or "")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if parts.hostname is None or parts.hostname not in self._hosts or host is None:
            self._truth.external.add(url)
        elif not target.startswith(self._crawl.prefix):
            self._truth.outside.add(url)
        elif self._crawl.robots and not self._allows(parts.hostname, target):
            self._truth.forbidden.add(url)
        elif url not in self._truth.fetched:
            self._truth.fetched.add(url)
            self._waiting.append((url, depth))

    def _allows(self, host: str, target: str) -> bool:
        return self._atlas.rules(host).allows(self._crawl.agent, target)

    def _visit(self, url: str, depth: int) -> None:
        page = self._atlas.at(url)
        if len(self._truth.fetched) > _MOST_PAGES or (page.endless and self._crawl.depth is None):
            raise Endless(url)
        if page.redirect is not None and page.redirect.how is not Hop.CANONICAL:
            to = _join(url, page.redirect.to)
            self._truth.redirects[url] = to
            self._meet(to, depth, url)
        elif page.status >= 400:
            self._truth.broken[url] = set()
        elif page.status == 200:
            self._read(url, page, depth)

    def _read(self, url: str, page: Page, depth: int) -> None:
        self._truth.content.add(url)
        if page.noindex:
            self._truth.noindex.add(url)
        for link in page.links:
            to = _join(url, link.href)
            if not self._follows(page, link):
                self._truth.unfollowed.add(to)
            elif self._crawl.depth is None or depth < self._crawl.depth:
                self._meet(to, depth + 1, url)

    def _follows(self, page: Page, link: Link) -> bool:
        crawl = self._crawl
        return (
            (crawl.nofollow or not (link.nofollow or page.nofollow))
            and (crawl.hidden or not link.hidden)
            and (crawl.javascript or not link.scripted)
        )

    def _finish(self) -> None:
        truth = self._truth
        truth.unfollowed -= truth.fetched | truth.forbidden | truth.external | truth.outside
        for url in truth.broken:
            truth.broken[url] = self._linked_from.get(url, set())
        by_body: dict[bytes, list[str]] = {}
        for url in sorted(truth.content):
            by_body.setdefault(self._atlas.at(url).body, []).append(url)
        truth.duplicates = {
            urls[0]: set(urls[1:]) for body, urls in by_body.items() if body and urls[1:]
        }


def _join(base: str, href: str) -> str:
    """Return the absolute URL without fragment; what cannot be one leads nowhere."""
    try:
        url = urldefrag(urljoin(base, href)).url
        urlsplit(url)
    except ValueError:
        return ""
    return url
