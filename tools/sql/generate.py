"""The steps of `make sql`: migrate a scratch database, dump it, analyse every query on it."""

from hashlib import sha256
from pathlib import Path

from tools.sql import queries, scratch
from tools.sql.analysis import Analyser
from tools.sql.module import Tables, render
from tools.sql.queries import QueryError
from tools.sql.schema import dump
from trapline.db import migrate, pool, roles, server_requirements
from trapline.db.connection import OwnConnection
from trapline.settings import DatabaseSettings

_PACKAGE = '"""Named queries, and the typed functions that `make sql` makes of them."""\n'
RELEASED = "RELEASED"


async def generate(source: Path) -> list[Path]:
    """Write what is out of date under src/trapline; return what was written."""
    async with scratch.server() as (dsn, settings):
        files = await generated(source, dsn, settings)
    changed = [path for path, text in files.items() if content(path) != text]
    for path in changed:
        path.write_text(files[path])
    return changed


async def generated(source: Path, dsn: str, settings: DatabaseSettings) -> dict[Path, str]:
    """Return what every generated file should hold, by means of an empty database."""
    sql = source / "db" / "sql"
    async with pool.owner(dsn, settings) as conn:
        await roles.ensure(conn)
        await server_requirements.install_extensions(conn)
        await migrate.upgrade(conn, sql=sql)
        return {sql / "schema.sql": dump(dsn)} | await modules(source, conn)


async def modules(source: Path, conn: OwnConnection) -> dict[Path, str]:
    """Return the text of each module beside a file of queries."""
    analyser = await Analyser.of(conn)
    tables = await _tables(conn)
    files: dict[Path, str] = {}
    for path in query_files(source):
        try:
            signatures = [await analyser.signature(query) for query in queries.read(path)]
            files[path.with_suffix(".py")] = render(path.name, signatures, tables)
        except QueryError as error:
            raise QueryError(f"{path.relative_to(source)}: {error}") from None
        files[path.with_name("__init__.py")] = _PACKAGE
    return files


def query_files(source: Path) -> list[Path]:
    return sorted(p for p in source.glob("*/sql/*.sql") if p.name != "schema.sql")


async def _tables(conn: OwnConnection) -> Tables:
    """Name the row type of each table, so that queries for whole rows share one."""
    rows = await conn.fetch(
        "SELECT c.oid, c.relname, array_agg((a.attnum, a.attname, NOT a.attnotnull)"
        " ORDER BY a.attnum) AS columns"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " WHERE c.relkind IN ('r', 'p') AND c.oid >= 16384 AND NOT a.attisdropped"
        " GROUP BY c.oid ORDER BY c.oid"
    )
    return {
        tuple(
            ((row["oid"], number), name, nullable) for number, name, nullable in row["columns"]
        ): ("".join(word.capitalize() for word in row["relname"].split("_")) + "Row")
        for row in rows
    }


def release(source: Path) -> list[Path]:
    """Note the hashes of all new migrations: from now on an edit of one fails the build."""
    directory = source / "db" / "sql" / "migrations"
    manifest = directory / RELEASED
    text = content(manifest) or ""
    known = {line.split()[1] for line in text.splitlines()}
    for path in sorted(directory.glob("*.sql")):
        if path.name not in known:
            text += f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
    manifest.write_text(text)
    return [manifest]


def content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None
