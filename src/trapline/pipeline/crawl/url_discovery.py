"""URL discovery for maps: from a site's sitemaps, the links of one page and earlier crawls.

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
from trapline.frontier.canonical_url import host_name, origin_of, split_url, url_hash
from trapline.frontier.registrable_domain import registrable_domain
from trapline.frontier.scope import Scope, ScopeDecision
from trapline.frontier.sitemaps import (
    MAX_INDEX_DEPTH,
    EntryKind,
    SitemapReader,
    likely_sitemaps,
)
from trapline.model import ExtractOptions, Fetched, Format
from trapline.pipeline import document_formats
from trapline.pipeline.caller import deadline
from trapline.pipeline.crawl.job_context import JobContext
from trapline.pipeline.crawl.visit import VisitHandlers
from trapline.pipeline.options import MapOptions
from trapline.pipeline.sql import page_lookup
from trapline.queue.finish import NewEvent, TaskResult
from trapline.queue.inline_tasks import wait_for_gate
from trapline.queue.tasks import Task

LINKS: Final = "links"
"""The type of the events that hold the URLs, some 256 KiB in each."""
_EVENT_BYTES: Final = 256 * 1024
_MAX_SITEMAPS: Final = 100
_MAX_URLS: Final = 100_000
_LINKS: Final = ExtractOptions(formats=frozenset({Format.LINKS}))
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MappedLink:
    """A URL of a site, with its page's title and description where they are stored."""

    url: str
    title: str | None = None
    description: str | None = None


@dataclass(slots=True)
class _UrlSet:
    """The URLs so far: each once, in the order of discovery."""

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
            if self.scope.decide(clean) is ScopeDecision.IN_SCOPE:
                self.urls.setdefault(clean)

    @property
    def full(self) -> bool:
        # A search selects from all URLs.
        limit = _MAX_URLS if self.options.search else self.options.limit
        return len(self.urls) >= limit


@dataclass(slots=True)
class _Turns:
    """The turns of one task at its gate; the first came with its slot."""

    database: Database
    task: Task
    _taken: bool = False

    async def next(self) -> None:
        if self._taken:
            await wait_for_gate(self.database, self.task)
        self._taken = True


@dataclass(slots=True)
class UrlDiscovery:
    """Finds the URLs of a site."""

    database: Database
    handlers: VisitHandlers

    async def run(self, task: Task) -> TaskResult:
        """The handler of map tasks; the URLs go into the job's events."""
        context = await self.handlers.contexts.of(task.job_id)
        options = context.options
        assert isinstance(options, MapOptions)  # noqa: S101 (the job's kind decides the type)
        latest = datetime.now(UTC) + _timeout(options, task)
        async with deadline(latest):
            links, problems = await self.links(context, options, task)
        return TaskResult(summary(links, problems), events=list(events_of(task, links)))

    async def links(
        self, context: JobContext, options: MapOptions, task: Task
    ) -> tuple[list[MappedLink], list[str]]:
        """Return the URLs of a site, and the problems with reading it."""
        turns = _Turns(self.database, task)
        url_set = _UrlSet(options, Scope(options.scope_rules()))
        if options.sitemap != "only":
            url_set.add([options.url], options.url)
        if options.sitemap != "skip":
            await self._read_sitemaps(context, turns, url_set)
        if options.sitemap != "only" and not url_set.full:
            await self._read_page(context, turns, url_set)
        if options.use_known and options.sitemap != "only" and not url_set.full:
            url_set.add(await self._known(context, options), options.url)
        links = await self._described(context, options, list(url_set.urls))
        chosen = matching(links, options.search) if options.search else links
        return chosen[: options.limit], url_set.problems

    async def _read_page(self, context: JobContext, turns: _Turns, url_set: _UrlSet) -> None:
        await turns.next()
        url = url_set.options.url
        fetched = await self._fetch(context, turns.task, url)
        if fetched.exit_code is not ExitCode.CONTENT:
            url_set.problems.append(f"{url}: {fetched.message}")
            return
        try:
            document = await document_formats.extract_document(fetched, _LINKS)
        except VisitFailed as error:
            url_set.problems.append(f"{url}: {error.message}")
            return
        url_set.add((link.url for link in document.links), fetched.url)

    async def _read_sitemaps(self, context: JobContext, turns: _Turns, url_set: _UrlSet) -> None:
        """Read the sitemaps of robots.txt, else of the usual locations, and the nested ones."""
        url = url_set.options.url
        named: Sequence[str] = ()
        if not url_set.options.ignore_robots:
            named = (await self.handlers.robots_of(context, origin_of(url))).robots.sitemaps
        level = dict.fromkeys(named or likely_sitemaps(url))
        read: set[str] = set()
        for _ in range(MAX_INDEX_DEPTH + 1):
            deeper: dict[str, None] = {}
            async for sitemap in self._unread(turns, level, read, url_set):
                fetched = await self._fetch(context, turns.task, sitemap)
                if fetched.exit_code is ExitCode.CONTENT:
                    deeper |= _read_sitemap(fetched, url_set)
                elif named:
                    url_set.problems.append(f"{sitemap}: {fetched.message}")
            level = deeper

    async def _unread(
        self, turns: _Turns, level: Iterable[str], read: set[str], url_set: _UrlSet
    ) -> AsyncIterator[str]:
        """Yield the unread sitemaps of a level, each when the gate allows it, up to the limits."""
        for text in level:
            try:
                sitemap = canonical(text, url_set.options.url)
            except VisitFailed:
                continue
            if sitemap in read or len(read) >= _MAX_SITEMAPS or url_set.full:
                continue
            read.add(sitemap)
            await turns.next()
            yield sitemap

    async def _fetch(self, context: JobContext, task: Task, url: str) -> Fetched:
        approve = self.handlers.approve(context, task, scoped=False)
        return await self.handlers.fetcher.fetch(self.handlers.request(context, url, approve, task))

    async def _known(self, context: JobContext, options: MapOptions) -> list[str]:
        host = split_url(options.url).host
        domain = registrable_domain(host_name(host))
        escaped = domain.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        async with self.database.tenant_tx(context.organisation_id) as conn:
            return await page_lookup.urls_of_domain(
                conn,
                organisation_id=context.organisation_id,
                host=host,
                subdomains=f"%.{escaped}" if options.subdomains else None,
                variants=options.known_variants,
                most=_MAX_URLS,
            )

    async def _described(
        self, context: JobContext, options: MapOptions, urls: Sequence[str]
    ) -> list[MappedLink]:
        """Add the titles and descriptions of pages that are stored."""
        async with self.database.tenant_tx(context.organisation_id) as conn:
            rows = await page_lookup.titles_of(
                conn,
                organisation_id=context.organisation_id,
                hashes=[url_hash(url) for url in urls],
                variants=options.known_variants,
            )
        titles = {row.hash: (row.title, row.description) for row in rows}
        return [MappedLink(url, *titles.get(url_hash(url), (None, None))) for url in urls]


def matching(links: Iterable[MappedLink], search: str) -> list[MappedLink]:
    """Return the links with a word of the search, those with most of them first."""
    words = {word.lower() for word in _WORD.findall(search)}

    def score(link: MappedLink) -> int:
        url = link.url.lower()
        description = f"{link.title or ''} {link.description or ''}".lower()
        return sum(2 * (word in url) + (word in description) for word in words)

    scored = [(score(link), link) for link in links]
    # Sorting is stable: equal scores stay in the order of discovery.
    return [link for points, link in sorted(scored, key=lambda pair: -pair[0]) if points]


def _read_sitemap(fetched: Fetched, url_set: _UrlSet) -> dict[str, None]:
    """Add the pages of a sitemap; return its nested sitemaps."""
    reader = SitemapReader()
    entries = [*reader.feed(fetched.body), *reader.close()]
    url_set.add((e.url for e in entries if e.kind is not EntryKind.SITEMAP), fetched.url)
    return dict.fromkeys(e.url for e in entries if e.kind is EntryKind.SITEMAP)


def summary(links: Sequence[MappedLink], problems: Sequence[str]) -> dict[str, Any]:
    """Return the result of a map's task."""
    return {"links": len(links), "problems": [problem[:500] for problem in problems[:20]]}


def events_of(task: Task, links: Iterable[MappedLink]) -> Iterator[NewEvent]:
    """Return the URLs as events; none with zero retention."""
    if task.zero_data_retention:
        return
    batch: list[dict[str, str]] = []
    size = 0
    for link in links:
        fields = {
            name: value.replace("\x00", "")
            for name in ("url", "title", "description")
            if (value := getattr(link, name)) is not None
        }
        size += len(msgspec.json.encode(fields))
        batch.append(fields)
        if size >= _EVENT_BYTES:
            yield NewEvent(LINKS, {"links": batch})
            batch, size = [], 0
    if batch:
        yield NewEvent(LINKS, {"links": batch})


def _timeout(options: MapOptions, task: Task) -> timedelta:
    timeout = options.scrape.timeout
    return task.timeout if timeout is None else timedelta(seconds=timeout)
