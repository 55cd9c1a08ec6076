"""Finding the URLs of a site: from its sitemaps, one page's links and what is known of it.

It runs as a task at the host's gate, and each of its requests waits there for its turn.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from trapline.db.pool import Database
from trapline.errors import ExitCode, VisitFailed
from trapline.frontier import canonical
from trapline.frontier.domain import registrable_domain
from trapline.frontier.scope import Scope, Verdict
from trapline.frontier.sitemaps import (
    MAX_INDEX_DEPTH,
    EntryKind,
    SitemapReader,
    likely_sitemaps,
)
from trapline.frontier.url import host_name, origin_of, split_url, url_hash
from trapline.model import ExtractOptions, Fetched, Format
from trapline.pipeline import documents
from trapline.pipeline.asking import until
from trapline.pipeline.crawls import Crawl
from trapline.pipeline.options import MapOptions
from trapline.pipeline.sql import known
from trapline.pipeline.steps import Steps
from trapline.queue.direct import next_turn
from trapline.queue.finishing import Finished, NewEvent
from trapline.queue.tasks import Task

LINKS: Final = "links"
"""The type of the events that hold what was found, so many bytes of URLs in each."""
_EVENT_BYTES: Final = 256 * 1024
_MOST_SITEMAPS: Final = 100
_LINKS: Final = ExtractOptions(formats=frozenset({Format.LINKS}))
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MappedLink:
    """A URL of a site, with what is known of its page."""

    url: str
    title: str | None = None
    description: str | None = None


@dataclass(slots=True)
class _Found:
    """The URLs so far: each once, in the order in which they were found."""

    options: MapOptions
    scope: Scope
    urls: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, urls: Iterable[str], base: str) -> None:
        for url in urls:
            if self.full:
                return
            try:
                clean = canonical(url, base, self.options.query)
            except VisitFailed:
                continue
            if self.scope.verdict(clean) is Verdict.IN_SCOPE:
                self.urls.setdefault(clean)

    @property
    def full(self) -> bool:
        # A search chooses from all that there is.
        most = 100_000 if self.options.search else self.options.limit
        return len(self.urls) >= most


@dataclass(slots=True)
class _Turns:
    """The turns of one task at its gate; the first came with its place."""

    database: Database
    task: Task
    _taken: bool = False

    async def next(self) -> None:
        if self._taken:
            await next_turn(self.database, self.task)
        self._taken = True


@dataclass(slots=True)
class Surveyor:
    """Finds the URLs of sites."""

    database: Database
    steps: Steps

    async def run(self, task: Task) -> Finished:
        """Map as a task that a worker runs; what was found is in the job's events."""
        crawl = await self.steps.crawls.of(task.job_id)
        options = crawl.options
        assert isinstance(options, MapOptions)  # noqa: S101 (the job's kind decides the type)
        latest = datetime.now(UTC) + _time_of(options, task)
        async with until(latest):
            links, problems = await self.links(crawl, options, task)
        return Finished(told(links, problems), events=list(events_of(task, links)))

    async def links(
        self, crawl: Crawl, options: MapOptions, task: Task
    ) -> tuple[list[MappedLink], list[str]]:
        """Return the URLs of a site, and what could not be read."""
        turns = _Turns(self.database, task)
        found = _Found(options, Scope(options.scope_rules()))
        if options.sitemap != "only":
            found.add([options.url], options.url)
        if options.sitemap != "skip":
            await self._read_sitemaps(crawl, turns, found)
        if options.sitemap != "only" and not found.full:
            await self._read_page(crawl, turns, found)
        if options.use_known and options.sitemap != "only" and not found.full:
            found.add(await self._known(crawl, options), options.url)
        links = await self._described(crawl, list(found.urls))
        chosen = matching(links, options.search) if options.search else links
        return chosen[: options.limit], found.problems

    async def _read_page(self, crawl: Crawl, turns: _Turns, found: _Found) -> None:
        await turns.next()
        url = found.options.url
        fetched = await self._fetch(crawl, turns.task, url)
        if fetched.exit_code is not ExitCode.CONTENT:
            found.problems.append(f"{url}: {fetched.message}")
            return
        try:
            document = await documents.read(fetched, _LINKS)
        except VisitFailed as error:
            found.problems.append(f"{url}: {error.message}")
            return
        found.add((link.url for link in document.links), fetched.url)

    async def _read_sitemaps(self, crawl: Crawl, turns: _Turns, found: _Found) -> None:
        """Read the sitemaps of robots.txt, else of the usual places, and those that they name."""
        url = found.options.url
        named: Sequence[str] = ()
        if not found.options.ignore_robots:
            named = (await self.steps.robots_of(crawl, origin_of(url))).robots.sitemaps
        level = dict.fromkeys(named or likely_sitemaps(url))
        read: set[str] = set()
        for _ in range(MAX_INDEX_DEPTH + 1):
            deeper: dict[str, None] = {}
            async for sitemap in self._unread(turns, level, read, found):
                fetched = await self._fetch(crawl, turns.task, sitemap)
                if fetched.exit_code is ExitCode.CONTENT:
                    deeper |= _read_sitemap(fetched, found)
                elif named:
                    found.problems.append(f"{sitemap}: {fetched.message}")
            level = deeper

    async def _unread(
        self, turns: _Turns, level: Iterable[str], read: set[str], found: _Found
    ) -> AsyncIterator[str]:
        """Give the sitemaps of a level, each when it is its turn, as long as there is room."""
        for text in level:
            try:
                sitemap = canonical(text, found.options.url)
            except VisitFailed:
                continue
            if sitemap in read or len(read) >= _MOST_SITEMAPS or found.full:
                continue
            read.add(sitemap)
            await turns.next()
            yield sitemap

    async def _fetch(self, crawl: Crawl, task: Task, url: str) -> Fetched:
        approve = self.steps.approve(crawl, task, scoped=False)
        return await self.steps.fetcher.fetch(self.steps.request(crawl, url, approve, task))

    async def _known(self, crawl: Crawl, options: MapOptions) -> list[str]:
        host = split_url(options.url).host
        domain = registrable_domain(host_name(host))
        escaped = domain.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        async with self.database.tenant_tx(crawl.organisation_id) as conn:
            return await known.urls_of_domain(
                conn,
                organisation_id=crawl.organisation_id,
                host=host,
                subdomains=f"%.{escaped}" if options.subdomains else None,
                most=100_000,
            )

    async def _described(self, crawl: Crawl, urls: Sequence[str]) -> list[MappedLink]:
        """Add titles and descriptions, where the pages were visited before."""
        async with self.database.tenant_tx(crawl.organisation_id) as conn:
            rows = await known.titles_of(
                conn,
                organisation_id=crawl.organisation_id,
                hashes=[url_hash(url) for url in urls],
            )
        titles = {row.hash: (row.title, row.description) for row in rows}
        return [MappedLink(url, *titles.get(url_hash(url), (None, None))) for url in urls]


def matching(links: Iterable[MappedLink], search: str) -> list[MappedLink]:
    """Return the links with a word of the search, those with most of them first."""
    words = {word.lower() for word in _WORD.findall(search)}

    def score(link: MappedLink) -> int:
        url = link.url.lower()
        said = f"{link.title or ''} {link.description or ''}".lower()
        return sum(2 * (word in url) + (word in said) for word in words)

    scored = [(score(link), link) for link in links]
    # Sorting is stable: what matches equally well stays in the order of its finding.
    return [link for points, link in sorted(scored, key=lambda pair: -pair[0]) if points]


def _read_sitemap(fetched: Fetched, found: _Found) -> dict[str, None]:
    """Take over the pages of a sitemap; return the sitemaps that it names."""
    reader = SitemapReader()
    entries = [*reader.feed(fetched.body), *reader.close()]
    found.add((e.url for e in entries if e.kind is not EntryKind.SITEMAP), fetched.url)
    return dict.fromkeys(e.url for e in entries if e.kind is EntryKind.SITEMAP)


def told(links: Sequence[MappedLink], problems: Sequence[str]) -> dict[str, Any]:
    """Return the result of a map's task."""
    return {"links": len(links), "problems": [problem[:500] for problem in problems[:20]]}


def events_of(task: Task, links: Iterable[MappedLink]) -> Iterator[NewEvent]:
    """Return what a map found as events; nothing where nothing may be kept."""
    if task.zero_data_retention:
        return
    held: list[dict[str, str]] = []
    size = 0
    for link in links:
        fields = {
            name: value.replace("\x00", "")
            for name in ("url", "title", "description")
            if (value := getattr(link, name)) is not None
        }
        size += len(msgspec.json.encode(fields))
        held.append(fields)
        if size >= _EVENT_BYTES:
            yield NewEvent(LINKS, {"links": held})
            held, size = [], 0
    if held:
        yield NewEvent(LINKS, {"links": held})


def _time_of(options: MapOptions, task: Task) -> timedelta:
    asked = options.scrape.timeout
    return task.timeout if asked is None else timedelta(seconds=asked)
