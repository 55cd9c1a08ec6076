"""The jobs that this process visits pages for: each with its options, scope, judge of links, sites."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.fetch import CookieJar
from trapline.frontier.judge import LinkJudge
from trapline.frontier.patterns import Patterns
from trapline.frontier.scope import Scope
from trapline.frontier.url import similar_key
from trapline.knowledge import sources
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.sources import NewSource
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, ExtractOptions, JobId, OrganisationId, SiteId, SourceId
from trapline.pipeline.kinds import CRAWL, MAP, SCRAPE
from trapline.pipeline.options import CrawlOptions, MapOptions, PageOptions, VisitOptions
from trapline.pipeline.robots import KnownAccess, RobotsFiles
from trapline.queue import jobs
from trapline.settings import Settings
from trapline.store import sites
from trapline.store.sql import sites as stored_sites

_REMEMBERED: Final = 500
_OPTIONS: Final[dict[str, type[VisitOptions]]] = {
    CRAWL: CrawlOptions,
    SCRAPE: PageOptions,
    MAP: MapOptions,
}


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where what a job finds is made searchable."""

    id: SourceId
    application_id: ApplicationId | None


@dataclass(slots=True)
class Crawl:
    """One job, as its tasks need it. A scrape and a batch visit what they name, and no links."""

    job_id: JobId
    organisation_id: OrganisationId
    options: VisitOptions
    robots_agent: str
    access: KnownAccess
    noise: Patterns
    # How what is stored of a page is read.
    extraction: ExtractOptions
    spread: "Spread | None" = None
    cookies: CookieJar = field(default_factory=CookieJar)
    sites: dict[str, SiteId] = field(default_factory=dict)
    sources: dict[SiteId, SourceRef] = field(default_factory=dict)

    def key(self, url: str) -> str:
        """Return what must be there once in this job for a URL."""
        return url if self.spread is None else self.spread.key(url)


@dataclass(frozen=True, slots=True)
class Spread:
    """How a crawl goes on from page to page."""

    options: CrawlOptions
    scope: Scope
    judge: LinkJudge

    def key(self, url: str) -> str:
        return similar_key(url) if self.options.similar_urls_once else url


@dataclass(slots=True)
class Crawls:
    """Reads a job's options once; a job that was not needed for long is forgotten."""

    database: Database
    settings: Settings
    robots: RobotsFiles
    _known: OrderedDict[JobId, Crawl] = field(default_factory=OrderedDict)

    async def of(self, job_id: JobId) -> Crawl:
        crawl = self._known.get(job_id)
        if crawl is None:
            async with self.database.system_tx() as conn:
                row = await jobs.get(conn, job_id)
            options = options_of(row.kind, row.options)
            crawl = self._known[job_id] = self.make(job_id, row.organisation_id, options)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(job_id)
        return crawl

    async def site_of(self, crawl: Crawl, origin: str) -> SiteId:
        """Return the site that pages of this origin belong to."""
        if crawl.options.site_id is not None:
            return crawl.options.site_id
        site_id = crawl.sites.get(origin)
        if site_id is None:
            async with self.database.system_tx() as conn:
                site_id = await sites.implicit(conn, crawl.organisation_id, origin)
            crawl.sites[origin] = site_id
        return site_id

    async def source_of(self, crawl: Crawl, site_id: SiteId) -> SourceRef | None:
        """Return the source that pages of a site go into; None where they are not to be searched."""
        options = crawl.options
        if not options.index or options.scrape.zero_data_retention or not options.scrape.store:
            return None
        found = crawl.sources.get(site_id)
        if found is None:
            async with self.database.system_tx() as conn:
                row = await self._source(conn, crawl, site_id)
                if row.job_id != crawl.job_id:
                    await sources.begin(conn, [row.id], crawl.job_id)
            found = crawl.sources[site_id] = SourceRef(row.id, row.application_id)
        return found

    async def _source(self, conn: Connection, crawl: Crawl, site_id: SiteId) -> SourceRow:
        if crawl.options.source_id is not None:
            return await sources.get(conn, crawl.organisation_id, crawl.options.source_id)
        site = await stored_sites.get_site(conn, site_id=site_id)
        name = str(site_id) if site is None else site.base_url
        new = NewSource(
            organisation_id=crawl.organisation_id,
            kind="site",
            uri=name,
            config=default_config(self.settings),
            site_id=site_id,
        )
        return await sources.of_site(conn, new, site_id)

    def make(self, job_id: JobId, organisation_id: OrganisationId, options: VisitOptions) -> Crawl:
        """Return what the tasks of a job need, from its options."""
        robots_agent = options.robots_user_agent or self.settings.user_agent
        access = KnownAccess(self.robots, robots_agent)
        spread = _spread(options, access) if isinstance(options, CrawlOptions) else None
        return Crawl(
            job_id,
            organisation_id,
            options,
            robots_agent,
            access,
            options.noise(),
            options.stored_extraction,
            spread,
        )


def options_of(kind: str, stored: object) -> VisitOptions:
    """Read the options that a job of this kind was stored with."""
    return msgspec.convert(stored, _OPTIONS.get(kind, VisitOptions))


def _spread(options: CrawlOptions, access: KnownAccess) -> Spread:
    scope = Scope(options.scope_rules())
    judge = LinkJudge(
        scope,
        {} if options.ignore_robots else access,
        query=options.query,
        similar=options.similar_urls_once,
    )
    return Spread(options, scope, judge)
