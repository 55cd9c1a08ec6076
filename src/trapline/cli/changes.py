"""`trapline changes`: what was seen to change."""

from typing import get_args
from uuid import UUID

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import JobId
from trapline.pipeline import chronicle
from trapline.store import sites
from trapline.store.changes import Status

_SHOWN = ("id", "detected_at", "status", "source", "url", "added_lines", "removed_lines")


@click.command()
@click.option("--site", help="Of this site, by id or name.")
@click.option("--status", type=click.Choice(get_args(Status)), help="Only these.")
@click.option("--job", type=click.UUID, help="That this job found.")
@click.option(
    "--sort",
    type=click.Choice(get_args(chronicle.Sort)),
    default="newest",
    help="What comes first.",
)
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="Most."
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def command(
    database: Database,
    site: str | None,
    status: Status | None,
    job: UUID | None,
    sort: chronicle.Sort,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List what was seen to change, newest or oldest first.

    \b
    Example: trapline changes --site docs --status removed
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        site_id = None if site is None else (await sites.find(conn, organisation.id, site)).id
        job_id = None if job is None else JobId(job)
        wanted = chronicle.Wanted(organisation.id, site_id, job_id=job_id, status=status)
        rows = await chronicle.listed(conn, wanted, sort, most=limit)
    lines = [{name: getattr(row, name) for name in _SHOWN} for row in rows]
    terminal.show(rows if as_json else lines, as_json=as_json, empty="Nothing changed.")
