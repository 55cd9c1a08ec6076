"""Filling sources with pages: a page or a site is fetched, and fetched again in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import msgspec

from trapline.db.connection import Connection
from trapline.errors import Conflict
from trapline.knowledge import sources
from trapline.knowledge.config import IngestConfig
from trapline.knowledge.sources import NewSource, Provider
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId
from trapline.pipeline import remote_crawls, sites, source_schedules, submit
from trapline.pipeline.ingestion import refuse_busy
from trapline.pipeline.kinds import AskTask
from trapline.pipeline.options import CrawlOptions, PageOptions, VisitOptions
from trapline.pipeline.sites import CrawlWishes
from trapline.queue import jobs
from trapline.store import sites as stored_sites

CRAWL_LIMIT: Final = 50
CRAWL_DEPTH: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A page or a site to be fetched into a source."""

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
    def again(cls, source: SourceRow) -> "Wanted":
        """What was asked for when a source was fetched last."""
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

    def kept(self) -> dict[str, Any]:
        """What a source keeps of this, so that it is fetched again in the same way."""
        limits = {"limit": self.limit, "max_depth": self.max_depth} if self.crawl_links else {}
        return limits | ({"options": dict(self.options)} if self.options else {})

    def crawl(self, source_id: SourceId | None = None) -> CrawlOptions:
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

    def page(self, source_id: SourceId | None = None) -> PageOptions:
        return PageOptions.parse(
            **dict(self.options) | {"url": self.url, "index": True, "source_id": source_id}
        )


@dataclass(frozen=True, slots=True)
class Errand:
    """How the job of a source is made: for how long it is kept, how urgent it is, what it carries."""

    ttl: timedelta = jobs.TTL
    priority: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def of(self, source: SourceRow, member_id: MemberId | None) -> dict[str, Any]:
        return {
            "ttl": self.ttl,
            "priority": self.priority,
            "member_id": member_id,
            "metadata": {**self.metadata, "knowledgeSourceId": str(source.id)},
        }


async def fetch(
    conn: Connection, wanted: Wanted, errand: Errand | None = None
) -> tuple[SourceRow, JobId]:
    """Fetch a page or a site into its source, made on first use; return it with the job."""
    checked = wanted.crawl() if wanted.crawl_links else wanted.page()
    source = await sources.ensure(
        conn,
        NewSource(
            organisation_id=wanted.organisation_id,
            kind="site" if wanted.crawl_links else "url",
            uri=checked.url,
            config=wanted.config,
            fetching=wanted.kept(),
            application_id=wanted.application_id,
            provider=wanted.provider,
            rescrape_every=wanted.rescrape_every,
            created_by=wanted.member_id,
        ),
    )
    await refuse_busy(conn, source)
    job_id = await _start(conn, wanted, source, errand or Errand())
    await sources.begin(conn, [source.id], job_id)
    changed = await queries.set_fetching(
        conn,
        source_id=source.id,
        fetching=wanted.kept(),
        rescrape_every=wanted.rescrape_every,
    )
    source = changed or source
    await source_schedules.follow(conn, source)
    return source, job_id


async def refresh(conn: Connection, source: SourceRow, errand: Errand | None = None) -> JobId:
    """Fetch a source again, as it was fetched; that of a whole site as its site is crawled."""
    if source.kind == "file":
        raise Conflict("A file is not fetched; upload it again.")
    await refuse_busy(conn, source)
    errand = errand or Errand()
    if source.site_id is not None:
        job_id = await _crawl_site(conn, source, errand)
    else:
        job_id = await _start(conn, Wanted.again(source), source, errand)
    await sources.begin(conn, [source.id], job_id)
    return job_id


async def _start(conn: Connection, wanted: Wanted, source: SourceRow, errand: Errand) -> JobId:
    how = errand.of(source, wanted.member_id)
    if source.provider == "firecrawl":
        asked = _asked(wanted, source)
        return await remote_crawls.commission(conn, wanted.organisation_id, asked, how)
    if wanted.crawl_links:
        return await submit.crawl(conn, wanted.organisation_id, wanted.crawl(source.id), **how)
    page = wanted.page(source.id)
    visit = msgspec.convert(
        {name: getattr(page, name) for name in VisitOptions.__struct_fields__}, VisitOptions
    )
    return await submit.batch(conn, wanted.organisation_id, [page.url], visit, **how)


def _asked(wanted: Wanted, source: SourceRow) -> AskTask:
    """What a Firecrawl elsewhere is asked for: a page is a crawl of one."""
    if not source.uri.startswith(("http:", "https:")):
        raise Conflict("Someone else asked for that crawl: its address is not known here.")
    limits = (wanted.limit, wanted.max_depth) if wanted.crawl_links else (1, 0)
    return AskTask(source.id, source.uri, *limits)


async def _crawl_site(conn: Connection, source: SourceRow, errand: Errand) -> JobId:
    """Crawl the site whose pages a source holds, with the site's own config."""
    site = await stored_sites.find(conn, source.organisation_id, str(source.site_id))
    wishes = CrawlWishes(
        embedded_config={"index": True},
        metadata={**errand.metadata, "knowledgeSourceId": str(source.id)},
        priority=errand.priority,
        trigger="schedule" if "schedule_id" in errand.metadata else "manual",
    )
    return await sites.crawl(conn, site, wishes)
