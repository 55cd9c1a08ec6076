"""A Python module from the signatures of one file of queries."""

import keyword
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tools.sql.analysis import Column, Signature
from tools.sql.nullability import Origin
from tools.sql.queries import Command, QueryError
from tools.sql.types import IDS

_IMPORTS = {
    "asyncpg": ("Range", "Record"),
    "collections.abc": ("Sequence",),
    "datetime": ("date", "datetime", "time", "timedelta"),
    "decimal": ("Decimal",),
    "ipaddress": (
        "IPv4Address",
        "IPv4Interface",
        "IPv4Network",
        "IPv6Address",
        "IPv6Interface",
        "IPv6Network",
    ),
    "msgspec": ("Struct",),
    "trapline.db.connection": ("Connection",),
    "trapline.model": tuple(sorted(identity.__name__ for identity in IDS.values())),
    "typing": ("Any", "Final", "Literal"),
    "uuid": ("UUID",),
}

Tables: TypeAlias = Mapping[tuple[tuple[Origin | None, str, bool], ...], str]
"""The origin, name and nullability of all columns of a table, with the name of its row type."""


def render(source: str, signatures: Sequence[Signature], tables: Tables) -> str:
    """Return the text of the module, formatted."""
    rows: dict[str, tuple[Column, ...]] = {}
    functions = [
        _function(signature, _row_name(signature, rows, tables)) for signature in signatures
    ]
    body = "\n\n".join([*(_struct(name, columns) for name, columns in rows.items()), *functions])
    header = f'"""Typed functions of {source}, made by `make sql`: edit that file instead."""\n'
    return formatted(f"{header}\n{_imports(body)}\n{body}\n")


def formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    first_party = 'lint.isort.known-first-party=["trapline"]'
    for step in (["check", "--select=I", "--fix", "--config", first_party], ["format"]):
        text = subprocess.run(
            [ruff, *step, "--quiet", "-"], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def _row_name(
    signature: Signature, rows: dict[str, tuple[Column, ...]], tables: Tables
) -> str | None:
    """Choose the row type: the one asked for, that of a whole table, or one of the query's own."""
    query, columns = signature.query, signature.columns
    if len(columns) <= 1 or query.command not in {Command.ONE, Command.MANY}:
        return None
    shape = tuple(Column(c.name, c.type, c.nullable, None) for c in columns)
    whole = tables.get(tuple((c.origin, c.name, c.nullable) for c in columns))
    name = query.returns or whole or f"{query.name}Row"
    if rows.setdefault(name, shape) != shape:
        raise QueryError(f"{query.name}: {name} has other columns in another query of this file")
    return name


def _struct(name: str, columns: Iterable[Column]) -> str:
    fields = "\n".join(f"    {_safe(c.name)}: {_optional(c.type, c.nullable)}" for c in columns)
    return f"class {name}(Struct, frozen=True, gc=False):\n{fields}\n"


def _function(signature: Signature, row: str | None) -> str:
    query = signature.query
    constant = f"_{query.function.upper()}"
    arguments = [f"{_safe(p.name)}: {_optional(p.type, p.nullable)}" for p in signature.parameters]
    star = ", *, " if arguments else ""
    call = ", ".join([constant, *(_safe(p.name) for p in signature.parameters)])
    returns, lines = _body(signature, row, call)
    raw = "r" if "\\" in query.sql else ""
    return "\n".join(
        [
            f'{constant}: Final = {raw}"""',
            f"-- name: {query.name}",
            f'{query.sql}\n"""\n\n',
            f"async def {query.function}(conn: Connection{star}{', '.join(arguments)}) -> {returns}:",
            f'    """{query.purpose}"""',
            *(f"    {line}" for line in lines),
            "",
        ]
    )


def _body(signature: Signature, row: str | None, call: str) -> tuple[str, list[str]]:
    command = signature.query.command
    if command is Command.EXEC:
        return "None", [f"await conn.execute({call})"]
    if command is Command.EXECROWS:
        return "int", [f"return int((await conn.execute({call})).rpartition(' ')[2])"]
    if not signature.columns:
        raise QueryError(f"{signature.query.name}: :{command} needs a query that returns columns")
    if command is Command.MANY:
        return _many(signature, row, call)
    return _one(signature, row, call)


def _many(signature: Signature, row: str | None, call: str) -> tuple[str, list[str]]:
    if row is not None:
        return f"list[{row}]", [f"return [{row}(*row) for row in await conn.fetch({call})]"]
    (column,) = signature.columns
    value = _optional(column.type, column.nullable)
    return f"list[{value}]", [f"return [row[0] for row in await conn.fetch({call})]"]


def _one(signature: Signature, row: str | None, call: str) -> tuple[str, list[str]]:
    if row is None:
        (column,) = signature.columns
        value = _optional(column.type, column.nullable or not signature.always_one_row)
        return value, [f"value: {value} = await conn.fetchval({call})", "return value"]
    if signature.always_one_row:
        return row, [f"(row,) = await conn.fetch({call})", f"return {row}(*row)"]
    fetch = f"row = await conn.fetchrow({call})"
    return f"{row} | None", [fetch, f"return None if row is None else {row}(*row)"]


def _optional(python: str, nullable: bool) -> str:
    return f"{python} | None" if nullable and python not in {"Any", "None"} else python


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in {"conn", "row", "value"} else name


def _imports(body: str) -> str:
    # Labels of an enum and the SQL itself are no names.
    code = re.sub(r'""".*?"""|\'[^\']*\'', "", body, flags=re.DOTALL)
    words = set(re.findall(r"\w+", code))
    lines = []
    for module, names in _IMPORTS.items():
        used = [name for name in names if name in words]
        lines += [f"from {module} import {', '.join(used)}"] if used else []
    return "\n".join(lines) + "\n"
