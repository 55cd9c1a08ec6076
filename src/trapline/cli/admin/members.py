"""`trapline members`: the members of an organisation."""

from uuid import UUID

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.db.sql import tenancy as queries
from trapline.model import MemberId


@click.group()
def command() -> None:
    """Members are the people of an organisation.

    \b
    Example: trapline members add ada@example.com --org acme
    """


@command.command("add")
@click.argument("email")
@click.option("--name", "full_name", help="Full name.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def add(
    database: Database, email: str, full_name: str | None, org: str, as_json: bool
) -> None:
    """Add a member.

    \b
    Example: trapline members add ada@example.com --name "Ada Lovelace"
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await tenancy.add_member(conn, organisation.id, email, full_name)
    terminal.show_one(row, as_json=as_json)


@command.command("list")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(database: Database, org: str, as_json: bool) -> None:
    """List the members of an organisation.

    \b
    Example: trapline members list --org acme
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        rows = await queries.list_members(conn, organisation_id=organisation.id)
    terminal.show(rows, as_json=as_json, empty="No members yet.")


@command.command("remove")
@click.argument("member_id", type=click.UUID)
@terminal.organisation_option
@terminal.with_database
async def remove(database: Database, member_id: UUID, org: str) -> None:
    """Remove a member.

    \b
    Example: trapline members remove 0197c9e2-7b1f-7c9e-8d6c-2f6f3f6f1a11
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        await tenancy.remove_member(conn, organisation.id, MemberId(member_id))
    click.echo("Removed.")
