"""`trapline apps`: applications, which group knowledge sources."""

from datetime import UTC, datetime
from typing import Any

import click
from msgspec.structs import asdict

from trapline.cli import terminal
from trapline.cli.queue.schedule import seconds_of
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge import applications
from trapline.knowledge.sql.applications import ApplicationRow
from trapline.model import OrganisationId
from trapline.pipeline.ingest import source_operations, source_schedules


@click.group()
def command() -> None:
    """An application owns knowledge sources: files, pages and sites that are searched together.

    \b
    Example: trapline apps create support
    """


async def organisation_of(database: Database, org: str) -> OrganisationId:
    async with database.system_tx() as conn:
        return (await tenancy.find_organisation(conn, org)).id


@command.command("create")
@click.argument("name")
@click.option("--every", help="Fetch its pages and sites again so often: 15m, 6h, 1d, 2w.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def create(database: Database, name: str, every: str | None, org: str, as_json: bool) -> None:
    """Create an application.

    \b
    Example: trapline apps create support
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await applications.create(
            conn, organisation_id, name, rescrape_every=seconds_of(every)
        )
    terminal.show_one(_fields(row), as_json=as_json)


@command.command("list")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(database: Database, org: str, as_json: bool) -> None:
    """List applications.

    \b
    Example: trapline apps list --json
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        rows = await applications.list_after(conn, organisation_id, most=1000)
    terminal.show([_fields(row) for row in rows], as_json=as_json)


@command.command("show")
@click.argument("application")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, application: str, org: str, as_json: bool) -> None:
    """Show an application and the progress of its jobs of the last 24 hours.

    \b
    Example: trapline apps show support
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await applications.find(conn, organisation_id, application)
        now = datetime.now(UTC)
        progress = await source_operations.progress(conn, organisation_id, row.id, now=now)
    counts = {name: getattr(progress, name) for name in type(progress).__dataclass_fields__}
    terminal.show_one(_fields(row) | counts, as_json=as_json)


@command.command("rename")
@click.argument("application")
@click.argument("name")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def rename(database: Database, application: str, name: str, org: str, as_json: bool) -> None:
    """Give an application another name.

    \b
    Example: trapline apps rename support helpdesk
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await applications.find(conn, organisation_id, application)
        row = await applications.update(conn, row, name=name)
    terminal.show_one(_fields(row), as_json=as_json)


@command.command("rescrape")
@click.argument("application")
@click.option("--every", help="So often: 15m, 6h, 1d, 2w.")
@click.option("--never", is_flag=True, help="Only those sources that say so themselves.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def rescrape(
    database: Database, application: str, every: str | None, never: bool, org: str, as_json: bool
) -> None:
    """Set how often the pages and sites of an application are refetched automatically.

    \b
    Example: trapline apps rescrape support --every 1d
    """
    if (every is None) != never:
        raise click.UsageError("Either --every or --never.")
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await applications.find(conn, organisation_id, application)
        row = await applications.update(
            conn, row, rescrape_every=seconds_of(every), keep_rescrape=False
        )
        await source_schedules.sync_application(conn, row.id)
    terminal.show_one(_fields(row), as_json=as_json)


@command.command("delete")
@click.argument("application")
@terminal.organisation_option
@terminal.with_database
async def delete(database: Database, application: str, org: str) -> None:
    """Delete an application with its sources and their indexed passages.

    \b
    Example: trapline apps delete support
    """
    organisation_id = await organisation_of(database, org)
    async with database.tenant_tx(organisation_id) as conn:
        row = await applications.find(conn, organisation_id, application)
        gone = await source_operations.delete_application(conn, row)
    click.echo(f"{row.name} is deleted with {gone} sources.")


def _fields(row: ApplicationRow) -> dict[str, Any]:
    fields = asdict(row)
    every = fields.pop("rescrape_every")
    del fields["organisation_id"]
    return fields | {"rescrape_seconds": None if every is None else every.total_seconds()}
