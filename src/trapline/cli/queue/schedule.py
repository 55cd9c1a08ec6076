"""`trapline schedule`: schedules that create jobs."""

from datetime import UTC, datetime, timedelta
from typing import get_args
from uuid import UUID
from zoneinfo import ZoneInfo

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import InvalidInput
from trapline.model import ApplicationId, SiteId
from trapline.pipeline import job_templates
from trapline.pipeline.options import DEFAULT_LIMIT
from trapline.queue.schedule import schedule_list, schedules
from trapline.queue.schedule.recurrence import Rule, ScheduleKind
from trapline.queue.schedule.schedules import Plan
from trapline.queue.sql.schedules import ScheduleRow

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SHOWN_RUNS = 5


@click.group()
def command() -> None:
    """Schedules: add, list, show, pause, resume, run, remove.

    \b
    Example: trapline schedule add nightly https://example.com/ --cron "30 2 * * *"
    """


def seconds_of(text: str | None) -> timedelta | None:
    """Read 90s, 15m, 6h, 1d or 2w."""
    if text is None:
        return None
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS or len(number) > len("1000000000"):
        raise InvalidInput(f"{text!r} is not a time; write 15m, 6h, 1d or 2w.")
    return timedelta(seconds=int(number) * _UNITS[unit])


def _moment(text: str | None, timezone: str) -> datetime | None:
    """Read a time as typed: without an offset it is in the schedule's own time zone."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a time; write 2026-12-01T09:00.") from None
    if moment.tzinfo is None:
        Rule("one_time", timezone=timezone).check()
        moment = moment.replace(tzinfo=ZoneInfo(timezone))
    return moment


@command.command("add")
@click.argument("name")
@click.argument("url", nargs=-1, required=True)
@click.option(
    "--kind",
    type=click.Choice(get_args(ScheduleKind)),
    help="By default, the other options imply it.",
)
@click.option("--cron", help="Minute, hour, day, month, weekday; or @daily and the like.")
@click.option("--every", help="An interval: 15m, 6h, 1d, 2w.")
@click.option("--at", help="The time of one run, or of an interval's first: 2026-12-01T09:00.")
@click.option("--until", help="No run after this time.")
@click.option("--timezone", default="UTC", show_default=True, help="Such as Europe/Berlin.")
@click.option("--pages", is_flag=True, help="Visit these URLs and follow no links.")
@click.option("--limit", default=DEFAULT_LIMIT, show_default=True, help="Most pages of a crawl.")
@click.option("--site", type=click.UUID, help="The site that it is for.")
@click.option("--application", type=click.UUID, help="The application that it is for.")
@click.option("--priority", default=5, show_default=True, help="1 to 10; higher runs first.")
@click.option("--overlap", is_flag=True, help="Run also while the last run's job goes on.")
@click.option("--catch-up", help="How late a missed run is made up for: 1h.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def add(
    database: Database,
    name: str,
    url: tuple[str, ...],
    kind: ScheduleKind | None,
    cron: str | None,
    every: str | None,
    at: str | None,
    until: str | None,
    timezone: str,
    pages: bool,
    limit: int,
    site: UUID | None,
    application: UUID | None,
    priority: int,
    overlap: bool,
    catch_up: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Add a schedule. Without a rule or a time it runs once, now.

    \b
    Example: trapline schedule add nightly https://example.com/ --cron "30 2 * * *" --timezone Europe/Berlin
    """
    site_id = None if site is None else SiteId(site)
    template = job_templates.from_arguments(url, pages=pages, limit=limit)
    job_templates.parse(template, site_id)
    plan = Plan(
        name,
        _rule(kind, cron, every, at, until, timezone),
        template,
        site_id,
        None if application is None else ApplicationId(application),
        priority,
        overlap,
        seconds_of(catch_up),
    )
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await schedules.add(conn, organisation.id, plan, now=datetime.now(UTC), by="cli")
    terminal.show_one(_shown(row), as_json=as_json)


def _rule(
    kind: ScheduleKind | None,
    cron: str | None,
    every: str | None,
    at: str | None,
    until: str | None,
    timezone: str,
) -> Rule:
    """Return the rule; without a kind, the options imply it."""
    implied: ScheduleKind = "recurring" if cron or every else "scheduled" if at else "one_time"
    return Rule(
        kind or implied,
        cron,
        seconds_of(every),
        timezone,
        _moment(at, timezone),
        _moment(until, timezone),
    )


def _shown(row: ScheduleRow) -> dict[str, object]:
    fields = {
        name: getattr(row, name) for name in ScheduleRow.__struct_fields__ if name != "name_key"
    }
    return fields | {"next_runs": schedules.next_runs(row, _SHOWN_RUNS)}


@command.command("list")
@click.option("--site", type=click.UUID, help="Only of this site.")
@click.option(
    "--sort",
    type=click.Choice(get_args(schedule_list.Sort)),
    default="newest",
    help="What comes first.",
)
@click.option("--limit", default=100, type=click.IntRange(1, 10_000), help="At most so many.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database,
    site: UUID | None,
    sort: schedule_list.Sort,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List schedules.

    \b
    Example: trapline schedule list --json
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        selected = schedule_list.schedules_of(organisation.id, site_id=site)
        rows = await selected.read(conn, sort, most=limit)
    terminal.show(
        rows if as_json else [_line(row) for row in rows],
        as_json=as_json,
        empty="No schedules yet.",
    )


def _line(row: ScheduleRow) -> dict[str, object]:
    rule = row.cron or (row.every if row.every is not None else row.kind)
    state = "paused" if row.paused_at else "ended" if row.next_at is None else "active"
    return {
        "name": row.name,
        "rule": rule,
        "timezone": row.timezone,
        "state": state,
        "next_at": row.next_at,
        "last_job": row.last_job_id,
        "id": row.id,
    }


async def _find(conn: Connection, org: str, reference: str) -> ScheduleRow:
    organisation = await tenancy.find_organisation(conn, org)
    return await schedules.find(conn, organisation.id, reference)


@command.command("show")
@click.argument("schedule")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, schedule: str, org: str, as_json: bool) -> None:
    """Show a schedule, its next runs and the results of the last ones.

    \b
    Example: trapline schedule show nightly
    """
    async with database.system_tx() as conn:
        row = await _find(conn, org, schedule)
        runs = await schedules.runs(conn, row.id, most=20)
    if as_json:
        terminal.show_json(_shown(row) | {"runs": runs})
        return
    terminal.show_one(_shown(row), as_json=False)
    click.echo("")
    names = ("tick", "outcome", "job_id", "detail")
    lines = [{name: getattr(run, name) for name in names} for run in runs]
    terminal.show(lines, as_json=False, empty="It has not run yet.")


@command.command("pause")
@click.argument("schedule")
@terminal.organisation_option
@terminal.with_database
async def pause(database: Database, schedule: str, org: str) -> None:
    """Pause a schedule: it creates no jobs until it is resumed.

    \b
    Example: trapline schedule pause nightly
    """
    async with database.system_tx() as conn:
        await schedules.pause(conn, (await _find(conn, org, schedule)).id)
    click.echo("Paused.")


@command.command("resume")
@click.argument("schedule")
@terminal.organisation_option
@terminal.with_database
async def resume(database: Database, schedule: str, org: str) -> None:
    """Resume a paused schedule at its next tick.

    \b
    Example: trapline schedule resume nightly
    """
    async with database.system_tx() as conn:
        row = await _find(conn, org, schedule)
        await schedules.resume(conn, row.id, now=datetime.now(UTC))
    click.echo("Resumed.")


@command.command("run")
@click.argument("schedule")
@terminal.organisation_option
@terminal.with_database
async def run(database: Database, schedule: str, org: str) -> None:
    """Create the job of a schedule now, paused or not.

    \b
    Example: trapline schedule run nightly
    """
    async with database.system_tx() as conn:
        row = await _find(conn, org, schedule)
        job_id = await schedules.run_now(
            conn, row.id, job_templates.create_scheduled_job, now=datetime.now(UTC)
        )
    click.echo(str(job_id))


@command.command("remove")
@click.argument("schedule")
@terminal.organisation_option
@terminal.with_database
async def remove(database: Database, schedule: str, org: str) -> None:
    """Delete a schedule; the jobs that it created stay.

    \b
    Example: trapline schedule remove nightly
    """
    async with database.system_tx() as conn:
        await schedules.remove(conn, (await _find(conn, org, schedule)).id)
    click.echo("Removed.")
