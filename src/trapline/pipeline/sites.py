"""What is done with a whole site: crawl it, pause and resume it, delete and purge it."""

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
from trapline.logs import get_logger
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline import site_schedules, submit
from trapline.pipeline.site_config import crawl_options
from trapline.pipeline.sql import sites as queries
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql import jobs as job_queries
from trapline.store import sites
from trapline.store.sql import sites as site_queries
from trapline.store.sql.sites import SiteRow

log = get_logger(__name__)

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class CrawlWishes:
    """What a single crawl of a site asks beyond the site's config."""

    embedded_config: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    trigger: str = "manual"


async def create(  # noqa: PLR0913 (what it is, whose, by whom)
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
    await site_schedules.follow(conn, site, by=created_by)
    return site


async def update(
    conn: Connection, site: SiteRow, change: sites.Change, *, by: str | None = None
) -> SiteRow:
    """Change a site; its schedule follows."""
    changed = await sites.update(conn, site, change, by=by)
    await site_schedules.follow(conn, changed, by=by)
    return changed


async def rollback(
    conn: Connection, site: SiteRow, number: int, *, by: str | None = None
) -> SiteRow:
    """Make an earlier config the present one; the schedule of that config comes back with it."""
    changed = await sites.rollback(conn, site, number, by=by)
    await site_schedules.follow(conn, changed, by=by)
    return changed


async def crawl(conn: Connection, site: SiteRow, wishes: CrawlWishes | None = None) -> JobId:
    """Crawl a site now, with its config and what this crawl puts over it."""
    if site.status != "active":
        raise Conflict(f"The site {site.name!r} is paused; resume it first.")
    wishes = wishes or CrawlWishes()
    options = crawl_options(site, wishes.embedded_config, wishes.variables)
    own = {
        "site_id": str(site.id),
        "config_number": site.config_number,
        "embedded_config": msgspec.to_builtins(wishes.embedded_config),
        "trigger": wishes.trigger,
    }
    return await submit.crawl(
        conn,
        site.organisation_id,
        options,
        priority=wishes.priority,
        variables=wishes.variables,
        metadata={**wishes.metadata, **own},
    )


async def pause(conn: Connection, site: SiteRow, *, by: str | None = None) -> SiteRow:
    """Start no crawl of a site, and hold those that run."""
    changed = await update(conn, site, sites.Change(status="inactive"), by=by)
    for job in await _open_jobs(conn, site):
        if job.status != "paused":
            await job_queries.pause_job(conn, job_id=job.job_id, by_whom=by)
    return changed


async def resume(conn: Connection, site: SiteRow, *, by: str | None = None) -> SiteRow:
    """Let a site be crawled again, and go on with what was held."""
    changed = await update(conn, site, sites.Change(status="active"), by=by)
    for job in await _open_jobs(conn, site):
        if job.status == "paused":
            await job_queries.resume_job(conn, job_id=job.job_id, by_whom=by)
    return changed


async def delete(
    conn: Connection, site: SiteRow, *, purge: bool = False, by: str | None = None
) -> None:
    """Delete a site and end its jobs; with `purge` everything under it goes soon."""
    for job in await _open_jobs(conn, site):
        await job_queries.cancel_job(
            conn, job_id=job.job_id, by_whom=by, reason="The site was deleted."
        )
    await site_schedules.forget(conn, site)
    await sites.delete(conn, site, purge=purge)


async def purge_marked(database: Database) -> int:
    """Remove everything under the sites that were marked, a part at a time."""
    async with database.system_tx() as conn:
        marked = await site_queries.sites_to_purge(conn, most=100)
    gone = 0
    for site_id in marked:
        while some := await _purge_part(database, site_id):
            gone += some
    return gone


def duties() -> list[Duty]:
    return [Duty("purge of sites", purge_marked, timedelta(seconds=15), timedelta(hours=1))]


async def _open_jobs(conn: Connection, site: SiteRow) -> list[queries.OpenJobsOfRow]:
    return await queries.open_jobs_of(
        conn, organisation_id=site.organisation_id, site_id=str(site.id)
    )


async def _purge_part(database: Database, site_id: SiteId) -> int:
    async with database.system_tx() as conn:
        gone = await _forget_jobs(conn, site_id)
        gone += await sites.purge_some(conn, site_id, most=_AT_ONCE)
        gone += await candidates.purge_candidates(conn, site_id=site_id, most=_AT_ONCE)
        gone += await visits.purge_visits(conn, site_id=site_id, most=_AT_ONCE)
        if not gone:
            await site_queries.purge_site(conn, site_id=site_id)
            log.info("site purged", site_id=str(site_id))
        return gone


async def _forget_jobs(conn: Connection, site_id: SiteId) -> int:
    site = await site_queries.deleted_site(conn, site_id=site_id)
    if site is None:
        return 0
    forgotten = 0
    for job_id in await queries.ended_jobs_of(
        conn, organisation_id=OrganisationId(site.organisation_id), site_id=str(site_id), most=10
    ):
        forgotten += 1 + await job_queries.forget_job(conn, job_id=job_id, most=_AT_ONCE)
    return forgotten
