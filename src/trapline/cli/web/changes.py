"""`trapline changes`: detected changes."""

from typing import get_args

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.pipeline.reports import change_list
from trapline.queue import jobs
from trapline.store import sites
from trapline.store.changes import ChangeStatus

_SHOWN = ("id", "status", "url", "detected_at", "added_lines", "removed_lines", "source")


@click.command()
@click.option("--site", help="Of this site, by id or name.")
@click.option("--status", type=click.Choice(get_args(ChangeStatus)), help="Only these.")
@click.option("--job", help="That this job found, by id or its first digits.")
@click.option(
    "--sort",
    type=click.Choice(get_args(change_list.Sort)),
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
    status: ChangeStatus | None,
    job: str | None,
    sort: change_list.Sort,
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List detected changes, newest or oldest first.

    \b
    Example: trapline changes --site docs --status removed
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        site_id = None if site is None else (await sites.find(conn, organisation.id, site)).id
        job_id = None if job is None else await jobs.find_id(conn, job)
        selected = change_list.changes_of(
            organisation.id, site_id=site_id, job_id=job_id, status=status
        )
        rows = await selected.read(conn, sort, most=limit)
    lines = [{name: getattr(row, name) for name in _SHOWN} for row in rows]
    terminal.show(rows if as_json else lines, as_json=as_json, empty="Nothing changed.")
