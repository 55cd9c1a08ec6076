"""Shared by all commands: running async code, printing rows, choosing an organisation."""

import functools
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, ParamSpec

import click
import msgspec
import uvloop
from rich.console import Console

from trapline.cli import table
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.settings import Settings

P = ParamSpec("P")
_PIPE_WIDTH = 10_000
Row = Mapping[str, Any] | msgspec.Struct

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
organisation_option = click.option(
    "--org",
    default=tenancy.DEFAULT_ORGANISATION,
    show_default=True,
    help="Organisation, by id, name or foreign owner id.",
)


def asynchronous(function: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Let click call an async function."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        uvloop.run(function(*args, **kwargs))

    return run


def with_database(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Call an async command with an open Database in place of the settings."""

    @click.pass_obj
    @functools.wraps(function)
    def run(settings: Settings, *args: Any, **kwargs: Any) -> None:
        async def call() -> None:
            async with Database.open(settings) as database:
                async with database.system_tx() as conn:
                    await tenancy.ensure_default(conn)
                await function(database, *args, **kwargs)

        uvloop.run(call())

    return run


def show(rows: Sequence[Row], *, as_json: bool, empty: str = "Nothing there.") -> None:
    """Print rows as a table, or as one JSON array."""
    if as_json:
        show_json(rows)
    elif not rows:
        click.echo(empty)
    else:
        _print_table([_cells(row) for row in rows])


def _print_table(rows: Sequence[Mapping[str, str]]) -> None:
    # Into a pipe or file nothing is folded or left out: the next program wants whole lines.
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    built, hidden = table.build(rows, console.width)
    console.print(built)
    if hidden:
        click.echo(f"Not shown, for lack of width: {', '.join(hidden)}.", err=True)


def _cells(row: Row) -> dict[str, str]:
    return {name.replace("_", " "): _cell(value) for name, value in _fields(row).items()}


def show_one(row: Row, *, as_json: bool) -> None:
    """Print one thing as name and value lines, or as one JSON object."""
    if as_json:
        show_json(row)
        return
    fields = _cells(row)
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:{width}}  {value}")


def show_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _fields(row: Row) -> Mapping[str, Any]:
    return msgspec.structs.asdict(row) if isinstance(row, msgspec.Struct) else row


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
        case bytes():
            return value.hex()
        case list() | tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
