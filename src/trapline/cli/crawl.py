"""`trapline crawl URL`."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import click

from trapline import app
from trapline.cli import terminal
from trapline.cli.export import export
from trapline.cli.following import Display, pausing
from trapline.cli.output import write_jsonl, write_markdown
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.model import JobId, OrganisationId
from trapline.pipeline import crawl_report, followups, pagefiles, results, submit
from trapline.pipeline.options import DEFAULT_LIMIT, CrawlOptions
from trapline.queue import jobs, why
from trapline.queue.sql.jobs import JobRow
from trapline.queue.sql.logbook import NotedUrlsRow

_LOOK_EVERY = 0.3


@click.command()
@click.argument("url", required=False)
@click.option("--resume", type=click.UUID, help="Go on with a crawl that was paused or killed.")
@click.option("--limit", type=int, default=DEFAULT_LIMIT, show_default=True, help="Most pages.")
@click.option("--depth", "max_depth", type=int, help="Most links away from the start.")
@click.option("--include", multiple=True, help="Regular expression that a path must match.")
@click.option("--exclude", multiple=True, help="Regular expression that a path must not match.")
@click.option("--entire-domain", is_flag=True, help="Also above and beside the start's section.")
@click.option("--subdomains", is_flag=True, help="Also other subdomains of the site.")
@click.option("--external-links", is_flag=True, help="Also other sites.")
@click.option(
    "--sitemap",
    type=click.Choice(["include", "skip", "only"]),
    default="include",
    show_default=True,
    help="Whether sitemaps are read.",
)
@click.option("--concurrency", "max_concurrency", type=int, help="Most requests at once per host.")
@click.option("--delay", type=float, help="Seconds between two requests to a host.")
@click.option("--ignore-robots", is_flag=True, help="Do not obey robots.txt; this is recorded.")
@click.option("--due", "only_due", is_flag=True, help="Leave pages alone that are not due yet.")
@click.option("--force", is_flag=True, help="Fetch again what the server says is unchanged.")
@click.option("--index", is_flag=True, help="Make the pages searchable: see `trapline search`.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write markdown files."
)
@click.option("--jsonl", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON lines.")
@click.option("--warc", type=click.Path(dir_okay=False, path_type=Path), help="Write a WARC file.")
@click.option("--worker-name", default="crawl", show_default=True, help="Name of this agent.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database,
    url: str | None,
    resume: UUID | None,
    out: Path | None,
    jsonl: Path | None,
    warc: Path | None,
    worker_name: str,
    org: str,
    as_json: bool,
    **wishes: object,
) -> None:
    """Crawl a site: every page that its links, sitemaps and robots.txt lead to, stored as versions.

    Ctrl-C pauses the crawl and says how to go on.

    \b
    Example: trapline crawl https://example.com/docs/ --limit 500 --out docs
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    job_id = await _job(database, organisation_id, url, resume, wishes)
    async with app.working(database, database.settings, name=worker_name), pausing() as paused:
        job = await _follow(database, organisation_id, job_id, paused, quiet=as_json)
    await followups.catch_up(database)
    if job.status == "paused":
        click.echo(f"\nPaused. Go on with: trapline crawl --resume {job_id}", err=True)
        raise click.exceptions.Exit(130)
    if out is not None:
        await write_markdown(pagefiles.pages(database, job), out)
    if jsonl is not None:
        await write_jsonl(pagefiles.pages(database, job), jsonl)
    if warc is not None:
        await export(database, organisation_id, warc, job_id=job_id, replace=True)
    await _close(database, organisation_id, job, as_json=as_json, out=out or jsonl or warc)


async def _job(
    database: Database,
    organisation_id: OrganisationId,
    url: str | None,
    resume: UUID | None,
    wishes: dict[str, object],
) -> JobId:
    """Start a crawl, or find the one to go on with."""
    if (url is None) == (resume is None):
        raise click.UsageError("Give a URL, or --resume with the id of a crawl.")
    async with database.tenant_tx(organisation_id) as conn:
        if resume is None:
            options = CrawlOptions.parse(url=url, **wishes)
            ttl, _ = jobs.times_kept(database.settings)
            return await submit.crawl(conn, organisation_id, options, ttl=ttl)
        job = await jobs.get(conn, JobId(resume))
        if job.status in jobs.ENDED:
            raise Conflict(f"That crawl has {job.status}; start a new one.")
        if job.status == "paused":
            await jobs.resume(conn, job.id)
        return job.id


async def _follow(
    database: Database,
    organisation_id: OrganisationId,
    job_id: JobId,
    paused: asyncio.Event,
    *,
    quiet: bool,
) -> JobRow:
    """Show how the crawl gets on until it ends or is paused."""
    with Display("pages", quiet=quiet) as display:
        while True:
            async with database.tenant_tx(organisation_id) as conn:
                job = await jobs.get(conn, job_id)
                if paused.is_set() and job.status not in jobs.ENDED:
                    await jobs.pause(conn, job_id, by="Ctrl-C")
                    return await jobs.get(conn, job_id)
                pace = "" if quiet else await why.pace_of(conn, job_id, now=datetime.now(UTC))
                pages = await results.counts(conn, job_id)
            display.show(job, pages, pace)
            if job.status in jobs.ENDED:
                return job
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await paused.wait()


async def _close(
    database: Database,
    organisation_id: OrganisationId,
    job: JobRow,
    *,
    as_json: bool,
    out: Path | None,
) -> None:
    """Say what came of it and where it is."""
    async with database.tenant_tx(organisation_id) as conn:
        report = await crawl_report.report(conn, job.id)
        pages = await results.counts(conn, job.id)
    if as_json:
        terminal.show_json({"job": job, "pages": pages, "report": report})
        return
    click.echo(
        f"\nCrawl {job.id} {job.status}: {pages.completed} pages, {pages.failed} failed,"
        f" {pages.skipped} skipped, {report.redirects} redirects."
    )
    terminal.show(
        [{"ended": end, "pages": count} for end, count in report.ends.items()], as_json=False
    )
    if report.broken:
        click.echo("\nBroken, with where they are linked from:")
        for row in report.broken:
            click.echo(f"  {row.url}\n    {row.error}\n    from {row.found_on or 'the start'}")
    noted = (
        ("Forbidden by robots.txt", report.blocked_count, report.blocked),
        ("Not followed, because they look endless", report.traps_count, report.traps),
    )
    for title, count, rows in noted:
        _show_noted(title, count, rows, f"trapline jobs logs {job.id}")
    if report.slowest:
        click.echo("\nSlowest:")
        for slow in report.slowest:
            click.echo(f"  {slow.took_ms:>6} ms  {slow.url}")
    where = f"in {out} and " if out else ""
    click.echo(f"\nThe pages are {where}in the database, in store.page and store.version;")
    click.echo("have a look: trapline db psql -- -c 'SELECT title, page_type FROM store.version'")
    if job.options.get("index"):
        click.echo("or search them: trapline search WORDS")


def _show_noted(title: str, count: int, rows: Sequence[NotedUrlsRow], command: str) -> None:
    """List the first of what the log has; a command shows the rest."""
    if rows:
        click.echo(f"\n{title} ({count}):")
        for row in rows:
            click.echo(f"  {row.url}")
        if count > len(rows):
            click.echo(f"  and {count - len(rows)} more: {command}")
