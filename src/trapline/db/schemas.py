"""The PostgreSQL schemas that are ours: one per package, and those that other tools expect."""

from typing import Final

from trapline.db.connection import Connection

SCHEMAS: Final = (
    "trapline",
    "tenancy",
    "auth",
    "queue",
    "frontier",
    "archive",
    "store",
    "knowledge",
    "deliver",
    "ephemeral",
)


async def present(conn: Connection) -> list[str]:
    """Return those of our schemas that exist in this database."""
    rows = await conn.fetch(
        "SELECT nspname FROM pg_namespace WHERE nspname = ANY($1) ORDER BY nspname", list(SCHEMAS)
    )
    return [row["nspname"] for row in rows]


async def drop_all(conn: Connection) -> None:
    """Drop all of Trapline's schemas. Whatever else lives in the database stays."""
    async with conn.transaction():
        for schema in await present(conn):
            statement = await conn.fetchval(
                "SELECT format('DROP SCHEMA %I CASCADE', $1::text)", schema
            )
            await conn.execute(statement)
