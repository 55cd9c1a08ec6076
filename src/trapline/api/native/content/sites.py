"""`/api/sites`: managed websites, how they are crawled, and their crawl history."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.native.jobs import exports
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant, Writer, actor_name
from trapline.db.keyset import Order, Size, Start
from trapline.db.pool import Database
from trapline.pipeline.reports import page_export
from trapline.pipeline.sites import site_config
from trapline.pipeline.sites import site_operations as pipeline
from trapline.queue.schedule.schedules import DEFAULT_IMPORTANCE, priority_of
from trapline.store import sites
from trapline.store.sql import sites as queries

router = APIRouter(prefix="/api/sites", tags=["sites"])

Status = Literal["active", "inactive"]
_CONFIGS = Order(
    queries.config_history, ("before",), lambda row: row.number, Start(2**31 - 1, Size)
)
Name = Annotated[
    str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f]*$", examples=["docs-site"])
]
Address = Annotated[str, Field(min_length=1, max_length=16_000, examples=["https://example.com/"])]
Config = Annotated[
    dict[str, Any],
    Field(
        description="How it is crawled: max_depth, allowed_domains, include, exclude, formats, "
        "rate, retention, index, schedule, ignore_selectors, ignore_patterns and more. "
        "`${name}` stands for a variable of the crawl.",
        examples=[
            {
                "max_depth": 5,
                "include": ["^/docs/"],
                "rate": 120,
                "retention": {"versions": 20, "days": 365},
                "ignore_patterns": ["^Last updated"],
                "index": True,
            }
        ],
    ),
]


class Site(BaseModel):
    """A website under management."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    name: str
    base_url: str
    implicit: Annotated[bool, Field(description="Made by a crawl that named no site.")]
    status: Status
    config: dict[str, Any]
    config_number: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime


class NewSite(BaseModel):
    """What is needed to register one."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    base_url: Address
    config: Config = {}


class SiteChange(BaseModel):
    """What is to change; what is left out stays. The config is replaced as a whole."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    base_url: Address | None = None
    status: Status | None = None
    config: Config | None = None
    note: Annotated[str | None, Field(max_length=1000, description="Why, for the history.")] = None


class SiteCount(BaseModel):
    """How many there are."""

    count: int


class ConfigVersion(BaseModel):
    """A config that a site had."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    config: dict[str, Any]
    created_by: str | None
    note: str | None
    created_at: datetime


class Rollback(BaseModel):
    """Which config is to be the present one again."""

    model_config = ConfigDict(extra="forbid")

    number: Annotated[int, Field(ge=1, le=2**31 - 1, examples=[3])]


class NewCrawl(BaseModel):
    """What this crawl puts over the site's config."""

    model_config = ConfigDict(extra="forbid")

    embedded_config: Annotated[
        dict[str, Any],
        Field(
            description="Fields of a site's config, and `url` for another start.",
            examples=[{"limit": 100}],
        ),
    ] = {}
    variables: Annotated[
        dict[str, str | int | float],
        Field(max_length=1000, description="Values for `${name}`.", examples=[{"version": "3.1"}]),
    ] = {}
    metadata: Annotated[dict[str, Any], Field(max_length=1000)] = {}
    priority: Annotated[int, Field(ge=1, le=10, description="Higher runs first.")] = (
        DEFAULT_IMPORTANCE
    )


class StartedCrawl(BaseModel):
    """The job that crawls."""

    job_id: UUID


@router.get("")
async def list_sites(
    conn: Tenant,
    principal: Reader,
    status: Annotated[Status | None, Query()] = None,
    implicit: Annotated[bool | None, Query(description="Made by crawls, or by people.")] = None,
    name: Annotated[str | None, Query(max_length=300)] = None,
    sort: sites.SiteOrder = "oldest",
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[Site]:
    """List sites: oldest, newest or last updated first, or by name."""
    if name is not None:
        row = await queries.site_by_name(conn, organisation_id=principal.organisation_id, name=name)
        return Page(items=[] if row is None else [Site.model_validate(row)], next=None)
    selected = sites.sites_of(principal.organisation_id, status=status, implicit=implicit)
    rows, following = await pagination.read_page(conn, selected, sort, cursor, most)
    return Page(items=[Site.model_validate(row) for row in rows], next=following)


@router.post("", status_code=201)
async def create_site(conn: Tenant, principal: Writer, new: NewSite) -> Site:
    """Register a site."""
    base_url = site_config.base_url_of(new.base_url)
    row = await pipeline.create(
        conn,
        principal.organisation_id,
        new.name,
        base_url,
        config=site_config.validate_config(new.config, base_url),
        created_by=actor_name(principal),
    )
    return Site.model_validate(row)


@router.get("/count")
async def count_sites(
    conn: Tenant,
    principal: Reader,
    status: Annotated[Status | None, Query()] = None,
    implicit: Annotated[bool | None, Query()] = None,
) -> SiteCount:
    """Count sites."""
    return SiteCount(
        count=await queries.count_sites(
            conn, organisation_id=principal.organisation_id, status=status, implicit=implicit
        )
    )


@router.get("/{reference}")
async def get_site(conn: Tenant, principal: Reader, reference: str) -> Site:
    """Find a site by its id or its name."""
    return Site.model_validate(await sites.find(conn, principal.organisation_id, reference))


@router.patch("/{reference}")
async def change_site(conn: Tenant, principal: Writer, reference: str, change: SiteChange) -> Site:
    """Change a site. A new config joins its history."""
    site = await sites.find(conn, principal.organisation_id, reference)
    base_url = None if change.base_url is None else site_config.base_url_of(change.base_url)
    config = None
    if change.config is not None:
        config = site_config.validate_config(change.config, base_url or site.base_url)
    row = await pipeline.update(
        conn,
        site,
        sites.SiteUpdate(change.name, base_url, change.status, config, change.note),
        by=actor_name(principal),
    )
    return Site.model_validate(row)


@router.delete("/{reference}", status_code=204)
async def delete_site(
    conn: Tenant,
    principal: Writer,
    reference: str,
    purge: Annotated[bool, Query(description="Remove everything under it, too.")] = False,
) -> None:
    """Delete a site: its name is free again, its jobs end. What it holds stays until it is purged."""
    site = await sites.find(conn, principal.organisation_id, reference)
    await pipeline.delete(conn, site, purge=purge, by=actor_name(principal))


@router.post("/{reference}/purge", status_code=202)
async def purge_site(conn: Tenant, principal: Writer, reference: str) -> Site:
    """Delete a site with all of its pages, versions, changes, visits and jobs, in the background.

    A site that was deleted before is named by its id.
    """
    site = await sites.find_to_purge(conn, principal.organisation_id, reference)
    await pipeline.delete(conn, site, purge=True, by=actor_name(principal))
    return Site.model_validate(site)


@router.get("/{reference}/history")
async def list_configs(
    conn: Tenant, principal: Reader, reference: str, cursor: Cursor = None, most: Most = 50
) -> Page[ConfigVersion]:
    """List a site's configs, newest first."""
    site = await sites.find(conn, principal.organisation_id, reference)
    filters = {"site_id": site.id}
    rows, following = await pagination.read_order(conn, _CONFIGS, filters, cursor, most)
    return Page(items=[ConfigVersion.model_validate(row) for row in rows], next=following)


@router.post("/{reference}/rollback")
async def roll_back_config(
    conn: Tenant, principal: Writer, reference: str, rollback: Rollback
) -> Site:
    """Make an earlier config the present one, under a new number."""
    site = await sites.find(conn, principal.organisation_id, reference)
    row = await pipeline.rollback(conn, site, rollback.number, by=actor_name(principal))
    return Site.model_validate(row)


@router.post("/{reference}/crawl", status_code=202)
async def crawl_site(
    conn: Tenant, principal: Writer, reference: str, body: NewCrawl | None = None
) -> StartedCrawl:
    """Crawl a site now, with its config and what this crawl puts over it."""
    overrides = body or NewCrawl()
    site = await sites.find(conn, principal.organisation_id, reference)
    job_id = await pipeline.crawl(
        conn,
        site,
        pipeline.CrawlOverrides(
            overrides.embedded_config,
            overrides.variables,
            overrides.metadata,
            priority_of(overrides.priority),
            trigger="api",
        ),
    )
    return StartedCrawl(job_id=job_id)


@router.get("/{reference}/export", response_class=StreamingResponse)
async def export_site(
    request: Request,
    conn: Tenant,
    principal: Reader,
    reference: str,
    format_: Annotated[exports.ExportFormat, Query(alias="format")] = "jsonl",
) -> StreamingResponse:
    """Download the pages that a site has: JSON lines, CSV, a zip of markdown files, or all visits to
    it as WARC.
    """
    site = await sites.find(conn, principal.organisation_id, reference)
    database: Database = request.app.state.database
    return exports.download(
        database,
        exports.Chosen(site.organisation_id, site_id=site.id),
        page_export.pages_of_site(database, site.organisation_id, site.id),
        format_,
        name=str(site.id),
    )


@router.post("/{reference}/pause")
async def pause_site(conn: Tenant, principal: Writer, reference: str) -> Site:
    """Pause a site: no crawl of it starts, and running ones are paused."""
    site = await sites.find(conn, principal.organisation_id, reference)
    return Site.model_validate(await pipeline.pause(conn, site, by=actor_name(principal)))


@router.post("/{reference}/resume")
async def resume_site(conn: Tenant, principal: Writer, reference: str) -> Site:
    """Resume a site and its paused crawls."""
    site = await sites.find(conn, principal.organisation_id, reference)
    return Site.model_validate(await pipeline.resume(conn, site, by=actor_name(principal)))
