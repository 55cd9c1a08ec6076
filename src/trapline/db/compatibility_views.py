"""Compatibility views under the names of other systems, created after the functions.

In: sql/views/SCHEMA.sql, one file for each schema. Out: a schema of views, functions and types, marked
as ours. If another program has a schema of that name, its views are left out.
"""

import re
from pathlib import Path
from typing import Final

from trapline.db import schemas
from trapline.db.connection import Connection
from trapline.logs import get_logger

log = get_logger(__name__)

_NEEDS: Final = re.compile(r"-- trapline: needs (\w+)\n")
# Statistics of the server, over all organisations: only for the owner of the database.
_OWNER_ONLY: Final = "observability"

# A view in a schema of ours that they read: created with its functions, dropped with them.
_BASE_VIEW: Final = "queue.place"

_VIEWS: Final = """
SELECT string_agg(format('%I.%I', schemaname, viewname), ', ') FROM pg_views
WHERE schemaname = ANY ($1) OR schemaname || '.' || viewname = $2
"""
_FUNCTIONS: Final = """
SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ANY ($1)
"""


async def runnable_files(conn: Connection, directory: Path) -> list[Path]:
    """Return the files whose schema is ours and whose extension is installed."""
    taken = await schemas.foreign(conn)
    for schema in sorted(taken):
        log.warning(
            "another program owns a schema, so its compatibility views are left out", schema=schema
        )
    extensions = {row[0] for row in await conn.fetch("SELECT extname FROM pg_extension")}
    files = [path for path in sorted(directory.glob("*.sql")) if path.stem not in taken]
    return [path for path in files if _extension(path) in {None, *extensions}]


def _extension(path: Path) -> str | None:
    found = _NEEDS.match(path.read_text())
    return None if found is None else found[1]


async def drop(conn: Connection) -> None:
    """Drop the views and functions, so that migrations may change their tables; an upgrade re-creates them."""
    ours = [name for name in await schemas.present(conn) if name in schemas.VIEWS]
    for kind, names in (
        ("VIEW", await conn.fetchval(_VIEWS, ours, _BASE_VIEW)),
        ("FUNCTION", await conn.fetchval(_FUNCTIONS, ours)),
    ):
        if names is not None:
            await conn.execute(f"DROP {kind} {names}")
            await conn.execute("DELETE FROM trapline.functions")


async def create_schema(conn: Connection, schema: str) -> None:
    """Create the schema and mark it as ours."""
    for statement in (
        "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::text)",
        f"SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text, '{schemas.VIEW_MARK}')",
    ):
        await conn.execute(await conn.fetchval(statement, schema))


async def grant(conn: Connection, schema: str) -> None:
    """Let both roles read the views; the tables below still decide which rows."""
    if schema == _OWNER_ONLY:
        return
    for right in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
        statement = (
            f"SELECT format('GRANT {right} %I TO trapline_worker, trapline_tenant', $1::text)"
        )
        await conn.execute(await conn.fetchval(statement, schema))
