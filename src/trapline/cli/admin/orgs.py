"""`trapline orgs`: organisations and their limits."""

import click

from trapline.cli import terminal
from trapline.cli.parameters import AtLeast, Limit
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.db.sql import tenancy as queries


@click.group()
def command() -> None:
    """Organisations own all data and are isolated from each other.

    \b
    Example: trapline orgs create "Acme Ltd" --max-concurrency 20
    """


@command.command("create")
@click.argument("name")
@click.option("--owner", help="The id that another system knows it by (need not be a UUID).")
@click.option("--max-concurrency", type=AtLeast(1), help="Most tasks running at once.")
@click.option("--max-pages-per-day", type=AtLeast(1), help="Most pages fetched in a day.")
@terminal.json_option
@terminal.with_database
async def create(
    database: Database,
    name: str,
    owner: str | None,
    max_concurrency: int | None,
    max_pages_per_day: int | None,
    as_json: bool,
) -> None:
    """Create an organisation.

    \b
    Example: trapline orgs create acme --max-pages-per-day 100000
    """
    async with database.system_tx() as conn:
        row = await tenancy.create_organisation(
            conn,
            name,
            owner=owner,
            max_concurrency=max_concurrency,
            max_pages_per_day=max_pages_per_day,
        )
    terminal.show_one(row, as_json=as_json)


@command.command("list")
@terminal.json_option
@terminal.with_database
async def list_(database: Database, as_json: bool) -> None:
    """List all organisations.

    \b
    Example: trapline orgs list --json
    """
    async with database.system_tx() as conn:
        rows = await queries.list_organisations(conn)
    terminal.show(rows, as_json=as_json)


@command.command("limit")
@click.argument("reference", metavar="ORGANISATION")
@click.option("--max-concurrency", type=Limit(), help="Most tasks running at once, or none.")
@click.option("--max-pages-per-day", type=Limit(), help="Most pages a day, or none.")
@terminal.json_option
@terminal.with_database
async def limit(
    database: Database,
    reference: str,
    max_concurrency: int | str | None,
    max_pages_per_day: int | str | None,
    as_json: bool,
) -> None:
    """Set the limits of an organisation; one that is not given stays as it is.

    \b
    Example: trapline orgs limit acme --max-concurrency 5
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, reference)
        row = await tenancy.limit_organisation(
            conn,
            organisation.id,
            max_concurrency=_limit(max_concurrency, organisation.max_concurrency),
            max_pages_per_day=_limit(max_pages_per_day, organisation.max_pages_per_day),
        )
    terminal.show_one(row, as_json=as_json)


def _limit(given: int | str | None, present: int | None) -> int | None:
    """Return the present limit if none is given, and no limit for `none`."""
    return present if given is None else None if isinstance(given, str) else given


@command.command("delete")
@click.argument("reference", metavar="ORGANISATION")
@click.confirmation_option(prompt="This deletes the organisation with its members and keys. Go on?")
@terminal.with_database
async def delete(database: Database, reference: str) -> None:
    """Delete an organisation with all that it owns.

    \b
    Example: trapline orgs delete acme --yes
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, reference)
        await tenancy.delete_organisation(conn, organisation.id)
    click.echo(f"Deleted {organisation.name}.")
