"""`trapline pages`: pages, their versions, and diffs between them."""

from datetime import UTC, datetime
from typing import get_args
from uuid import UUID

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import InvalidInput, NotFound
from trapline.frontier.patterns import Patterns
from trapline.model import OrganisationId, PageId
from trapline.pipeline.crawl import change_detection
from trapline.pipeline.reports import page_list
from trapline.pipeline.sql import pages as queries
from trapline.pipeline.sql.pages import PageRow, VersionRow
from trapline.queue import jobs
from trapline.store import sites

_SHOWN = ("page_id", "url", "title", "version_number", "last_seen_at", "gone_at", "duplicate_of")
_LAST = 2**31 - 1


@click.group()
def command() -> None:
    """Pages: list, show, versions, at, diff, documents.

    \b
    Example: trapline pages list --site docs
    """


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a time; write 2026-12-01T09:00.") from None
    return moment if moment.tzinfo is not None else moment.astimezone(UTC)


async def _page(
    conn: Connection, organisation_id: OrganisationId, reference: str, site: str | None
) -> PageRow:
    """Find a page by its id, or by its URL, in the given site or the only one that has it."""
    site_id = None if site is None else (await sites.find(conn, organisation_id, site)).id
    try:
        row = await page_list.page(conn, PageId(UUID(reference)))
        here = row.organisation_id == organisation_id and site_id in (None, row.site_id)
        rows = [row] if here else []
    except ValueError:
        of_url = page_list.pages_of(organisation_id, site_id=site_id, url=reference)
        rows = await of_url.read(conn, "oldest", most=2)
    if not rows:
        where = "" if site is None else f" in the site {site!r}"
        raise NotFound(f"There is no page {reference!r}{where}.")
    if len(rows) > 1:
        raise InvalidInput(
            "Several sites have this URL; name one with --site, or the page by its id."
        )
    return rows[0]


_site_option = click.option(
    "--site", help="Of this site, by id or name, where several have the URL."
)


@command.command("list")
@click.option("--site", help="Of this site, by id or name.")
@click.option("--job", help="That this job saw, by id or its first digits.")
@click.option("--url", help="Of this URL.")
@click.option("--since", help="Seen at or after this time.")
@click.option("--until", help="First seen at or before this time.")
@click.option("--gone/--present", default=None, help="Gone ones, or those that are there.")
@click.option("--duplicate/--original", default=None, help="Duplicates, or all others.")
@click.option(
    "--sort",
    type=click.Choice(get_args(page_list.Sort)),
    default="oldest",
    help="As they were found, or what changed last first.",
)
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, 10_000), help="Most."
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database,
    site: str | None,
    job: str | None,
    url: str | None,
    since: str | None,
    until: str | None,
    gone: bool | None,
    duplicate: bool | None,
    sort: page_list.Sort,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List pages by site, job, URL and time.

    \b
    Example: trapline pages list --site docs --gone
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        if job is not None:
            job_id = await jobs.find_id(conn, job)
            seen = await queries.pages_of_job(conn, job_id=job_id, after=0, most=limit)
            terminal.show(seen, as_json=as_json, empty="No pages.")
            return
        site_id = None
        if site is not None:
            site_id = (await sites.find(conn, organisation.id, site)).id
        selected = page_list.pages_of(
            organisation.id,
            site_id=site_id,
            url=url,
            seen_since=_moment(since),
            seen_until=_moment(until),
            gone=gone,
            duplicate=duplicate,
        )
        rows = await selected.read(conn, sort, most=limit)
    lines = [{name: getattr(row, name) for name in _SHOWN} for row in rows]
    terminal.show(rows if as_json else lines, as_json=as_json, empty="No pages.")


@command.command("show")
@click.argument("page")
@_site_option
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, page: str, site: str | None, org: str, as_json: bool) -> None:
    """Show a page, by its id or its URL.

    \b
    Example: trapline pages show https://example.com/docs/
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        terminal.show_one(await _page(conn, organisation.id, page, site), as_json=as_json)


@command.command("versions")
@click.argument("page")
@_site_option
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def versions(
    database: Database, page: str, site: str | None, org: str, as_json: bool
) -> None:
    """List a page's versions, newest first.

    \b
    Example: trapline pages versions https://example.com/docs/
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await _page(conn, organisation.id, page, site)
        rows = await queries.list_versions(conn, page_id=row.page_id, before=_LAST, most=1000)
    terminal.show(rows, as_json=as_json, empty="No versions.")


@command.command("at")
@click.argument("page")
@click.argument("time", required=False)
@click.option("--version", type=click.IntRange(1, _LAST), help="By its number instead of a time.")
@_site_option
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def at(
    database: Database,
    page: str,
    time: str | None,
    version: int | None,
    site: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Print a page's markdown as it was at a time; without one, as it is.

    \b
    Example: trapline pages at https://example.com/docs/ 2026-11-01T12:00
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await _page(conn, organisation.id, page, site)
        if version is not None:
            version_row: VersionRow | None = await _version(conn, row, version)
        else:
            moment = _moment(time) or datetime.now(UTC)
            version_row = await queries.version_at(conn, page_id=row.page_id, at=moment)
    if version_row is None:
        raise NotFound(f"The page was first seen later, at {row.first_seen_at.isoformat()}.")
    if as_json:
        terminal.show_one(version_row, as_json=True)
    else:
        click.echo(version_row.markdown)


@command.command("diff")
@click.argument("page")
@click.argument("old", type=click.IntRange(1, _LAST), required=False)
@click.argument("new", type=click.IntRange(1, _LAST), required=False)
@_site_option
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def diff(
    database: Database,
    page: str,
    old: int | None,
    new: int | None,
    site: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Show the diff of two versions; without numbers, of the latest and the one before.

    \b
    Example: trapline pages diff https://example.com/docs/ 2 5
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await _page(conn, organisation.id, page, site)
        later = new or row.version_number
        before = await _version(conn, row, old or max(1, later - 1))
        after = await _version(conn, row, later)
        own = await sites.find(conn, organisation.id, str(row.site_id))
    noise = Patterns(tuple(own.config.get("ignore_patterns", ())))
    difference = change_detection.diff_without_noise(before.markdown, after.markdown, noise)
    if as_json:
        terminal.show_json(difference)
    else:
        click.echo(difference.text or "Nothing changed.")


@command.command("documents")
@click.argument("page")
@_site_option
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def documents(
    database: Database, page: str, site: str | None, org: str, as_json: bool
) -> None:
    """List the files that a page's versions were made from.

    \b
    Example: trapline pages documents https://example.com/report.pdf --json
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await _page(conn, organisation.id, page, site)
        rows = await queries.documents_of(conn, page_id=row.page_id, most=1000)
    lines = [
        {
            "version": document.number,
            "fetched_at": document.fetched_at,
            "sha256": document.sha256.hex(),
            "size": document.size,
            "media_type": document.media_type,
        }
        for document in rows
    ]
    terminal.show(lines, as_json=as_json, empty="No files.")


async def _version(conn: Connection, page: PageRow, number: int) -> VersionRow:
    row = await queries.get_version(conn, page_id=page.page_id, number=number)
    if row is None:
        raise NotFound(f"The page has no version {number}, or not any more.")
    return row
