"""Templates of jobs: what a schedule keeps, read when it is written and made into jobs when it ticks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from trapline.db.connection import Connection
from trapline.errors import InvalidInput, VisitFailed
from trapline.frontier.url import typed_url
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline import submit
from trapline.pipeline.kinds import PAGE, PageTask, crawl_kinds
from trapline.pipeline.options import CrawlOptions
from trapline.queue import jobs
from trapline.queue.jobs import NewJob
from trapline.queue.schedules import DEFAULT_IMPORTANCE, priority_of
from trapline.queue.sql.schedules import ScheduleRow
from trapline.queue.tasks import NewTask, Unique

MOST_URLS: Final = 10_000
PAGES = "batch_scrape"


class CrawlTemplate(Struct, frozen=True, tag="crawl", tag_field="kind", forbid_unknown_fields=True):
    """Crawl a site; the options are those of a crawl."""

    url: str
    options: dict[str, Any] = {}


class PagesTemplate(Struct, frozen=True, tag=PAGES, tag_field="kind", forbid_unknown_fields=True):
    """Visit these pages and follow no links."""

    urls: Annotated[list[str], Meta(min_length=1, max_length=MOST_URLS)]
    options: dict[str, Any] = {}


Template = CrawlTemplate | PagesTemplate
KINDS: Final[tuple[Literal["crawl", "batch_scrape"], ...]] = ("crawl", "batch_scrape")


def read(
    template: Mapping[str, Any], site_id: SiteId | None = None
) -> tuple[Template, CrawlOptions]:
    """Check a template as far as that is possible before it is used."""
    try:
        parsed = msgspec.convert(template, Template)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The template is not of a job: {error}") from None
    return parsed, _options(parsed, site_id)


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
    template, options = read(order.template, order.site_id)
    priority = priority_of(order.importance)
    if isinstance(template, CrawlTemplate):
        return await submit.crawl(
            conn, order.organisation_id, options, priority=priority, metadata=order.metadata
        )
    job = NewJob(
        PAGES,
        order.organisation_id,
        priority=priority,
        limit=options.limit,
        max_active=options.max_concurrency,
        options=msgspec.to_builtins(options),
        metadata=order.metadata,
    )
    tasks = [
        NewTask(PAGE, PageTask(url=url), gate=submit.host_gate(options, url), unique=Unique(url))
        for url in map(_typed, template.urls)
    ]
    await jobs.submit(conn, crawl_kinds(), job, tasks, now=datetime.now(UTC))
    return job.id


def _options(template: Template, site_id: SiteId | None) -> CrawlOptions:
    given = dict(template.options)
    if site_id is not None:
        given["site_id"] = site_id
    if isinstance(template, CrawlTemplate):
        return CrawlOptions.parse(**given | {"url": template.url})
    urls = [_typed(url) for url in template.urls]
    # A list has no section and no neighbours: what it names is what is visited, and redirects may
    # lead anywhere.
    fixed = {"url": urls[0], "limit": len(urls), "max_depth": 0, "external_links": True}
    return CrawlOptions.parse(**given | fixed | {"sitemap": "skip"})


def _typed(url: str) -> str:
    try:
        return typed_url(url)
    except VisitFailed as error:
        raise InvalidInput(f"{url!r}: {error.message}") from None
