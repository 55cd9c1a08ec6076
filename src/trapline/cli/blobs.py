"""`trapline blobs`: where raw bytes lie."""

from dataclasses import asdict

import click

from trapline.cli import terminal
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.store import moving
from trapline.store.blobs import Blobs
from trapline.store.moving import Moved
from trapline.store.sql import blobs as queries


@click.group()
def command() -> None:
    """Raw bytes: where they lie, and moving them.

    \b
    Example: trapline blobs list
    """


@command.command("list")
@terminal.json_option
@terminal.with_database
async def list_(database: Database, as_json: bool) -> None:
    """Say how many bytes lie at which place.

    \b
    Example: trapline blobs list --json
    """
    async with database.system_tx() as conn:
        rows = await queries.places(conn)
    terminal.show(rows, as_json=as_json, empty="No bytes yet.")


@command.command("move")
@click.option(
    "--from", "before", help="Where files or objects lay: file:/path, s3://bucket/prefix."
)
@terminal.json_option
@terminal.with_database
async def move(database: Database, before: str | None, as_json: bool) -> None:
    """Move all bytes to the place that TRAPLINE_BLOBS names. It can be interrupted and run again.

    Workers that run meanwhile need the same TRAPLINE_BLOBS, and the old place in
    TRAPLINE_BLOBS_BEFORE.

    \b
    Example: TRAPLINE_BLOBS=s3://archive/blobs trapline blobs move --from file:/var/lib/blobs
    """
    settings = database.settings
    if before is not None:
        settings = settings.model_copy(update={"blobs_before": before})
    moved = await moving.move(database, Blobs.of(settings), said=_say)
    if as_json:
        terminal.show_json(asdict(moved))
    else:
        click.echo(f"{moved.blobs:,} blobs moved, {moved.removed:,} removed from their old place.")
    if moved.damaged:
        raise TraplineError(f"{moved.damaged} blobs are damaged or missing, and stay as they are.")


def _say(moved: Moved) -> None:
    click.echo(f"{moved.blobs:,} blobs, {moved.bytes:,} bytes", err=True)
