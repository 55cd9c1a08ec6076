"""Operations on a site: create, change, crawl, pause, resume, delete and purge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import msgspec

from trapline.archive.sql import visits
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.frontier.sql import candidates
from trapline.knowledge.sql import sources as source_queries
from trapline.logs import get_logger
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline import submit
from trapline.pipeline.sites import site_schedules
from trapline.pipeline.sites.site_config import crawl_options
from trapline.pipeline.sql import sites as queries
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.sql import jobs as job_queries
from trapline.store import sites
from trapline.store.sql import sites as site_queries
from trapline.store.sql.sites import SiteRow

log = get_logger(__name__)

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class CrawlOverrides:
    """What one crawl of a site changes of its config, and the parameters of its job."""

    embedded_config: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    trigger: str = "manual"


async def create(  # noqa: PLR0913 (the fields of a site)
    conn: Connection,
    organisation_id: OrganisationId,
    name: str,
    base_url: str,
    *,
    config: Mapping[str, Any],
    created_by: str | None = None,
) -> SiteRow:
    """Register a site, and its schedule if its config has one."""
    site = await sites.create(
        conn, organisation_id, name, base_url, config=config, created_by=created_by
    )
    await site_schedules.sync(conn, site, by=created_by)
    return site


async def update(
    conn: Connection, site: SiteRow, change: sites.SiteUpdate, *, by: str | None = None
) -> SiteRow:
    """Change a site and its schedule."""
    changed = await sites.update(conn, site, change, by=by)
    await site_schedules.sync(conn, changed, by=by)
    return changed


async def rollback(
    conn: Connection, site: SiteRow, number: int, *, by: str | None = None
) -> SiteRow:
    """Make an earlier config the current one, with its schedule."""
    changed = await sites.rollback(conn, site, number, by=by)
    await site_schedules.sync(conn, changed, by=by)
    return changed


async def crawl(conn: Connection, site: SiteRow, overrides: CrawlOverrides | None = None) -> JobId:
    """Start a crawl of a site; Conflict if the site is paused."""
    if site.status != "active":
        raise Conflict(f"The site {site.name!r} is paused; resume it first.")
    overrides = overrides or CrawlOverrides()
    options = crawl_options(site, overrides.embedded_config, overrides.variables)
    own = {
        "site_id": str(site.id),
        "config_number": site.config_number,
        "embedded_config": msgspec.to_builtins(overrides.embedded_config),
        "trigger": overrides.trigger,
    }
    return await submit.crawl(
        conn,
        site.organisation_id,
        options,
        priority=overrides.priority,
        variables=overrides.variables,
        metadata={**overrides.metadata, **own},
    )


async def pause(conn: Connection, site: SiteRow, *, by: str | None = None) -> SiteRow:
    """Pause a site and its open jobs."""
    changed = await update(conn, site, sites.SiteUpdate(status="inactive"), by=by)
    for job in await _open_jobs(conn, site):
        if job.status != "paused":
            await job_queries.pause_job(conn, job_id=job.job_id, by_whom=by)
    return changed


async def resume(conn: Connection, site: SiteRow, *, by: str | None = None) -> SiteRow:
    """Resume a site and its paused jobs."""
    changed = await update(conn, site, sites.SiteUpdate(status="active"), by=by)
    for job in await _open_jobs(conn, site):
        if job.status == "paused":
            await job_queries.resume_job(conn, job_id=job.job_id, by_whom=by)
    return changed


async def delete(
    conn: Connection, site: SiteRow, *, purge: bool = False, by: str | None = None
) -> None:
    """Delete a site and cancel its jobs; with `purge` maintenance deletes its content soon."""
    for job in await _open_jobs(conn, site):
        await job_queries.cancel_job(
            conn, job_id=job.job_id, by_whom=by, reason="The site was deleted."
        )
    await site_schedules.remove(conn, site)
    await sites.delete(conn, site, purge=purge)


async def purge_marked(database: Database) -> int:
    """Delete the content of sites that are marked for purging, in batches; return the rows."""
    async with database.system_tx() as conn:
        site_ids = await site_queries.sites_to_purge(conn, most=100)
    deleted = 0
    for site_id in site_ids:
        while batch := await _purge_batch(database, site_id):
            deleted += batch
    return deleted


def duties() -> list[Duty]:
    return [Duty("purge of sites", purge_marked, timedelta(seconds=15), timedelta(hours=1))]


async def _open_jobs(conn: Connection, site: SiteRow) -> list[queries.OpenJobsOfRow]:
    return await queries.open_jobs_of(
        conn, organisation_id=site.organisation_id, site_id=str(site.id)
    )


async def _purge_batch(database: Database, site_id: SiteId) -> int:
    async with database.system_tx() as conn:
        # Texts before their pages: afterwards nothing tells which texts were of this site.
        texts = await source_queries.purge_site_entries(conn, site_id=site_id, most=_AT_ONCE)
        if texts:
            return texts
        deleted = await source_queries.purge_site_sources(conn, site_id=site_id)
        deleted += await _delete_jobs(conn, site_id)
        deleted += await sites.purge_batch(conn, site_id, most=_AT_ONCE)
        deleted += await candidates.purge_candidates(conn, site_id=site_id, most=_AT_ONCE)
        deleted += await visits.purge_visits(conn, site_id=site_id, most=_AT_ONCE)
        if not deleted:
            await site_queries.purge_site(conn, site_id=site_id)
            log.info("site purged", site_id=str(site_id))
        return deleted


async def _delete_jobs(conn: Connection, site_id: SiteId) -> int:
    site = await site_queries.deleted_site(conn, site_id=site_id)
    if site is None:
        return 0
    deleted = 0
    for job_id in await queries.ended_jobs_of(
        conn, organisation_id=OrganisationId(site.organisation_id), site_id=str(site_id), most=10
    ):
        deleted += 1 + await job_queries.forget_job(conn, job_id=job_id, most=_AT_ONCE)
    return deleted
