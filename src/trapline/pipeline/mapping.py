"""A map: the URLs of a site, from its sitemaps, one page's links and what is known of it.

Like a scrape, it runs in its caller's process, at the host's gate, and each of its requests waits
there for its turn.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

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
from trapline.model import ExtractOptions, Fetched, Format, JobId
from trapline.pipeline import documents
from trapline.pipeline.asking import Asker, until
from trapline.pipeline.crawls import Crawl
from trapline.pipeline.kinds import MAP, MapTask
from trapline.pipeline.options import DEFAULT_TIMEOUT, MapOptions
from trapline.pipeline.scraping import Scraper
from trapline.pipeline.sql import known
from trapline.pipeline.steps import Steps
from trapline.pipeline.submit import host_gate
from trapline.queue import jobs
from trapline.queue.direct import Direct, ended_by
from trapline.queue.finishing import Attempt, written
from trapline.queue.jobs import NewJob
from trapline.queue.tasks import NewTask, Task

_MOST_SITEMAPS: Final = 100
_LINKS: Final = ExtractOptions(formats=frozenset({Format.LINKS}))
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MappedLink:
    """A URL of a site, with what is known of its page."""

    url: str
    title: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a map came to. `warning` says what could not be read."""

    job_id: JobId
    links: list[MappedLink]
    warning: str | None = None


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

    direct: Direct
    task: Task
    _taken: bool = False

    async def next(self) -> None:
        if self._taken:
            await self.direct.next_turn(self.task)
        self._taken = True


@dataclass(slots=True)
class Mapper:
    """Maps in this process."""

    database: Database
    steps: Steps
    direct: Direct

    @classmethod
    def beside(cls, scraper: Scraper) -> "Mapper":
        """Return a mapper that shares what a scraper has."""
        return cls(scraper.database, scraper.steps, scraper.direct)

    async def map(self, asker: Asker, options: MapOptions) -> Mapped:
        """Find the URLs of a site; TookTooLong when that is not done in its time."""
        latest = datetime.now(UTC) + timedelta(seconds=options.scrape.timeout or DEFAULT_TIMEOUT)
        job = NewJob(
            MAP,
            asker.organisation_id,
            id=asker.job_id or jobs.new_id(),
            member_id=asker.member_id,
            options=msgspec.to_builtins(options),
            metadata=asker.metadata,
            trace_id=asker.trace_id,
            ttl=jobs.times_kept(self.database.settings, single=True)[0],
        )
        crawl = self.steps.crawls.make(job.id, asker.organisation_id, options)
        new = NewTask(MAP, MapTask(options.url), gate=host_gate(options, options.url))
        held = await self.direct.begin(job, new, latest=latest)
        try:
            async with until(latest):
                links, problems = await self._links(crawl, options, _Turns(self.direct, held.task))
        except BaseException as error:
            await self.direct.finish(ended_by(held.task, error))
            raise
        await self.direct.finish(Attempt(held.task, result=written({"links": len(links)})))
        return Mapped(job.id, links, " ".join(problems) or None)

    async def _links(
        self, crawl: Crawl, options: MapOptions, turns: _Turns
    ) -> tuple[list[MappedLink], list[str]]:
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
