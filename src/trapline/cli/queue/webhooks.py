"""`trapline webhooks`: webhook deliveries, and sending them again."""

from uuid import UUID

import click

from trapline.cli import terminal
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.deliver import subscriptions
from trapline.errors import NotFound
from trapline.pipeline.sites import changedetection_reports
from trapline.queue import jobs

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
@click.option("--job", help="Only those of this job, by id or its first digits.")
@click.option(
    "--limit",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="At most so many.",
)
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def list_(
    database: Database, state: str | None, job: str | None, limit: int, org: str, as_json: bool
) -> None:
    """List deliveries, newest first.

    \b
    Example: trapline webhooks list --state dead --json
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        rows = await subscriptions.list_deliveries(
            conn,
            organisation.id,
            state=state,
            job_id=None if job is None else await jobs.find_id(conn, job),
            most=limit,
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
        row = await subscriptions.get(conn, organisation.id, delivery)
    terminal.show_one(row, as_json=as_json)


@command.command("replay")
@click.argument("delivery", type=click.UUID, required=False)
@click.option("--job", help="All deliveries of this job, by id or its first digits.")
@click.option("--state", type=click.Choice(STATES[1:]), help="All deliveries in this state.")
@terminal.organisation_option
@terminal.json_option
@terminal.with_database
async def replay(
    database: Database,
    delivery: UUID | None,
    job: str | None,
    state: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Send deliveries again, with the same ids: one, or all of a job or of a state.

    \b
    Example: trapline webhooks replay --state dead
    """
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
        number = await subscriptions.replay(
            conn,
            organisation.id,
            delivery_id=delivery,
            job_id=None if job is None else await jobs.find_id(conn, job),
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
    master = database.settings.server.changedetection_secret
    if master is None:
        raise NotFound("Set TRAPLINE_CHANGEDETECTION_SECRET to receive reports.")
    async with database.system_tx() as conn:
        organisation = await tenancy.find_organisation(conn, org)
    signing_secret = changedetection_reports.signing_secret(
        master.get_secret_value(), organisation.id
    )
    if as_json:
        terminal.show_json({"organisation_id": organisation.id, "secret": signing_secret})
    else:
        click.echo(signing_secret)
