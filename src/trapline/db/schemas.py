"""Trapline's PostgreSQL schemas: one for each package, and those of the compatibility views."""

from typing import Final

from trapline.db.connection import Connection

# Lists the applied migrations; it is part of the schema more than of the data.
LEDGER: Final = "trapline"

SCHEMAS: Final = (
    LEDGER,
    "tenancy",
    "auth",
    "queue",
    "frontier",
    "archive",
    "store",
    "knowledge",
    "deliver",
    "ephemeral",
    "measure",
)

# Compatibility views under the names of other systems, read only and without data. A schema of such
# a name without our mark belongs to another program.
VIEWS: Final = ("nuq", "webhook", "rag", "app", "lexicon", "bee", "unobtanium", "observability")
VIEW_MARK: Final = "Read-only views of Trapline: docs/views.md"


async def present(conn: Connection) -> list[str]:
    """Return those of our schemas that exist in this database."""
    rows = await conn.fetch(
        "SELECT nspname FROM pg_namespace n WHERE nspname = ANY($1)"
        " OR nspname = ANY($2) AND obj_description(n.oid, 'pg_namespace') = $3 ORDER BY nspname",
        list(SCHEMAS),
        list(VIEWS),
        VIEW_MARK,
    )
    return [row["nspname"] for row in rows]


async def foreign(conn: Connection) -> set[str]:
    """Return schemas with the name of a view schema that belong to another program."""
    rows = await conn.fetch(
        "SELECT nspname FROM pg_namespace n WHERE nspname = ANY($1)"
        " AND obj_description(n.oid, 'pg_namespace') IS DISTINCT FROM $2",
        list(VIEWS),
        VIEW_MARK,
    )
    return {row["nspname"] for row in rows}


async def drop_statements(conn: Connection) -> list[str]:
    """Return statements that drop all of Trapline's schemas and nothing else."""
    rows = await conn.fetch(
        "SELECT format('DROP SCHEMA %I CASCADE', name) FROM unnest($1::text[]) AS name",
        await present(conn),
    )
    return [row[0] for row in rows]


async def truncate_statements(conn: Connection) -> list[str]:
    """Return statements that empty every table but the ledger of migrations."""
    tables = await conn.fetchval(
        """
        SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ')
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        """,
        [schema for schema in SCHEMAS if schema != LEDGER],
    )
    return [f"TRUNCATE {tables} RESTART IDENTITY CASCADE"] if tables else []


async def drop_all(conn: Connection) -> None:
    async with conn.transaction():
        for statement in await drop_statements(conn):
            await conn.execute(statement)
