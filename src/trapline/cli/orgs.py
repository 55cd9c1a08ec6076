"""`trapline orgs`: organisations and their limits."""

import click

from trapline.cli import terminal
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
@click.option("--max-concurrency", type=int, help="Most tasks running at once.")
@click.option("--max-pages-per-day", type=int, help="Most pages fetched in a day.")
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
@click.option("--max-concurrency", type=int, help="Most tasks running at once; none if left out.")
@click.option("--max-pages-per-day", type=int, help="Most pages a day; none if left out.")
@terminal.json_option
@terminal.with_database
async def limit(
    database: Database,
    reference: str,
    max_concurrency: int | None,
    max_pages_per_day: int | None,
    as_json: bool,
) -> None:
    """Set both limits of an organisation.

    \b
    Example: trapline orgs limit acme --max-concurrency 5
    """
    async with database.system_tx() as conn:
        found = await tenancy.find_organisation(conn, reference)
        row = await tenancy.limit_organisation(
            conn,
            found.id,
            max_concurrency=max_concurrency,
            max_pages_per_day=max_pages_per_day,
        )
    terminal.show_one(row, as_json=as_json)


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
        found = await tenancy.find_organisation(conn, reference)
        await tenancy.delete_organisation(conn, found.id)
    click.echo(f"Deleted {found.name}.")
