"""Job templates: a schedule stores one, checked when it is saved and made into a job at each tick."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, assert_never

import msgspec
from msgspec import Meta, Struct

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, VisitFailed
from trapline.frontier.canonical_url import typed_url
from trapline.knowledge import sources
from trapline.model import JobId, OrganisationId, SiteId, SourceId
from trapline.pipeline import owned_references, submit
from trapline.pipeline.ingest import source_pages
from trapline.pipeline.ingest.source_pages import JobParameters
from trapline.pipeline.kinds import BATCH, CRAWL, MAP
from trapline.pipeline.options import CrawlOptions, MapOptions, PageOptions, VisitOptions
from trapline.pipeline.sites import site_operations
from trapline.pipeline.sites.site_operations import CrawlOverrides
from trapline.queue.schedule.schedules import DEFAULT_IMPORTANCE, Plan, priority_of
from trapline.queue.sql.schedules import ScheduleRow
from trapline.store import sites as stored_sites

MAX_URLS: Final = 10_000
MAX_LINKS: Final = 100_000
KeepDays = Annotated[int, Meta(ge=1, le=3660)]
"""How long a job can be read after its end; one day by default. The labels of a template belong to
its author: nothing here reads them.
"""


class CrawlTemplate(Struct, frozen=True, tag="crawl", tag_field="kind", forbid_unknown_fields=True):
    """Crawl a site; the options are those of a crawl."""

    url: str
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def options_for(self, site_id: SiteId | None) -> CrawlOptions:
        return CrawlOptions.parse(**self.options | {"url": self.url} | _site_option(site_id))


class PagesTemplate(
    Struct, frozen=True, tag="batch_scrape", tag_field="kind", forbid_unknown_fields=True
):
    """Visit these pages and follow no links."""

    urls: Annotated[list[str], Meta(min_length=1, max_length=MAX_URLS)]
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def options_for(self, site_id: SiteId | None) -> VisitOptions:
        return VisitOptions.parse(**self.options | _site_option(site_id))

    def canonical_urls(self) -> list[str]:
        """Return each URL once, in canonical form."""
        return list(dict.fromkeys(map(_canonical, self.urls)))


class PageTemplate(Struct, frozen=True, tag="scrape", tag_field="kind", forbid_unknown_fields=True):
    """Visit one page."""

    url: str
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def options_for(self, site_id: SiteId | None) -> PageOptions:
        return PageOptions.parse(**self.options | {"url": self.url} | _site_option(site_id))


class MapTemplate(Struct, frozen=True, tag="map", tag_field="kind", forbid_unknown_fields=True):
    """Find the URLs of a site."""

    url: str
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def options_for(self, site_id: SiteId | None) -> MapOptions:
        return MapOptions.parse(**self.options | {"url": self.url} | _site_option(site_id))


class SourceTemplate(
    Struct, frozen=True, tag="source", tag_field="kind", forbid_unknown_fields=True
):
    """Fetch a knowledge source again, as it was fetched."""

    source_id: SourceId
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def options_for(self, site_id: SiteId | None) -> None:
        if site_id is not None:
            raise InvalidInput("A knowledge source is fetched with its own options: give no site.")


Template = CrawlTemplate | PagesTemplate | PageTemplate | MapTemplate | SourceTemplate


def parse(template: Mapping[str, Any], site_id: SiteId | None = None) -> Template:
    """Parse and check a template, as far as that is possible before it runs."""
    try:
        parsed: Template = msgspec.convert(template, Template)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The job template is not valid: {error}") from None
    parsed.options_for(site_id)
    if isinstance(parsed, PagesTemplate):
        parsed.canonical_urls()
    return parsed


async def require_owned(conn: Connection, organisation_id: OrganisationId, plan: Plan) -> None:
    """NotFound if a schedule names something that its organisation does not have."""
    await owned_references.require_site(conn, organisation_id, plan.site_id)
    await owned_references.require_application(conn, organisation_id, plan.application_id)
    template = parse(plan.template, plan.site_id)
    if isinstance(template, SourceTemplate):
        await owned_references.require_source(conn, organisation_id, template.source_id)
    else:
        options = template.options_for(plan.site_id)
        await owned_references.require_options(conn, organisation_id, options)


def from_arguments(
    urls: Sequence[str], *, pages: bool, limit: int, only_map: bool = False
) -> dict[str, Any]:
    """Return the template for command-line arguments: a crawl or a map of one URL, or a visit to each
    of many.
    """
    if pages and only_map:
        raise InvalidInput("A job visits pages or makes a map, not both.")
    if pages:
        return {"kind": BATCH, "urls": list(urls)}
    if only_map and len(urls) == 1:
        return {"kind": MAP, "url": urls[0], "options": {"limit": min(limit, MAX_LINKS)}}
    if len(urls) != 1:
        raise InvalidInput("A crawl starts at one URL; use --pages to visit a list.")
    return {"kind": CRAWL, "url": urls[0], "options": {"limit": limit}}


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A template with its owner and its importance: 1 to 10, higher first."""

    organisation_id: OrganisationId
    template: Mapping[str, Any]
    importance: int = DEFAULT_IMPORTANCE
    site_id: SiteId | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


async def create_scheduled_job(conn: Connection, schedule: ScheduleRow, tick: datetime) -> JobId:
    """Create the job of a schedule's tick."""
    request = JobRequest(
        schedule.organisation_id,
        schedule.template,
        schedule.importance,
        schedule.site_id,
        {"schedule_id": str(schedule.id), "tick": tick.isoformat()},
    )
    return await create_job(conn, request)


async def create_job(conn: Connection, request: JobRequest) -> JobId:
    """Create the job that a template describes."""
    template = parse(request.template, request.site_id)
    settings: dict[str, Any] = {
        "priority": priority_of(request.importance),
        "metadata": request.metadata,
    }
    if template.keep_days is not None:
        settings["ttl"] = timedelta(days=template.keep_days)
    match template:
        case CrawlTemplate() if request.site_id is not None:
            return await _crawl_site(conn, request, template)
        case CrawlTemplate():
            return await submit.crawl(
                conn, request.organisation_id, template.options_for(request.site_id), **settings
            )
        case PagesTemplate():
            return await submit.batch(
                conn,
                request.organisation_id,
                template.canonical_urls(),
                template.options_for(request.site_id),
                **settings,
            )
        case PageTemplate():
            return await submit.scrape(
                conn, request.organisation_id, template.options_for(request.site_id), **settings
            )
        case MapTemplate():
            return await submit.map_(
                conn, request.organisation_id, template.options_for(request.site_id), **settings
            )
        case SourceTemplate():
            source = await sources.get(conn, request.organisation_id, template.source_id)
            return await source_pages.refresh(conn, source, JobParameters(**settings))
        case _:
            assert_never(template)


async def _crawl_site(conn: Connection, request: JobRequest, template: CrawlTemplate) -> JobId:
    """Crawl a site with its own config, overridden by the template's options."""
    site = await stored_sites.find(conn, request.organisation_id, str(request.site_id))
    wishes = CrawlOverrides(
        embedded_config=template.options | {"url": template.url},
        metadata=request.metadata,
        priority=priority_of(request.importance),
        trigger="schedule" if "schedule_id" in request.metadata else "manual",
    )
    return await site_operations.crawl(conn, site, wishes)


def _site_option(site_id: SiteId | None) -> dict[str, Any]:
    return {} if site_id is None else {"site_id": site_id}


def _canonical(url: str) -> str:
    try:
        return typed_url(url)
    except VisitFailed as error:
        raise InvalidInput(f"{url!r}: {error.message}") from None
