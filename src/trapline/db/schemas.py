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


async def present(conn: Connection) -> list[str]:
    """Return those of our schemas that exist in this database."""
    rows = await conn.fetch(
        "SELECT nspname FROM pg_namespace WHERE nspname = ANY($1) ORDER BY nspname", list(SCHEMAS)
    )
    return [row["nspname"] for row in rows]


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
