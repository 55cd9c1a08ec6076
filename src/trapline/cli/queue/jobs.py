"""`trapline jobs`: jobs, their progress, and what they wait for."""

import asyncio
from datetime import UTC, datetime
from typing import get_args

import click
import msgspec
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.cli.parameters import AtLeast
from trapline.db import tenancy
from trapline.db.keyset import EARLIEST, LATEST
from trapline.db.pool import Database
from trapline.pipeline import job_templates
from trapline.pipeline.ingest import source_operations
from trapline.pipeline.job_templates import JobRequest
from trapline.pipeline.options import DEFAULT_LIMIT
from trapline.pipeline.reports import crawl_report
from trapline.pipeline.reports.crawl_report import CrawlReport
from trapline.pipeline.reports.job_results import count_pages as counts_of_pages
from trapline.pipeline.sql import job_results
from trapline.queue import job_list, jobs, why
from trapline.queue.job_log import Level, Line, Reader
from trapline.queue.sql import jobs as queries
from trapline.queue.sql import statistics
from trapline.queue.sql.jobs import JobRow

_FOLLOW_EVERY = 0.5


@click.group()
def command() -> None:
    """Jobs: create, list, show, logs, counts, links, errors, cancel, pause, resume, retry, delete, why, …

    \b
    Example: trapline jobs list --status running
    """


@command.command("list")
@click.option("--status", type=click.Choice(get_args(jobs.Status)), help="Only jobs in this state.")
@click.option("--kind", help="Only jobs of this kind.")
@click.option(
    "--sort",
    type=click.Choice(get_args(job_list.Sort)),
    default="newest",
    help="What comes first.",
)
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="At most so many.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database,
    status: jobs.Status | None,
    kind: str | None,
    sort: job_list.Sort,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List jobs, newest or oldest first.

    \b
    Example: trapline jobs list --kind crawl --json
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        selected = job_list.jobs_of(organisation.id, status=status, kind=kind)
        rows = await selected.read(conn, sort, most=limit)
    terminal.show(
        rows if as_json else [_line(row) for row in rows], as_json=as_json, empty="No such jobs."
    )


def _line(row: JobRow) -> dict[str, object]:
    names = (
        "id",
        "status",
        "kind",
        "completed",
        "failed",
        "remaining",
        "created_at",
        "skipped",
        "total",
    )
    return {name: getattr(row, name) for name in names}


@command.command("show")
@click.argument("job")
@terminal.json_option
@terminal.with_database
async def show(database: Database, job: str, as_json: bool) -> None:
    """Show a job with its counters.

    \b
    Example: trapline jobs show 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        row = await jobs.get(conn, await jobs.find_id(conn, job))
        progress = await jobs.progress(conn, row)
        report = await crawl_report.read_report(conn, row.id)
        pages = await counts_of_pages(conn, row.id)
    counts = {"percent": progress.percent, "queued": progress.queued, "active": progress.active}
    if as_json:
        terminal.show_json(asdict(row) | counts | {"pages": pages, "report": report})
        return
    pages_line = f"{pages.completed} done, {pages.remaining} to come, {pages.failed} failed"
    terminal.show_one(asdict(row) | counts | {"pages": pages_line}, as_json=False)
    _show_report(report)


def _show_report(report: CrawlReport) -> None:
    """Print how pages ended, which were broken and why, and which were not visited."""
    if report.ends:
        ends = ", ".join(f"{count} {end.replace('_', ' ')}" for end, count in report.ends.items())
        click.echo(f"\nVisits: {ends}.")
    for row in report.broken:
        click.echo(f"Failed: {row.url}\n  {row.error}")
    for count, what in (
        (report.blocked_count, "forbidden by robots.txt"),
        (report.traps_count, "not followed, because they look endless"),
    ):
        if count:
            click.echo(f"{count} URLs {what}; see: trapline jobs logs")


@command.command("logs")
@click.argument("job")
@click.option(
    "--level",
    type=click.Choice([str(level) for level in Level], case_sensitive=False),
    default="INFO",
    show_default=True,
    help="The least severe line that is shown.",
)
@click.option("--follow", is_flag=True, help="Go on until the job has ended.")
@terminal.json_option
@terminal.with_database
async def logs(database: Database, job: str, level: str, follow: bool, as_json: bool) -> None:
    """Show the log of a job: robots, sitemaps, errors, retries, spider traps.

    \b
    Example: trapline jobs logs 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10 --level warning
    """
    async with database.system_tx() as conn:
        reader = Reader(await jobs.find_id(conn, job), Level(level.upper()))
    while True:
        async with database.system_tx() as conn:
            row = await jobs.get(conn, reader.job_id)
            lines = await reader.read(conn)
        for line in lines:
            click.echo(msgspec.json.encode(line).decode() if as_json else _log_line(line))
        if not follow or row.status in jobs.ENDED:
            return
        await asyncio.sleep(_FOLLOW_EVERY)


def _log_line(line: Line) -> str:
    url = line.context.get("url") if isinstance(line.context, dict) else None
    about = f" {url}" if url and str(url) not in line.message else ""
    return f"{line.at.astimezone():%Y-%m-%d %H:%M:%S} {line.level:7} {line.step:8} {line.message}{about}"


@command.command("create")
@click.argument("url", nargs=-1, required=True)
@click.option("--pages", is_flag=True, help="Visit these URLs and follow no links.")
@click.option("--map", "only_map", is_flag=True, help="List the site's URLs; visit none of them.")
@click.option(
    "--limit",
    type=AtLeast(1),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Most pages, or URLs.",
)
@click.option("--priority", default=5, show_default=True, help="1 to 10; higher runs first.")
@terminal.organisation_option
@terminal.with_database
async def create(
    database: Database,
    url: tuple[str, ...],
    pages: bool,
    only_map: bool,
    limit: int,
    priority: int,
    org: str,
) -> None:
    """Start a job that workers run; print its id.

    \b
    Example: trapline jobs create https://example.com/a https://example.com/b --pages
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
        template = job_templates.from_arguments(url, pages=pages, limit=limit, only_map=only_map)
        click.echo(
            str(
                await job_templates.create_job(
                    conn, JobRequest(organisation_id, template, priority)
                )
            )
        )


@command.command("counts")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def counts(database: Database, org: str, as_json: bool) -> None:
    """Count jobs by kind and state.

    \b
    Example: trapline jobs counts
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        rows = await statistics.count_jobs(
            conn, organisation_id=organisation.id, since=EARLIEST, until=LATEST
        )
    terminal.show(rows, as_json=as_json, empty="No jobs yet.")


@command.command("links")
@click.argument("job")
@click.option("--limit", default=5_000, type=click.IntRange(1, 100_000), help="At most so many.")
@terminal.json_option
@terminal.with_database
async def links(database: Database, job: str, limit: int, as_json: bool) -> None:
    """List the URLs that a map found.

    \b
    Example: trapline jobs links 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        row = await jobs.get(conn, await jobs.find_id(conn, job))
        rows = await job_results.links_mapped(
            conn, job_id=row.id, after_number=0, after_position=0, most=limit
        )
    if as_json:
        named = ("url", "title", "description")
        terminal.show_json([{name: getattr(link, name) for name in named} for link in rows])
        return
    for link in rows:
        click.echo(link.url)


@command.command("errors")
@click.argument("job")
@click.option("--limit", default=100, type=click.IntRange(1, 10_000), help="At most so many.")
@terminal.json_option
@terminal.with_database
async def errors(database: Database, job: str, limit: int, as_json: bool) -> None:
    """List a job's tasks that failed for good.

    \b
    Example: trapline jobs errors 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        row = await jobs.get(conn, await jobs.find_id(conn, job))
        rows = await queries.errors_of_job(conn, job_id=row.id, after=0, most=limit)
    terminal.show(rows, as_json=as_json, empty="No errors.")


@command.command("delete")
@click.argument("job")
@terminal.with_database
async def delete(database: Database, job: str) -> None:
    """Delete an ended job with its tasks and results; the pages that it stored stay.

    \b
    Example: trapline jobs delete 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        await job_list.delete(conn, await jobs.find_id(conn, job))
    click.echo("Deleted.")


@command.command("cancel")
@click.argument("job")
@click.option("--reason", help="Why, for those who ask later.")
@click.option("--by", default="cli", show_default=True, help="Who cancels.")
@terminal.with_database
async def cancel(database: Database, job: str, reason: str | None, by: str) -> None:
    """End a job: queued tasks at once, running ones within seconds.

    \b
    Example: trapline jobs cancel 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10 --reason "wrong site"
    """
    async with database.system_tx() as conn:
        await jobs.cancel(conn, await jobs.find_id(conn, job), by=by, reason=reason)
    click.echo("Cancelled.")


@command.command("pause")
@click.argument("job")
@terminal.with_database
async def pause(database: Database, job: str) -> None:
    """Pause a job: running tasks finish, and no more start.

    \b
    Example: trapline jobs pause 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        await jobs.pause(conn, await jobs.find_id(conn, job), by="cli")
    click.echo("Paused.")


@command.command("resume")
@click.argument("job")
@terminal.with_database
async def resume(database: Database, job: str) -> None:
    """Resume a paused job.

    \b
    Example: trapline jobs resume 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        await jobs.resume(conn, await jobs.find_id(conn, job), by="cli")
    click.echo("Resumed.")


@command.command("retry")
@click.argument("job")
@terminal.with_database
async def retry(database: Database, job: str) -> None:
    """Retry a job's failed tasks in a new job.

    \b
    Example: trapline jobs retry 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        again = await source_operations.retry(conn, await jobs.find_id(conn, job), by="cli")
    click.echo(str(again))


@command.command("why")
@click.argument("job")
@terminal.with_database
async def why_(database: Database, job: str) -> None:
    """Show what a job's next tasks wait for.

    \b
    Example: trapline jobs why 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        row = await jobs.get(conn, await jobs.find_id(conn, job))
        click.echo(f"The job is {row.status}: {row.remaining} of {row.total} tasks remain.")
        click.echo(await why.why_job(conn, row.id, now=datetime.now(UTC)))
