"""`trapline blobs`: the storage of raw bytes."""

from dataclasses import asdict

import click

from trapline.cli import terminal
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.store import blob_migration
from trapline.store.blob_migration import MovedBlobs
from trapline.store.blobs import BlobStore
from trapline.store.sql import blobs as queries


@click.group()
def command() -> None:
    """Raw bytes: where they are stored, and moving them.

    \b
    Example: trapline blobs list
    """


@command.command("list")
@terminal.json_option
@terminal.with_database
async def list_(database: Database, as_json: bool) -> None:
    """List the number of blobs and bytes in each storage location.

    \b
    Example: trapline blobs list --json
    """
    async with database.system_tx() as conn:
        rows = await queries.count_by_place(conn)
    terminal.show(rows, as_json=as_json, empty="No bytes yet.")


@command.command("move")
@click.option(
    "--from", "before", help="Where files or objects lay: file:/path, s3://bucket/prefix."
)
@terminal.json_option
@terminal.with_database
async def move(database: Database, before: str | None, as_json: bool) -> None:
    """Move all bytes to the location in TRAPLINE_BLOBS. It can be interrupted and run again.

    Workers that run meanwhile need the same TRAPLINE_BLOBS, and the old location in
    TRAPLINE_BLOBS_BEFORE.

    \b
    Example: TRAPLINE_BLOBS=s3://archive/blobs trapline blobs move --from file:/var/lib/blobs
    """
    settings = database.settings.blobs
    if before is not None:
        settings = settings.model_copy(update={"previous_location": before})
    moved = await blob_migration.move_blobs(database, BlobStore.of(settings), on_progress=_say)
    if as_json:
        terminal.show_json(asdict(moved))
    else:
        click.echo(f"{moved.blobs:,} blobs moved, {moved.removed:,} removed from their old place.")
    if moved.damaged:
        raise TraplineError(f"{moved.damaged} blobs are damaged or missing, and stay as they are.")


def _say(moved: MovedBlobs) -> None:
    click.echo(f"{moved.blobs:,} blobs, {moved.bytes:,} bytes", err=True)
