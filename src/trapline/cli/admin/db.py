"""`trapline db`: the database itself."""

import asyncio
import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from trapline.cli import terminal
from trapline.db import backup as archives
from trapline.db import embedded, pool, schemas
from trapline.errors import Conflict, InvalidInput
from trapline.pipeline.reports import db_statistics
from trapline.settings import Settings


@click.group()
def command() -> None:
    """The database: where it is, a shell in it, backups, starting over.

    \b
    Example: trapline db psql -- -c "SELECT count(*) FROM tenancy.organisation"
    """


@command.command("url")
@click.option(
    "--tcp",
    is_flag=True,
    help="Open a TCP port on 127.0.0.1 (password required); the server restarts for it, once.",
)
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def url(settings: Settings, tcp: bool, as_json: bool) -> None:
    """Print the URL of the database, for psql and other programs.

    The embedded server runs only while a Trapline process does.

    \b
    Example: psql "$(trapline db url)"
    """
    external = settings.database.external_dsn()
    if external is not None:
        address = external
    else:
        async with embedded.running(settings.database) as server:
            address = await server.tcp_url() if tcp else server.dsn
    terminal.show_json({"url": address}) if as_json else click.echo(address)


@command.command("psql", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
@terminal.asynchronous
async def psql(settings: Settings, arguments: tuple[str, ...]) -> None:
    """Open psql on the database; what follows -- goes to psql.

    \b
    Example: trapline db psql -- -c "SELECT version()"
    """
    async with pool.server(settings.database) as server:
        process = await asyncio.create_subprocess_exec(
            str(embedded.binary("psql")), f"--dbname={server.dsn}", *arguments
        )
        status = await process.wait()
    raise click.exceptions.Exit(status)


@command.command("stats")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=db_statistics.MOST,
    show_default=True,
    help="Rows of each table, at most.",
)
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def stats(settings: Settings, limit: int, as_json: bool) -> None:
    """Show database statistics: connections, workers, statements, tables, indexes.

    \b
    Example: trapline db stats --limit 10
    """
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        await pool.prepare(conn)
        statistics = await db_statistics.read_statistics(conn, now=datetime.now(UTC), most=limit)
    if as_json:
        terminal.show_json(msgspec.to_builtins(statistics))
        return
    for field in dataclasses.fields(statistics):
        rows = getattr(statistics, field.name)
        click.echo(f"\n{_TITLES[field.name]}")
        empty = "pg_stat_statements is not there." if rows is None else "None."
        terminal.show([_shown(row) for row in rows or ()], as_json=False, empty=empty)


_TITLES = {
    "connections": "Connections by state",
    "efficiency": "Tasks of the last hour by kind",
    "rates": "Jobs of the last day by hour",
    "statements": "Statements that took most time",
    "slow": "Statements that run for long now",
    "tables": "Tables by size",
    "unused_indexes": "Indexes that nothing reads",
    "bloated_indexes": "Indexes that are mostly air",
}
_LONGEST = 80


def _shown(row: msgspec.Struct) -> dict[str, object]:
    return {name: _short(getattr(row, name)) for name in row.__struct_fields__}


def _short(value: object) -> object:
    if isinstance(value, float):
        return round(value, 2)
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else value


@command.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--schema-only", is_flag=True, help="Tables without rows.")
@click.option("--data-only", is_flag=True, help="Rows without tables.")
@click.pass_obj
@terminal.asynchronous
async def backup(settings: Settings, file: Path | None, schema_only: bool, data_only: bool) -> None:
    """Write a backup; without FILE its name is the time.

    \b
    Example: trapline db backup before-upgrade.dump
    """
    target = file or Path(f"trapline-{datetime.now().astimezone():%Y%m%d-%H%M%S}.dump")
    if target.exists():
        raise Conflict(f"{target} exists already; choose another name.")
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        part = _part(schema_only=schema_only, data_only=data_only)
        await archives.backup(server.dsn, await schemas.present(conn), target, part)
    click.echo(f"Wrote {target} ({target.stat().st_size:,} bytes).")


@command.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--schema-only", is_flag=True, help="Only the tables of a full backup.")
@click.option("--data-only", is_flag=True, help="Only the rows, into tables that are there.")
@click.option("--replace", is_flag=True, help="Drop what is in the database first.")
@click.pass_obj
@terminal.asynchronous
async def restore(
    settings: Settings, file: Path, schema_only: bool, data_only: bool, replace: bool
) -> None:
    """Read a backup into the database, all of it or nothing.

    \b
    Example: trapline db restore before-upgrade.dump --replace
    """
    part = _part(schema_only=schema_only, data_only=data_only)
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        preparation: list[str] = []
        if part == "data":
            await pool.prepare(conn)
            if replace:
                preparation = await schemas.truncate_statements(conn)
        else:
            await pool.prepare_server(conn)
            if not replace and await schemas.present(conn):
                raise Conflict("The database is not empty; --replace drops what is there.")
            preparation = await schemas.drop_statements(conn)
        await archives.restore(server.dsn, file, part, preparation)
        # A backup of an older version is brought up to date at once.
        await pool.prepare(conn)
    click.echo(f"Restored {file}.")


@command.command("reset")
@click.confirmation_option(prompt="This destroys ALL data in the database. Go on?")
@click.pass_obj
@terminal.asynchronous
async def reset(settings: Settings) -> None:
    """Destroy all data and recreate the schema.

    \b
    Example: trapline db reset --yes
    """
    async with (
        pool.server(settings.database) as server,
        pool.owner(server.dsn, settings.database) as conn,
    ):
        await schemas.drop_all(conn)
        await pool.prepare(conn)
    click.echo("All data is gone; the schema is new.")


def _part(*, schema_only: bool, data_only: bool) -> archives.BackupPart:
    if schema_only and data_only:
        raise InvalidInput("Choose one of --schema-only and --data-only.")
    return "schema" if schema_only else "data" if data_only else "all"
