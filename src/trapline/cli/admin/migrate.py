"""`trapline migrate`: database migrations."""

from dataclasses import asdict

import click

from trapline.cli import terminal
from trapline.cli.parameters import AtLeast
from trapline.db import migrate, pool
from trapline.settings import Settings


@click.group()
def command() -> None:
    """The schema: up, down, status. Every other command runs `up` by itself.

    \b
    Example: trapline migrate status
    """


@command.command("up")
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def up(settings: Settings, as_json: bool) -> None:
    """Apply all migrations that are missing.

    \b
    Example: trapline migrate up
    """
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        applied = await pool.prepare(conn)
    _show(applied, "applied", "The schema is up to date.", as_json=as_json)


@command.command("down")
@click.option("--to", type=AtLeast(0), help="Revert every migration numbered above this one.")
@click.confirmation_option(prompt="Reverting a migration deletes what it made. Go on?")
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def down(settings: Settings, to: int | None, as_json: bool) -> None:
    """Revert the last migration, or all above --to.

    \b
    Example: trapline migrate down --to 1 --yes
    """
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        reverted = await migrate.downgrade(conn, to=to)
    _show(reverted, "reverted", "There was nothing to revert.", as_json=as_json)


@command.command("status")
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def status(settings: Settings, as_json: bool) -> None:
    """List all migrations and whether they are applied; changes nothing.

    \b
    Example: trapline migrate status --json
    """
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        rows = await migrate.status(conn)
    terminal.show([asdict(row) for row in rows], as_json=as_json)


def _show(steps: list[migrate.AppliedMigration], verb: str, empty: str, *, as_json: bool) -> None:
    rows = [{verb: step.name, "seconds": step.duration.total_seconds()} for step in steps]
    terminal.show(rows, as_json=as_json, empty=empty)
