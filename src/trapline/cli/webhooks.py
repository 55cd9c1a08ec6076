"""`trapline webhooks`: what receivers were told, and telling them again."""

from uuid import UUID

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.deliver import webhooks
from trapline.errors import NotFound
from trapline.model import JobId
from trapline.pipeline import watcher_reports

STATES = ("pending", "aside", "delivered", "dead")


@click.group()
def command() -> None:
    """Deliveries of webhooks: each event of a job, for each of its receivers; and the secret of those
    that come in.

    \b
    Example: trapline webhooks list --state dead
    """


@command.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--job", type=click.UUID, help="Only those of this job.")
@click.option(
    "--most",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="So many at most.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database, state: str | None, job: UUID | None, most: int, org: str, as_json: bool
) -> None:
    """List deliveries, newest first.

    \b
    Example: trapline webhooks list --state dead --json
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        rows = await webhooks.listing(
            conn,
            organisation.id,
            state=state,
            job_id=None if job is None else JobId(job),
            most=most,
        )
    terminal.show(rows, as_json=as_json, empty="No deliveries.")


@command.command("show")
@click.argument("delivery", type=click.UUID)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def show(database: Database, delivery: UUID, org: str, as_json: bool) -> None:
    """Show one delivery: its event, its receiver and how the last attempt ended.

    \b
    Example: trapline webhooks show 0199a3c4-5f11-7c2e-9d0b-1f4f6a9f2f10
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        row = await webhooks.get(conn, organisation.id, delivery)
    terminal.show_one(row, as_json=as_json)


@command.command("replay")
@click.argument("delivery", type=click.UUID, required=False)
@click.option("--job", type=click.UUID, help="All deliveries of this job.")
@click.option("--state", type=click.Choice(STATES[1:]), help="All deliveries in this state.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def replay(
    database: Database,
    delivery: UUID | None,
    job: UUID | None,
    state: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Send again, with the same ids: one delivery, or those of a job or of a state.

    \b
    Example: trapline webhooks replay --state dead
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        number = await webhooks.replay(
            conn,
            organisation.id,
            delivery_id=delivery,
            job_id=None if job is None else JobId(job),
            state=state,
        )
    if as_json:
        terminal.show_json({"replayed": number})
    else:
        click.echo(f"{number} to be sent again; a running server does it.")


@command.command("secret")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def secret(database: Database, org: str, as_json: bool) -> None:
    """Show the secret that signs changedetection.io's reports for an organisation.

    \b
    Example: trapline webhooks secret --org acme
    """
    master = database.settings.changedetection_secret
    if master is None:
        raise NotFound("Set TRAPLINE_CHANGEDETECTION_SECRET to receive reports.")
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
    found = watcher_reports.secret_of(master.get_secret_value(), organisation.id)
    if as_json:
        terminal.show_json({"organisation_id": organisation.id, "secret": found})
    else:
        click.echo(found)
