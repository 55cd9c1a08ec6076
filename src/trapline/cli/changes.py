"""`trapline changes`: what was seen to change."""

from typing import Any, get_args
from uuid import UUID

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import JobId
from trapline.pipeline.sql import changes as queries
from trapline.store import sites
from trapline.store.changes import Status

_SHOWN = ("id", "detected_at", "status", "source", "url", "added_lines", "removed_lines")
_LAST = 2**63 - 1


@click.command()
@click.option("--site", help="Of this site, by id or name.")
@click.option("--status", type=click.Choice(get_args(Status)), help="Only these.")
@click.option("--job", type=click.UUID, help="That this job found.")
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
    limit: int,
    org: str,
    as_json: bool,
) -> None:
    """List what was seen to change, newest first.

    \b
    Example: trapline changes --site docs --status removed
    """
    filters: dict[str, Any] = {
        "status": status,
        "source": None,
        "job_id": None if job is None else JobId(job),
        "since": None,
        "until": None,
        "before": _LAST,
        "most": limit,
    }
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        if site is None:
            rows = await queries.list_changes(conn, organisation_id=organisation.id, **filters)
        else:
            found = await sites.find(conn, organisation.id, site)
            rows = await queries.list_site_changes(conn, site_id=found.id, page_id=None, **filters)
    lines = [{name: getattr(row, name) for name in _SHOWN} for row in rows]
    terminal.show(rows if as_json else lines, as_json=as_json, empty="Nothing changed.")
