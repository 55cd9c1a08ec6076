"""`trapline export`."""

from pathlib import Path

import click

from trapline.cli import terminal
from trapline.cli.page_files import STANDARD_OUTPUT, check_writable, open_output, write_file
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline.reports import page_export
from trapline.pipeline.reports.page_export import PageFormat, Pages
from trapline.pipeline.reports.warc_export import find_site, write_warc
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow
from trapline.store.blobs import BlobStore

_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command()
@click.option(
    "--warc",
    type=_FILE,
    help="All visits, compressed record by record.",
)
@click.option("--jsonl", type=_FILE, help="The pages as JSON lines.")
@click.option("--csv", type=_FILE, help="The pages as a table.")
@click.option("--markdown", type=_FILE, help="The pages as a zip of markdown files.")
@click.option("--job", help="Only what this job visited, by id or its first digits.")
@click.option("--site", help="Only what belongs to this site, by id, name or address.")
@click.option("--replace", is_flag=True, help="Overwrite a file that is there.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database,
    warc: Path | None,
    jsonl: Path | None,
    csv: Path | None,
    markdown: Path | None,
    job: str | None,
    site: str | None,
    replace: bool,
    org: str,
    as_json: bool,
) -> None:
    """Write what was visited as WARC 1.1 (answers, requests, and how each visit went), or the pages
    of a job or a site as JSON lines, CSV or markdown. The file - is standard output.

    \b
    Example: trapline export --warc crawl.warc.gz --site https://example.com
             trapline export --markdown docs.zip --site docs
    """
    pages: dict[PageFormat, Path | None] = {"jsonl": jsonl, "csv": csv, "markdown": markdown}
    chosen = [(name, path) for name, path in pages.items() if path is not None]
    if len(chosen) + (warc is not None) != 1:
        raise click.UsageError("Give one of --warc, --jsonl, --csv and --markdown.")
    if job is not None and site is not None:
        raise click.UsageError("Give --job or --site, not both.")
    if warc is None and job is None and site is None:
        raise click.UsageError("Pages are exported by --job or by --site.")
    if as_json and STANDARD_OUTPUT in (warc, *pages.values()):
        raise click.UsageError("--json and a file on standard output do not go together.")
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    async with database.tenant_tx(organisation_id) as conn:
        row = None if job is None else await jobs.get(conn, await jobs.find_id(conn, job))
        site_id = None if site is None else await find_site(conn, site)
    if warc is None:
        source = _pages(database, organisation_id, row, site_id)
        await _export_pages(source, *chosen[0], replace=replace, as_json=as_json)
        return
    job_id = None if row is None else row.id
    summary = await export(
        database, organisation_id, warc, job_id=job_id, site_id=site_id, replace=replace
    )
    if as_json:
        terminal.show_json(summary)
    else:
        click.echo(
            f"{summary['records']:,} records, {summary['bytes']:,} bytes in {_shown(warc)}.",
            err=True,
        )


def _pages(
    database: Database,
    organisation_id: OrganisationId,
    job: JobRow | None,
    site_id: SiteId | None,
) -> Pages:
    if job is not None:
        return page_export.pages_of_job(database, job)
    assert site_id is not None  # noqa: S101 (one of the two was given)
    return page_export.pages_of_site(database, organisation_id, site_id)


async def _export_pages(
    pages: Pages, format_: PageFormat, file: Path, *, replace: bool, as_json: bool
) -> None:
    check_output(file, replace=replace)
    count = await write_file(pages, format_, file)
    if as_json:
        terminal.show_json({"pages": count, "bytes": file.stat().st_size})
    else:
        click.echo(f"{count:,} pages in {_shown(file)}.", err=True)


def _shown(file: Path) -> str:
    return "standard output" if file == STANDARD_OUTPUT else str(file)


def check_output(path: Path, *, replace: bool) -> None:
    """Refuse a file that exists or cannot be written."""
    if path == STANDARD_OUTPUT:
        return
    if path.exists() and not replace:
        raise Conflict(f"{path} is there already; --replace overwrites it.")
    check_writable(path)


async def export(
    database: Database,
    organisation_id: OrganisationId,
    path: Path,
    *,
    job_id: JobId | None = None,
    site_id: SiteId | None = None,
    replace: bool = False,
) -> dict[str, int]:
    """Write a WARC file; return how many records and bytes."""
    check_output(path, replace=replace)
    blobs = BlobStore.of(database.settings.blobs)
    with open_output(path) as file:
        writer = await write_warc(
            database, blobs, organisation_id, file, job_id=job_id, site_id=site_id
        )
    return {"records": writer.records, "bytes": writer.bytes}
