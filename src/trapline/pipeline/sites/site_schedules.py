"""A site's own schedule, kept in step with its config."""

from datetime import UTC, datetime, timedelta
from typing import Any

from trapline.db.connection import Connection
from trapline.errors import InvalidInput
from trapline.pipeline.kinds import CRAWL
from trapline.pipeline.sites.site_config import SiteSchedule, schedule_in
from trapline.queue.schedule import schedules
from trapline.queue.schedule.recurrence import Rule
from trapline.queue.schedule.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow
from trapline.store.sql.sites import SiteRow


def name_of(site: SiteRow) -> str:
    """Return the name of a site's own schedule, which stays when the site is renamed."""
    return f"site {site.id}"


async def sync(conn: Connection, site: SiteRow, *, by: str | None = None) -> None:
    """Create, change, pause, resume or remove a site's schedule as its config says."""
    rule = schedule_in(site.config)
    row = await queries.schedule_named(
        conn, organisation_id=site.organisation_id, name=name_of(site)
    )
    if rule is None:
        if row is not None:
            await schedules.remove(conn, row.id)
        return
    now = datetime.now(UTC)
    plan = _plan(site, rule)
    if row is None:
        row = await schedules.add(conn, site.organisation_id, plan, now=now, by=by)
    elif _differs(row, plan):
        row = await schedules.change(conn, row.id, plan, now=now)
    await _set_paused(conn, row, paused=site.status != "active", now=now)


async def remove(conn: Connection, site: SiteRow) -> None:
    """Remove the schedule of a deleted site."""
    row = await queries.schedule_named(
        conn, organisation_id=site.organisation_id, name=name_of(site)
    )
    if row is not None:
        await schedules.remove(conn, row.id)


async def _set_paused(conn: Connection, row: ScheduleRow, *, paused: bool, now: datetime) -> None:
    if paused and row.paused_at is None:
        await schedules.pause(conn, row.id)
    elif not paused and row.paused_at is not None:
        await schedules.resume(conn, row.id, now=now)


def _plan(site: SiteRow, schedule: SiteSchedule) -> Plan:
    if "${" in site.base_url:
        raise InvalidInput("A site whose address has variables cannot be crawled by schedule.")
    template: dict[str, Any] = {"kind": CRAWL, "url": site.base_url, "options": {}}
    every = None if schedule.every_seconds is None else timedelta(seconds=schedule.every_seconds)
    rule = Rule("recurring", schedule.cron, every, schedule.timezone)
    return Plan(name_of(site), rule, template, site.id)


def _differs(row: ScheduleRow, plan: Plan) -> bool:
    """Tell whether the rule changed; an unchanged interval keeps its phase."""
    rule = plan.rule
    return (row.cron, row.every, row.timezone, row.template) != (
        rule.cron,
        rule.every,
        rule.timezone,
        plan.template,
    )
