"""`trapline crawl URL`."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from trapline import app
from trapline.cli import terminal
from trapline.cli.crawl_files import CrawlFiles, GrowingFiles
from trapline.cli.job_progress import Display, pausing
from trapline.cli.parameters import AtLeast
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Conflict, TraplineError
from trapline.model import OrganisationId
from trapline.pipeline import after_job, submit
from trapline.pipeline.options import DEFAULT_LIMIT, CrawlOptions
from trapline.pipeline.reports import crawl_report, job_results
from trapline.queue import jobs, why
from trapline.queue.sql.job_log import NotedUrlsRow
from trapline.queue.sql.jobs import JobRow

_LOOK_EVERY = 0.3


@click.command()
@click.argument("url", required=False)
@click.option(
    "--resume", help="Go on with a crawl that was paused or killed, by id or its first digits."
)
@click.option(
    "--limit", type=AtLeast(1), default=DEFAULT_LIMIT, show_default=True, help="Most pages."
)
@click.option("--depth", "max_depth", type=AtLeast(0), help="Most links away from the start.")
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
@click.option(
    "--concurrency", "max_concurrency", type=AtLeast(1), help="Most requests at once per host."
)
@click.option(
    "--delay", type=AtLeast(0, kind=float), help="Seconds between two requests to a host."
)
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
    resume: str | None,
    out: Path | None,
    jsonl: Path | None,
    warc: Path | None,
    worker_name: str,
    org: str,
    as_json: bool,
    **options: object,
) -> None:
    """Crawl a site: every page that its links, sitemaps and robots.txt lead to, stored as versions.

    Ctrl-C pauses the crawl and says how to go on.

    \b
    Example: trapline crawl https://example.com/docs/ --limit 500 --out docs
    """
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    given = CrawlFiles(out, jsonl, warc)
    given.check()
    job, files = await _job(database, organisation_id, url, resume, options, given)
    growing = GrowingFiles(database, files)
    if job.status not in jobs.ENDED:
        job = await _run(database, job, growing, worker_name, quiet=as_json)
    if job.status == "paused":
        click.echo(f"\nPaused. Go on with: trapline crawl --resume {job.id}", err=True)
        raise click.exceptions.Exit(130)
    await growing.finish(job)
    await _close(database, organisation_id, job, as_json=as_json, files=files)
    if job.status == "failed":
        raise TraplineError(f"The crawl failed. {job.error}")


async def _job(
    database: Database,
    organisation_id: OrganisationId,
    url: str | None,
    resume: str | None,
    options: dict[str, object],
    given: CrawlFiles,
) -> tuple[JobRow, CrawlFiles]:
    """Start a crawl, or find the one to resume; return it with its files."""
    if (url is None) == (resume is None):
        raise click.UsageError("Give a URL, or --resume with the id of a crawl.")
    async with database.tenant_tx(organisation_id) as conn:
        if resume is None:
            request = CrawlOptions.parse(url=url, **options)
            ttl, _ = jobs.retention_times(database.settings.retention)
            job_id = await submit.crawl(
                conn, organisation_id, request, ttl=ttl, metadata=given.metadata()
            )
            return await jobs.get(conn, job_id), given
        job = await jobs.get(conn, await jobs.find_id(conn, resume))
        if job.status in jobs.ENDED and not given:
            raise Conflict(
                f"That crawl has {job.status}; start a new one, or write its pages with --out,"
                " --jsonl or --warc."
            )
        if job.status == "paused":
            await jobs.resume(conn, job.id)
        return job, given.or_else(CrawlFiles.of_job(job.metadata))


async def _run(
    database: Database, job: JobRow, growing: GrowingFiles, worker_name: str, *, quiet: bool
) -> JobRow:
    """Work until the crawl ends or is paused."""
    async with app.run_worker(database, database.settings, name=worker_name), pausing() as paused:
        ended = await _follow(database, job, growing, paused, quiet=quiet)
    await after_job.catch_up(database)
    return ended


async def _follow(
    database: Database, job: JobRow, growing: GrowingFiles, paused: asyncio.Event, *, quiet: bool
) -> JobRow:
    """Show the crawl's progress, and let its files grow, until it ends or is paused."""
    organisation_id, job_id = job.organisation_id, job.id
    with Display("pages", quiet=quiet) as display:
        while True:
            async with database.tenant_tx(organisation_id) as conn:
                job = await jobs.get(conn, job_id)
                if paused.is_set() and job.status not in jobs.ENDED:
                    await jobs.pause(conn, job_id, by="Ctrl-C")
                    return await jobs.get(conn, job_id)
                pace = "" if quiet else await why.pace_of(conn, job_id, now=datetime.now(UTC))
                pages = await job_results.count_pages(conn, job_id)
            display.show(job, pages, pace)
            await growing.grow(job)
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
    files: CrawlFiles,
) -> None:
    """Print a summary, and where the results are."""
    async with database.tenant_tx(organisation_id) as conn:
        report = await crawl_report.read_report(conn, job.id)
        pages = await job_results.count_pages(conn, job.id)
    if as_json:
        terminal.show_json({"job": job, "pages": pages, "report": report})
        return
    click.echo(
        f"\nCrawl {job.id} {job.status}: {_pages(job, pages)}, {pages.failed} failed,"
        f" {pages.skipped} skipped, {report.redirects} redirects."
    )
    terminal.show(
        [{"ended": end, "pages": count} for end, count in report.ends.items()], as_json=False
    )
    if report.broken:
        click.echo("\nBroken, with where they are linked from:")
        for row in report.broken:
            click.echo(f"  {row.url}\n    {row.error}\n    from {row.found_on or 'the start'}")
    notes = (
        ("Forbidden by robots.txt", report.blocked_count, report.blocked),
        ("Not followed, because they look endless", report.traps_count, report.traps),
    )
    for title, count, rows in notes:
        _show_noted(title, count, rows, f"trapline jobs logs {job.id}")
    if report.slowest:
        click.echo("\nSlowest:")
        for slow in report.slowest:
            click.echo(f"  {slow.took_ms:>6} ms  {slow.url}")
    where = f"in {files.shown()} and " if files else ""
    click.echo(f"\nThe pages are {where}in the database, in store.page and store.version;")
    click.echo("have a look: trapline db psql -- -c 'SELECT title, page_type FROM store.version'")
    if job.options.get("index"):
        click.echo("or search them: trapline search WORDS")


def _pages(job: JobRow, pages: job_results.PageCounts) -> str:
    """Say how many pages there are, and how many URLs more when the limit kept the crawl from them."""
    if not job.overflow:
        return f"{pages.completed} pages"
    return f"{pages.completed} pages (limit), {job.overflow} more URLs known"


def _show_noted(title: str, count: int, rows: Sequence[NotedUrlsRow], command: str) -> None:
    """List the first log lines; a command shows the rest."""
    if rows:
        click.echo(f"\n{title} ({count}):")
        for row in rows:
            click.echo(f"  {row.url}")
        if count > len(rows):
            click.echo(f"  and {count - len(rows)} more: {command}")
