"""The PostgreSQL schemas that are ours: one per package, and those that other tools expect."""

from typing import Final

from trapline.db.connection import Connection

# Holds which migrations have run; it belongs to the schema more than to the data.
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

# Views under the names of others, for programs that were written for those: read only, so they
# hold nothing. A schema of such a name that is not marked as ours belongs to someone else.
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
    """Return the schemas that have the name of one with views, but belong to someone else."""
    rows = await conn.fetch(
        "SELECT nspname FROM pg_namespace n WHERE nspname = ANY($1)"
        " AND obj_description(n.oid, 'pg_namespace') IS DISTINCT FROM $2",
        list(VIEWS),
        VIEW_MARK,
    )
    return {row["nspname"] for row in rows}


async def drop_statements(conn: Connection) -> list[str]:
    """Return what drops all of Trapline's schemas. Whatever else lives in the database stays."""
    rows = await conn.fetch(
        "SELECT format('DROP SCHEMA %I CASCADE', name) FROM unnest($1::text[]) AS name",
        await present(conn),
    )
    return [row[0] for row in rows]


async def truncate_statements(conn: Connection) -> list[str]:
    """Return what empties every table but the ledger of migrations."""
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
