"""Job contexts, cached per process: a job's options, scope, link filter, cookies and sites."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.fetch import CookieJar
from trapline.frontier.canonical_url import similar_key
from trapline.frontier.link_filter import LinkFilter
from trapline.frontier.patterns import Patterns
from trapline.frontier.priority import traffic_priorities
from trapline.frontier.scope import Scope
from trapline.knowledge import sources
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.sources import NewSource, SourceRef
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ExtractOptions, JobId, OrganisationId, SiteId
from trapline.pipeline.crawl.robots_cache import CachedAccess, RobotsCache
from trapline.pipeline.kinds import CRAWL, MAP, SCRAPE
from trapline.pipeline.options import CrawlOptions, MapOptions, PageOptions, VisitOptions
from trapline.queue import jobs
from trapline.settings import Settings
from trapline.store import sites
from trapline.store.sql import sites as stored_sites

_CACHED_JOBS: Final = 500
_OPTIONS: Final[dict[str, type[VisitOptions]]] = {
    CRAWL: CrawlOptions,
    SCRAPE: PageOptions,
    MAP: MapOptions,
}


@dataclass(slots=True)
class JobContext:
    """The context of one job's tasks. Only a crawl has `following`."""

    job_id: JobId
    organisation_id: OrganisationId
    options: VisitOptions
    robots_agent: str
    access: CachedAccess
    noise: Patterns
    # How what is stored of a page is read.
    extraction: ExtractOptions
    # How its pages are asked for.
    variant: bytes
    following: "LinkFollowing | None" = None
    cookies: CookieJar = field(default_factory=CookieJar)
    sites: dict[str, SiteId] = field(default_factory=dict)
    sources: dict[SiteId, SourceRef] = field(default_factory=dict)

    def key(self, url: str) -> str:
        """Return the key by which this job visits a URL once."""
        return url if self.following is None else self.following.key(url)


@dataclass(frozen=True, slots=True)
class LinkFollowing:
    """How a crawl follows links from page to page."""

    options: CrawlOptions
    scope: Scope
    link_filter: LinkFilter
    # Priorities by path, from the views of pages.
    traffic: Mapping[str, int] = field(default_factory=dict)

    def key(self, url: str) -> str:
        return similar_key(url) if self.options.similar_urls_once else url


@dataclass(slots=True)
class JobContexts:
    """Loads the context of a job once; the least recently used is evicted."""

    database: Database
    settings: Settings
    robots: RobotsCache
    _cache: OrderedDict[JobId, JobContext] = field(default_factory=OrderedDict)

    async def of(self, job_id: JobId) -> JobContext:
        context = self._cache.get(job_id)
        if context is None:
            async with self.database.system_tx() as conn:
                row = await jobs.get(conn, job_id)
            options = options_of(row.kind, row.options)
            context = self._cache[job_id] = self.make(job_id, row.organisation_id, options)
            if len(self._cache) > _CACHED_JOBS:
                self._cache.popitem(last=False)
        self._cache.move_to_end(job_id)
        return context

    async def site_of(self, context: JobContext, origin: str) -> SiteId:
        """Return the site that pages of this origin belong to."""
        if context.options.site_id is not None:
            return context.options.site_id
        site_id = context.sites.get(origin)
        if site_id is None:
            async with self.database.system_tx() as conn:
                site_id = await sites.get_or_create_implicit(
                    conn, context.organisation_id, origin, context.variant
                )
            context.sites[origin] = site_id
        return site_id

    async def source_of(self, context: JobContext, site_id: SiteId) -> SourceRef | None:
        """Return the source that a site's pages are indexed in; None for a job that does not index."""
        options = context.options
        if not options.index or options.scrape.zero_data_retention or not options.scrape.store:
            return None
        found = context.sources.get(site_id)
        if found is None:
            async with self.database.system_tx() as conn:
                row = await self._source(conn, context, site_id)
                if row.job_id != context.job_id:
                    await sources.begin_job(conn, [row.id], context.job_id)
            found = context.sources[site_id] = SourceRef(row.id, row.application_id)
        return found

    async def _source(self, conn: Connection, context: JobContext, site_id: SiteId) -> SourceRow:
        if context.options.source_id is not None:
            return await sources.get(conn, context.organisation_id, context.options.source_id)
        site = await stored_sites.get_site(conn, site_id=site_id)
        name = str(site_id) if site is None else site.base_url
        new = NewSource(
            organisation_id=context.organisation_id,
            kind="site",
            uri=name,
            config=default_config(self.settings.embedding),
            site_id=site_id,
        )
        return await sources.get_or_create_for_site(conn, new, site_id)

    def make(
        self, job_id: JobId, organisation_id: OrganisationId, options: VisitOptions
    ) -> JobContext:
        """Return the context of a job with these options."""
        robots_agent = options.robots_user_agent or self.settings.fetch.user_agent
        access = CachedAccess(self.robots, robots_agent)
        following = _link_following(options, access) if isinstance(options, CrawlOptions) else None
        return JobContext(
            job_id,
            organisation_id,
            options,
            robots_agent,
            access,
            options.noise(),
            options.stored_extraction,
            options.variant,
            following,
        )


def options_of(kind: str, stored: object) -> VisitOptions:
    """Parse the stored options of a job of this kind."""
    return msgspec.convert(stored, _OPTIONS.get(kind, VisitOptions))


def _link_following(options: CrawlOptions, access: CachedAccess) -> LinkFollowing:
    scope = Scope(options.scope_rules())
    link_filter = LinkFilter(
        scope,
        {} if options.ignore_robots else access,
        query=options.query,
        similar=options.similar_urls_once,
    )
    return LinkFollowing(options, scope, link_filter, traffic_priorities(options.traffic))
