"""Templates of jobs: what a schedule keeps, read when it is written and made into jobs when it ticks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, assert_never

import msgspec
from msgspec import Meta, Struct

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, VisitFailed
from trapline.frontier.url import typed_url
from trapline.knowledge import sources
from trapline.model import JobId, OrganisationId, SiteId, SourceId
from trapline.pipeline import sites, source_pages, submit
from trapline.pipeline.kinds import BATCH, CRAWL, MAP
from trapline.pipeline.options import CrawlOptions, MapOptions, PageOptions, VisitOptions
from trapline.pipeline.sites import CrawlWishes
from trapline.pipeline.source_pages import Errand
from trapline.queue.schedules import DEFAULT_IMPORTANCE, priority_of
from trapline.queue.sql.schedules import ScheduleRow
from trapline.store import sites as stored_sites

MOST_URLS: Final = 10_000
MOST_LINKS: Final = 100_000
KeepDays = Annotated[int, Meta(ge=1, le=3660)]
"""For how long a job can be read after its end; without it, for a day. The labels of a template are
its maker's own: nothing here reads them.
"""


class CrawlTemplate(Struct, frozen=True, tag="crawl", tag_field="kind", forbid_unknown_fields=True):
    """Crawl a site; the options are those of a crawl."""

    url: str
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def wishes(self, site_id: SiteId | None) -> CrawlOptions:
        return CrawlOptions.parse(**self.options | {"url": self.url}, **_of_site(site_id))


class PagesTemplate(
    Struct, frozen=True, tag="batch_scrape", tag_field="kind", forbid_unknown_fields=True
):
    """Visit these pages and follow no links."""

    urls: Annotated[list[str], Meta(min_length=1, max_length=MOST_URLS)]
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def wishes(self, site_id: SiteId | None) -> VisitOptions:
        return VisitOptions.parse(**self.options, **_of_site(site_id))

    def typed(self) -> list[str]:
        """Return each URL once, in canonical form."""
        return list(dict.fromkeys(map(_typed, self.urls)))


class PageTemplate(Struct, frozen=True, tag="scrape", tag_field="kind", forbid_unknown_fields=True):
    """Visit one page."""

    url: str
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def wishes(self, site_id: SiteId | None) -> PageOptions:
        return PageOptions.parse(**self.options | {"url": self.url}, **_of_site(site_id))


class MapTemplate(Struct, frozen=True, tag="map", tag_field="kind", forbid_unknown_fields=True):
    """Find the URLs of a site."""

    url: str
    options: dict[str, Any] = {}
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def wishes(self, site_id: SiteId | None) -> MapOptions:
        return MapOptions.parse(**self.options | {"url": self.url}, **_of_site(site_id))


class SourceTemplate(
    Struct, frozen=True, tag="source", tag_field="kind", forbid_unknown_fields=True
):
    """Fetch a knowledge source again, as it was fetched."""

    source_id: SourceId
    keep_days: KeepDays | None = None
    labels: dict[str, Any] = {}

    def wishes(self, site_id: SiteId | None) -> None:
        if site_id is not None:
            raise InvalidInput("A knowledge source is fetched as it was fetched, for no site.")


Template = CrawlTemplate | PagesTemplate | PageTemplate | MapTemplate | SourceTemplate


def read(template: Mapping[str, Any], site_id: SiteId | None = None) -> Template:
    """Check a template as far as that is possible before it is used."""
    try:
        parsed: Template = msgspec.convert(template, Template)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The template is not of a job: {error}") from None
    parsed.wishes(site_id)
    if isinstance(parsed, PagesTemplate):
        parsed.typed()
    return parsed


def typed_in(
    urls: Sequence[str], *, pages: bool, limit: int, only_map: bool = False
) -> dict[str, Any]:
    """Make a template of what a person types: a crawl or a map from one URL, or a visit to each of
    many.
    """
    if pages and only_map:
        raise InvalidInput("A job visits pages or makes a map, not both.")
    if pages:
        return {"kind": BATCH, "urls": list(urls)}
    if only_map and len(urls) == 1:
        return {"kind": MAP, "url": urls[0], "options": {"limit": min(limit, MOST_LINKS)}}
    if len(urls) != 1:
        raise InvalidInput("A crawl starts at one URL; with --pages a list is visited.")
    return {"kind": CRAWL, "url": urls[0], "options": {"limit": limit}}


@dataclass(frozen=True, slots=True)
class Order:
    """A template with whose it is and how much it matters: 1 to 10, higher first."""

    organisation_id: OrganisationId
    template: Mapping[str, Any]
    importance: int = DEFAULT_IMPORTANCE
    site_id: SiteId | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


async def create(conn: Connection, schedule: ScheduleRow, tick: datetime) -> JobId:
    """Make the job of a schedule's tick."""
    order = Order(
        schedule.organisation_id,
        schedule.template,
        schedule.importance,
        schedule.site_id,
        {"schedule_id": str(schedule.id), "tick": tick.isoformat()},
    )
    return await place(conn, order)


async def place(conn: Connection, order: Order) -> JobId:
    """Make the job that a template describes."""
    template = read(order.template, order.site_id)
    urgency: dict[str, Any] = {
        "priority": priority_of(order.importance),
        "metadata": order.metadata,
    }
    if template.keep_days is not None:
        urgency["ttl"] = timedelta(days=template.keep_days)
    match template:
        case CrawlTemplate() if order.site_id is not None:
            return await _crawl_site(conn, order, template)
        case CrawlTemplate():
            return await submit.crawl(
                conn, order.organisation_id, template.wishes(order.site_id), **urgency
            )
        case PagesTemplate():
            return await submit.batch(
                conn,
                order.organisation_id,
                template.typed(),
                template.wishes(order.site_id),
                **urgency,
            )
        case PageTemplate():
            return await submit.scrape(
                conn, order.organisation_id, template.wishes(order.site_id), **urgency
            )
        case MapTemplate():
            return await submit.map_(
                conn, order.organisation_id, template.wishes(order.site_id), **urgency
            )
        case SourceTemplate():
            source = await sources.get(conn, order.organisation_id, template.source_id)
            return await source_pages.refresh(conn, source, Errand(**urgency))
        case _:
            assert_never(template)


async def _crawl_site(conn: Connection, order: Order, template: CrawlTemplate) -> JobId:
    """Crawl a site with its own config; the template's options are put over it."""
    site = await stored_sites.find(conn, order.organisation_id, str(order.site_id))
    wishes = CrawlWishes(
        embedded_config=template.options | {"url": template.url},
        metadata=order.metadata,
        priority=priority_of(order.importance),
        trigger="schedule" if "schedule_id" in order.metadata else "manual",
    )
    return await sites.crawl(conn, site, wishes)


def _of_site(site_id: SiteId | None) -> dict[str, Any]:
    return {} if site_id is None else {"site_id": site_id}


def _typed(url: str) -> str:
    try:
        return typed_url(url)
    except VisitFailed as error:
        raise InvalidInput(f"{url!r}: {error.message}") from None
