"""Named queries, as far as they can be read without a server."""

import importlib
from pathlib import Path

import pytest

from tests.support.paths import SOURCE
from tools.sql import queries
from tools.sql.generate import query_files
from tools.sql.queries import Argument, Command, QueryError
from tools.sql.tree import Node, first_query, parse


def read(directory: Path, text: str) -> list[queries.Query]:
    path = directory / "topic.sql"
    path.write_text(text)
    return queries.read(path)


def test_arguments_are_numbered_by_first_use(tmp_path: Path) -> None:
    (query,) = read(
        tmp_path,
        "-- name: FindTask :one\n-- One task.\nSELECT 'sqlc.arg(no)' FROM t -- sqlc.arg(no)\n"
        "WHERE b = sqlc.arg(second) AND a = sqlc.narg( first ) AND c = sqlc.narg(second);\n",
    )
    assert query.sql == (
        "SELECT 'sqlc.arg(no)' FROM t -- sqlc.arg(no)\nWHERE b = $1 AND a = $2 AND c = $1"
    )
    assert query.arguments == (Argument("second", nullable=True), Argument("first", nullable=True))
    assert (query.function, query.command, query.purpose) == (
        "find_task",
        Command.ONE,
        "One task.",
    )


def test_a_query_may_name_its_row_type(tmp_path: Path) -> None:
    (query,) = read(tmp_path, "-- name: A :many\n-- Purpose.\n-- returns: Thing\nSELECT 1 AS a;")
    assert (query.returns, query.purpose) == ("Thing", "Purpose.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- name: A :some\n-- Purpose.\nSELECT 1;", "expected '-- name"),
        ("-- name: A :one\nSELECT 1;", "what the query is for"),
        ("-- name: A :one\n-- Purpose.\nSELECT 1; SELECT 2;", "one statement, found 2"),
        ("-- name: A :one\n-- Purpose.\nSELECT $1;", "name every parameter"),
        ("-- name: A :one\n-- P.\nSELECT 1;\n-- name: A :one\n-- P.\nSELECT 1;", "named twice: a"),
    ],
)
def test_an_unclear_query_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("path", query_files(SOURCE), ids=lambda p: f"{p.parts[-3]}/{p.stem}")
def test_the_module_holds_the_queries_of_its_file(path: Path) -> None:
    package = ".".join(path.relative_to(SOURCE.parent).parent.parts)
    module = importlib.import_module(f"{package}.{path.stem}")
    expected = {q.function: f"\n-- name: {q.name}\n{q.sql}\n" for q in queries.read(path)}
    present = {
        name.lower().removeprefix("_"): value
        for name, value in vars(module).items()
        if name.startswith("_") and name.isupper()
    }
    assert present == expected, "run `make sql`"


def test_every_generated_module_has_its_file() -> None:
    modules = {p for p in SOURCE.glob("*/sql/*.py") if p.name != "__init__.py"}
    assert modules == {path.with_suffix(".py") for path in query_files(SOURCE)}


def test_a_node_tree_is_read() -> None:
    text = r"(({QUERY :flag true :list ({A :n -1} {A :n 2}) :bits (b 3) :name a\ b :none <>"
    text += ' :names ("x y" "z") :const 4 [ 1 0 ] :last {B :deep "q"}}))'
    query = first_query(parse(text))
    assert query.flag("flag")
    assert [node.number("n") for node in query.nodes("list")] == [-1, 2]
    assert query.words("bits") == ["b", "3"]
    assert (query.text("name"), query.text("none"), query.node("none")) == ("a b", "", None)
    assert query.words("names") == ["x y", "z"]
    assert query.node("last") == Node("B", {"deep": "q"})
