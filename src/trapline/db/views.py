"""Views under the names of other systems: made after the functions, out of the way of migrations.

In: sql/views/SCHEMA.sql, one file a schema. Out: a schema with nothing but views, functions and types,
marked as ours. Where another program has a schema of that name, it is left alone and so are our views.
"""

import re
from pathlib import Path
from typing import Final

from trapline.db import schemas
from trapline.db.connection import Connection
from trapline.logs import get_logger

log = get_logger(__name__)

_NEEDS: Final = re.compile(r"-- trapline: needs (\w+)\n")
# Statements of the server itself, of all organisations: for whoever owns the database.
_OWNERS_ONLY: Final = "observability"

# What they stand on in a schema of ours: made with its functions, dropped with them.
_BELOW: Final = "queue.place"

_VIEWS: Final = """
SELECT string_agg(format('%I.%I', schemaname, viewname), ', ') FROM pg_views
WHERE schemaname = ANY ($1) OR schemaname || '.' || viewname = $2
"""
_FUNCTIONS: Final = """
SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ANY ($1)
"""


async def wanted(conn: Connection, directory: Path) -> list[Path]:
    """Return the files that can be run here: whose schema is ours, and whose extension is there."""
    taken = await schemas.foreign(conn)
    for schema in sorted(taken):
        log.warning("a schema is someone else's, so its views are left out", schema=schema)
    extensions = {row[0] for row in await conn.fetch("SELECT extname FROM pg_extension")}
    files = [path for path in sorted(directory.glob("*.sql")) if path.stem not in taken]
    return [path for path in files if _extension(path) in {None, *extensions}]


def _extension(path: Path) -> str | None:
    found = _NEEDS.match(path.read_text())
    return None if found is None else found[1]


async def drop(conn: Connection) -> None:
    """Drop all but the types, so that migrations may change what is shown; an upgrade makes it anew."""
    ours = [name for name in await schemas.present(conn) if name in schemas.VIEWS]
    for kind, names in (
        ("VIEW", await conn.fetchval(_VIEWS, ours, _BELOW)),
        ("FUNCTION", await conn.fetchval(_FUNCTIONS, ours)),
    ):
        if names is not None:
            await conn.execute(f"DROP {kind} {names}")
            await conn.execute("DELETE FROM trapline.functions")


async def enter(conn: Connection, schema: str) -> None:
    """Make the schema, and mark it as ours."""
    for statement in (
        "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::text)",
        f"SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text, '{schemas.VIEW_MARK}')",
    ):
        await conn.execute(await conn.fetchval(statement, schema))


async def grant(conn: Connection, schema: str) -> None:
    """Let everyone read what the tables below let them read."""
    if schema == _OWNERS_ONLY:
        return
    for right in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
        statement = (
            f"SELECT format('GRANT {right} %I TO trapline_worker, trapline_tenant', $1::text)"
        )
        await conn.execute(await conn.fetchval(statement, schema))
