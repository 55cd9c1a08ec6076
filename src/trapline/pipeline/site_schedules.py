"""A site's own schedule: what its config says of when it is crawled, kept true as the config changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from trapline.db.connection import Connection
from trapline.errors import InvalidInput
from trapline.pipeline.kinds import CRAWL
from trapline.pipeline.site_config import SiteSchedule, schedule_in
from trapline.queue import schedules
from trapline.queue.schedules import Plan
from trapline.queue.sql import schedules as queries
from trapline.queue.sql.schedules import ScheduleRow
from trapline.queue.ticks import Rule
from trapline.store.sql.sites import SiteRow


def name_of(site: SiteRow) -> str:
    """Return the name of a site's own schedule, which stays when the site is renamed."""
    return f"site {site.id}"


async def follow(conn: Connection, site: SiteRow, *, by: str | None = None) -> None:
    """Make a site's schedule what its config says: there or not, by which rule, paused or not."""
    wanted = schedule_in(site.config)
    there = await queries.schedule_named(
        conn, organisation_id=site.organisation_id, name=name_of(site)
    )
    if wanted is None:
        if there is not None:
            await schedules.remove(conn, there.id)
        return
    now = datetime.now(UTC)
    plan = _plan(site, wanted)
    if there is None:
        there = await schedules.add(conn, site.organisation_id, plan, now=now, by=by)
    elif _differs(there, plan):
        there = await schedules.change(conn, there.id, plan, now=now)
    await _hold(conn, there, held=site.status != "active", now=now)


async def forget(conn: Connection, site: SiteRow) -> None:
    """Remove the schedule of a site that is deleted."""
    there = await queries.schedule_named(
        conn, organisation_id=site.organisation_id, name=name_of(site)
    )
    if there is not None:
        await schedules.remove(conn, there.id)


async def _hold(conn: Connection, row: ScheduleRow, *, held: bool, now: datetime) -> None:
    if held and row.paused_at is None:
        await schedules.pause(conn, row.id)
    elif not held and row.paused_at is not None:
        await schedules.resume(conn, row.id, now=now)


def _plan(site: SiteRow, wanted: SiteSchedule) -> Plan:
    if "${" in site.base_url:
        raise InvalidInput("A site whose address has variables cannot be crawled by schedule.")
    template: dict[str, Any] = {"kind": CRAWL, "url": site.base_url, "options": {}}
    every = None if wanted.every_seconds is None else timedelta(seconds=wanted.every_seconds)
    rule = Rule("recurring", wanted.cron, every, wanted.timezone)
    return Plan(name_of(site), rule, template, site.id)


def _differs(row: ScheduleRow, plan: Plan) -> bool:
    """Tell whether a rule is new; an interval that stays goes on counting from where it began."""
    rule = plan.rule
    return (row.cron, row.every, row.timezone, row.template) != (
        rule.cron,
        rule.every,
        rule.timezone,
        plan.template,
    )
