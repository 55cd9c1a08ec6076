"""Sources that are fetched: a page or a site, fetched once and refreshed in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict
from trapline.knowledge import sources
from trapline.knowledge.source_config import IngestConfig
from trapline.knowledge.sources import NewSource, Provider
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId
from trapline.pipeline import submit
from trapline.pipeline.ingest import remote_crawls, source_schedules
from trapline.pipeline.ingest.source_operations import require_idle
from trapline.pipeline.kinds import StartRemoteCrawl
from trapline.pipeline.options import CrawlOptions, PageOptions, VisitOptions
from trapline.pipeline.sites import site_operations
from trapline.pipeline.sites.site_operations import CrawlOverrides
from trapline.queue import jobs
from trapline.store import sites as stored_sites

CRAWL_LIMIT: Final = 50
CRAWL_DEPTH: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """A page or a site to be fetched into a source, and how."""

    organisation_id: OrganisationId
    url: str
    config: IngestConfig
    crawl_links: bool = False
    limit: int = CRAWL_LIMIT
    max_depth: int = CRAWL_DEPTH
    application_id: ApplicationId | None = None
    member_id: MemberId | None = None
    rescrape_every: timedelta | None = None
    provider: Provider = "trapline"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the crawl or the visit."""

    @classmethod
    def repeat(cls, source: SourceRow) -> "FetchRequest":
        """Return the request that a source was last fetched by."""
        return cls(
            organisation_id=source.organisation_id,
            url=source.uri,
            config=IngestConfig(**source.config),
            crawl_links=source.kind == "site",
            application_id=source.application_id,
            member_id=None if source.created_by is None else MemberId(source.created_by),
            provider=msgspec.convert(source.provider, Provider),
            **source.fetching,
        )

    def stored(self) -> dict[str, Any]:
        """Return the part that the source's row keeps for its next fetch."""
        limits = {"limit": self.limit, "max_depth": self.max_depth} if self.crawl_links else {}
        return limits | ({"options": dict(self.options)} if self.options else {})

    def crawl_options(self, source_id: SourceId | None = None) -> CrawlOptions:
        return CrawlOptions.parse(
            **dict(self.options)
            | {
                "url": self.url,
                "limit": self.limit,
                "max_depth": self.max_depth,
                "index": True,
                "source_id": source_id,
            }
        )

    def page_options(self, source_id: SourceId | None = None) -> PageOptions:
        return PageOptions.parse(
            **dict(self.options) | {"url": self.url, "index": True, "source_id": source_id}
        )


@dataclass(frozen=True, slots=True)
class JobParameters:
    """How long the job of a source is kept, its priority and its metadata."""

    ttl: timedelta = jobs.TTL
    priority: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self, source: SourceRow, member_id: MemberId | None) -> dict[str, Any]:
        return {
            "ttl": self.ttl,
            "priority": self.priority,
            "member_id": member_id,
            "metadata": {**self.metadata, "knowledgeSourceId": str(source.id)},
        }


async def fetch(
    conn: Connection, request: FetchRequest, parameters: JobParameters | None = None
) -> tuple[SourceRow, JobId]:
    """Fetch a page or a site into its source, created on first use; return it and the job."""
    options = request.crawl_options() if request.crawl_links else request.page_options()
    source = await sources.get_or_create(
        conn,
        NewSource(
            organisation_id=request.organisation_id,
            kind="site" if request.crawl_links else "url",
            uri=options.url,
            config=request.config,
            fetching=request.stored(),
            application_id=request.application_id,
            provider=request.provider,
            rescrape_every=request.rescrape_every,
            created_by=request.member_id,
        ),
    )
    await require_idle(conn, source)
    job_id = await _start(conn, request, source, parameters or JobParameters())
    await sources.begin_job(conn, [source.id], job_id)
    updated = await queries.set_fetching(
        conn,
        source_id=source.id,
        fetching=request.stored(),
        rescrape_every=request.rescrape_every,
    )
    source = updated or source
    await source_schedules.sync(conn, source)
    return source, job_id


async def refresh(
    conn: Connection, source: SourceRow, parameters: JobParameters | None = None
) -> JobId:
    """Fetch a source again as before; the source of a registered site by the site's own config."""
    if source.kind == "file":
        raise Conflict("A file is not fetched; upload it again.")
    await require_idle(conn, source)
    parameters = parameters or JobParameters()
    if source.site_id is not None:
        job_id = await _crawl_site(conn, source, parameters)
    else:
        job_id = await _start(conn, FetchRequest.repeat(source), source, parameters)
    await sources.begin_job(conn, [source.id], job_id)
    return job_id


async def _start(
    conn: Connection, request: FetchRequest, source: SourceRow, parameters: JobParameters
) -> JobId:
    job = parameters.arguments(source, request.member_id)
    if source.provider == "firecrawl":
        crawl = _remote_request(request, source)
        return await remote_crawls.queue_crawl(conn, request.organisation_id, crawl, job)
    if request.crawl_links:
        return await submit.crawl(
            conn, request.organisation_id, request.crawl_options(source.id), **job
        )
    page = request.page_options(source.id)
    visit = msgspec.convert(
        {name: getattr(page, name) for name in VisitOptions.__struct_fields__}, VisitOptions
    )
    return await submit.batch(conn, request.organisation_id, [page.url], visit, **job)


def _remote_request(request: FetchRequest, source: SourceRow) -> StartRemoteCrawl:
    """Return the task that requests a remote crawl; a page is a crawl of one."""
    if not source.uri.startswith(("http:", "https:")):
        raise Conflict("This crawl was not requested here, so its address is not known.")
    limits = (request.limit, request.max_depth) if request.crawl_links else (1, 0)
    return StartRemoteCrawl(source.id, source.uri, *limits)


async def _crawl_site(conn: Connection, source: SourceRow, parameters: JobParameters) -> JobId:
    """Crawl the registered site of a source."""
    site = await stored_sites.find(conn, source.organisation_id, str(source.site_id))
    overrides = CrawlOverrides(
        embedded_config={"index": True},
        metadata={**parameters.metadata, "knowledgeSourceId": str(source.id)},
        priority=parameters.priority,
        trigger="schedule" if "schedule_id" in parameters.metadata else "manual",
    )
    return await site_operations.crawl(conn, site, overrides)
