"""Named queries, read from a file in sqlc's notation.

-- name: ClaimTasks :many
-- What it is for, in one line.
-- returns: Task                      (optional: the name of the row type)
SELECT … WHERE id > sqlc.arg(hint) AND (sqlc.narg(host)::text IS NULL OR …);
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from trapline.db.sql_split import segments, split_statements

_HEADER = re.compile(r"-- name: (?P<name>[A-Z]\w*) :(?P<command>one|many|exec|execrows)\s*")
_RETURNS = re.compile(r"-- returns: (?P<name>[A-Z]\w*)\s*")
_ARGUMENT = re.compile(r"\bsqlc\.(?P<kind>n?arg)\(\s*(?P<name>\w+)\s*\)")
_POSITIONAL = re.compile(r"(?<![\w$])\$\d")


class QueryError(Exception):
    """A query that cannot be turned into a function."""


class Command(StrEnum):
    ONE = "one"
    MANY = "many"
    EXEC = "exec"
    EXECROWS = "execrows"


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement, its arguments numbered for the server."""

    name: str
    command: Command
    purpose: str
    returns: str | None
    sql: str
    arguments: tuple[Argument, ...]

    @property
    def function(self) -> str:
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()


def read(path: Path) -> list[Query]:
    """Return the queries of a file in their order."""
    _preamble, *blocks = re.split(r"(?m)^(?=-- name:)", path.read_text())
    queries = []
    for block in blocks:
        try:
            queries.append(_query(block))
        except QueryError as error:
            raise QueryError(f"{path.name}: {block.splitlines()[0]}: {error}") from None
    doubled = {q.function for q in queries if [p.function for p in queries].count(q.function) > 1}
    if doubled:
        raise QueryError(f"{path.name}: named twice: {', '.join(sorted(doubled))}")
    return queries


def _query(block: str) -> Query:
    header, *rest = block.splitlines()
    match = _HEADER.fullmatch(header)
    if match is None:
        raise QueryError(f"expected '-- name: Name :{'|'.join(Command)}'")
    comments = []
    while rest and rest[0].startswith("--"):
        comments.append(rest.pop(0))
    returns = [m["name"] for line in comments if (m := _RETURNS.fullmatch(line))]
    purpose = " ".join(c.lstrip("- ") for c in comments if not _RETURNS.fullmatch(c)).strip()
    if not purpose:
        raise QueryError("the line after the name says what the query is for")
    sql, arguments = _numbered("\n".join(rest))
    return Query(
        match["name"],
        Command(match["command"]),
        purpose,
        returns[0] if returns else None,
        sql,
        arguments,
    )


def _numbered(text: str) -> tuple[str, tuple[Argument, ...]]:
    """Replace sqlc.arg(name) by $n; an argument that is nullable anywhere is nullable."""
    statements = split_statements(text)
    if len(statements) != 1:
        raise QueryError(f"expected one statement, found {len(statements)}")
    order: dict[str, bool] = {}

    def number(match: re.Match[str]) -> str:
        order[match["name"]] = order.get(match["name"], False) or match["kind"] == "narg"
        return f"${list(order).index(match['name']) + 1}"

    sql = ""
    for piece, is_code in segments(statements[0]):
        if is_code and _POSITIONAL.search(piece):
            raise QueryError("name every parameter with sqlc.arg(name) or sqlc.narg(name)")
        sql += _ARGUMENT.sub(number, piece) if is_code else piece
    return sql, tuple(Argument(name, nullable) for name, nullable in order.items())
