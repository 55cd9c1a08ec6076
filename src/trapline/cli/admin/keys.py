"""`trapline keys`: API keys."""

import click
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.db.sql import tenancy as queries


@click.group()
def command() -> None:
    """API keys act for an organisation. Once one was created, the server requires one.

    \b
    Example: trapline keys create laptop --scope read --scope write
    """


@command.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("read", "write"),
    show_default=True,
    type=click.Choice(tenancy.SCOPES),
    help="What the key may do; give it more than once for more.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def create(
    database: Database, name: str, scopes: tuple[str, ...], org: str, as_json: bool
) -> None:
    """Create a key and show it, this once.

    \b
    Example: trapline keys create ci --org acme
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        issued = await tenancy.issue_key(conn, organisation.id, name, scopes)
    terminal.show_one({"key": issued.secret} | asdict(issued.row), as_json=as_json)
    if not as_json:
        click.echo("\nKeep the key: only its hash is stored.")


@command.command("list")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(database: Database, org: str, as_json: bool) -> None:
    """List the keys of an organisation, revoked ones too.

    \b
    Example: trapline keys list --json
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        rows = await queries.list_keys(conn, organisation_id=organisation.id)
    terminal.show(rows, as_json=as_json, empty="No keys yet.")


@command.command("revoke")
@click.argument("reference", metavar="KEY")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def revoke(database: Database, reference: str, org: str, as_json: bool) -> None:
    """Revoke a key at once, by its id or its prefix.

    \b
    Example: trapline keys revoke trp_1a2b3c4d
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await tenancy.revoke_key(conn, organisation.id, reference)
    terminal.show_one(row, as_json=as_json)


@command.command("open")
@terminal.json_option
@terminal.with_database
async def open_(database: Database, as_json: bool) -> None:
    """Delete all revoked keys, so that a server on a loopback address needs no key again.

    \b
    Example: trapline keys open
    """
    async with database.system_tx() as conn:
        deleted = await tenancy.delete_revoked_keys(conn)
    terminal.show_one({"deleted": deleted}, as_json=as_json)
