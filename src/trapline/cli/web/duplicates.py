"""`trapline duplicates`: groups of duplicate pages."""

from typing import get_args

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import NotFound
from trapline.model import PageId
from trapline.pipeline import after_job
from trapline.pipeline.reports import duplicate_list
from trapline.pipeline.sql import duplicates as queries
from trapline.store import duplicates, sites


@click.group()
def command() -> None:
    """Duplicates: list, show, decide, undecide, find.

    \b
    Example: trapline duplicates list docs
    """


@command.command("list")
@click.argument("site")
@click.option(
    "--sort",
    type=click.Choice(get_args(duplicate_list.Sort)),
    default="oldest",
    help="What comes first.",
)
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, 10_000), help="Most."
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database, site: str, sort: duplicate_list.Sort, limit: int, org: str, as_json: bool
) -> None:
    """List the groups of a site that have more than one page.

    \b
    Example: trapline duplicates list docs
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        site_row = await sites.find(conn, organisation.id, site)
        rows = await duplicate_list.groups_of(site_row.id).read(conn, sort, most=limit)
    lines = [
        {
            "group": row.group_id,
            "pages": row.pages,
            "original": row.original_url,
            "seen": row.occurrence_count,
            "first_seen_at": row.first_seen_at,
            "last_seen_at": row.last_seen_at,
        }
        for row in rows
    ]
    terminal.show(lines, as_json=as_json, empty="No duplicates.")


@command.command("show")
@click.argument("site")
@click.argument("group", type=click.IntRange(1, 2**63 - 1))
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, site: str, group: int, org: str, as_json: bool) -> None:
    """List the pages of a group, the original first.

    \b
    Example: trapline duplicates show docs 17
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        site_row = await sites.find(conn, organisation.id, site)
        rows = await queries.members_of(conn, site_id=site_row.id, group_id=group, most=10_000)
    if not rows:
        raise NotFound(f"There is no group {group}.")
    lines = [
        {
            "page": row.page_id,
            "url": row.url,
            "similarity": row.similarity,
            "by_hand": row.by_hand,
            "last_seen_at": row.last_seen_at,
        }
        for row in rows
    ]
    terminal.show(lines, as_json=as_json)


@command.command("decide")
@click.argument("page", type=click.UUID)
@click.option("--of", "original", type=click.UUID, help="The page that it is a duplicate of.")
@terminal.with_database
async def decide(database: Database, page: PageId, original: PageId | None) -> None:
    """Decide by hand which page this one duplicates; without --of, none.

    \b
    Example: trapline duplicates decide 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        await duplicates.set_duplicate_of(conn, page, original)
    click.echo("Decided.")


@command.command("undecide")
@click.argument("page", type=click.UUID)
@terminal.with_database
async def undecide(database: Database, page: PageId) -> None:
    """Withdraw a decision made by hand.

    \b
    Example: trapline duplicates undecide 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        await duplicates.clear_decision(conn, page)
    click.echo("What was found holds again.")


@command.command("find")
@terminal.with_database
async def find(database: Database) -> None:
    """Look for duplicates now; otherwise maintenance does it every few seconds.

    \b
    Example: trapline duplicates find
    """
    click.echo(f"Looked at {await after_job.roll_up_sightings(database)} pages.")
