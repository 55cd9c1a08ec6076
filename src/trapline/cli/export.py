"""`trapline export`."""

import sys
from pathlib import Path
from uuid import UUID

import click

from trapline.cli import terminal
from trapline.cli.output import write_file
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import Conflict
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline import pagefiles
from trapline.pipeline.exporting import find_site, write_warc
from trapline.pipeline.pagefiles import PageFormat, Pages
from trapline.queue import jobs
from trapline.queue.sql.jobs import JobRow
from trapline.store.blobs import Blobs

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--warc",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="All visits, compressed record by record; - is standard output.",
)
@click.option("--jsonl", type=_FILE, help="The pages as JSON lines.")
@click.option("--csv", type=_FILE, help="The pages as a table.")
@click.option("--markdown", type=_FILE, help="The pages as a zip of markdown files.")
@click.option("--job", type=click.UUID, help="Only what this job visited.")
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
    job: UUID | None,
    site: str | None,
    replace: bool,
    org: str,
    as_json: bool,
) -> None:
    """Write what was visited as WARC 1.1 (answers, requests, and how each visit went), or the pages
    of a job or a site as JSON lines, CSV or markdown.

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
    if as_json and str(warc) == "-":
        raise click.UsageError("--json and a WARC on standard output do not go together.")
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.find_organisation(conn, org)).id
    async with database.tenant_tx(organisation_id) as conn:
        found = None if job is None else await jobs.get(conn, JobId(job))
        site_id = None if site is None else await find_site(conn, site)
    if warc is None:
        source = _pages(database, organisation_id, found, site_id)
        await _export_pages(source, *chosen[0], replace=replace, as_json=as_json)
        return
    job_id = None if found is None else found.id
    told = await export(
        database, organisation_id, warc, job_id=job_id, site_id=site_id, replace=replace
    )
    if as_json:
        terminal.show_json(told)
    else:
        click.echo(f"{told['records']:,} records, {told['bytes']:,} bytes in {warc}.", err=True)


def _pages(
    database: Database,
    organisation_id: OrganisationId,
    job: JobRow | None,
    site_id: SiteId | None,
) -> Pages:
    if job is not None:
        return pagefiles.pages(database, job)
    assert site_id is not None  # noqa: S101 (one of the two was given)
    return pagefiles.pages_of_site(database, organisation_id, site_id)


async def _export_pages(
    pages: Pages, format_: PageFormat, file: Path, *, replace: bool, as_json: bool
) -> None:
    if file.exists() and not replace:
        raise Conflict(f"{file} is there already; --replace overwrites it.")
    count = await write_file(pages, format_, file)
    if as_json:
        terminal.show_json({"pages": count, "bytes": file.stat().st_size})
    else:
        click.echo(f"{count:,} pages in {file}.", err=True)


async def export(
    database: Database,
    organisation_id: OrganisationId,
    path: Path,
    *,
    job_id: JobId | None = None,
    site_id: SiteId | None = None,
    replace: bool = False,
) -> dict[str, int]:
    """Write a file that has its name only once it is whole."""
    if path.exists() and not replace and str(path) != "-":
        raise Conflict(f"{path} is there already; --replace overwrites it.")
    blobs = Blobs.of(database.settings)
    if str(path) == "-":
        writer = await write_warc(
            database, blobs, organisation_id, sys.stdout.buffer, job_id=job_id, site_id=site_id
        )
        return {"records": writer.records, "bytes": writer.bytes}
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            writer = await write_warc(
                database, blobs, organisation_id, file, job_id=job_id, site_id=site_id
            )
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    return {"records": writer.records, "bytes": writer.bytes}
