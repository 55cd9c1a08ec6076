"""Every table of the documents is a view with all of its columns, of their types, and only to read."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.conformance.documents.tables import ENUMS, TABLES
from trapline.db import migrate, pool, schemas
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.settings import Settings

COLUMNS = """
SELECT a.attname, format_type(a.atttypid, NULL) AS type FROM pg_attribute a
WHERE a.attrelid = $1::regclass AND a.attnum > 0
"""
# Numbers of ours outgrow an integer, and a program that reads integers reads these.
WIDER = {("integer", "bigint")}


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[OwnConnection]:
    conn = await asyncpg.connect(dsn)
    yield conn
    await conn.close()


@pytest.mark.parametrize("table", TABLES)
async def test_columns_and_types(owner: OwnConnection, table: str) -> None:
    there = {row["attname"]: row["type"] for row in await owner.fetch(COLUMNS, table)}
    for column, kind in TABLES[table].items():
        assert column in there, f"{table} lacks {column}"
        assert there[column] == kind or (kind, there[column]) in WIDER, f"{table}.{column}"


@pytest.mark.parametrize("name", ENUMS)
async def test_status_words(owner: OwnConnection, name: str) -> None:
    rows = await owner.fetch(
        "SELECT enumlabel FROM pg_enum WHERE enumtypid = $1::regtype ORDER BY enumsortorder", name
    )
    assert [row["enumlabel"] for row in rows] == ENUMS[name]


async def test_nothing_but_views_and_none_can_be_written(
    owner: OwnConnection, database: Database
) -> None:
    rows = await owner.fetch(
        "SELECT c.relkind::text, format('%I.%I', n.nspname, c.relname) AS name,"
        " 'security_invoker=true' = ANY (c.reloptions) AS invoker,"
        " has_table_privilege('trapline_worker', c.oid, 'INSERT, UPDATE, DELETE') AS writes,"
        " has_table_privilege('trapline_tenant', c.oid, 'SELECT') AS reads"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = ANY ($1)",
        list(schemas.VIEWS),
    )
    assert {row["name"] for row in rows} >= TABLES.keys()
    assert {row["relkind"] for row in rows} == {"v"}
    assert all(row["invoker"] and not row["writes"] for row in rows)
    assert {row["name"] for row in rows if not row["reads"]} == {
        "observability.pg_stat_statements_top_total_time"
    }
    for table in TABLES:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.ObjectNotInPrerequisiteStateError)):  # fmt: skip
            async with database.system_tx() as conn:
                await conn.execute(f"DELETE FROM {table}")


async def test_a_schema_of_someone_else_is_left_alone(
    empty_dsn: str, server_settings: Settings
) -> None:
    async with pool.owner(empty_dsn, server_settings.database) as conn:
        await conn.execute("CREATE SCHEMA nuq; CREATE TABLE nuq.queue_scrape (id uuid)")
        await pool.prepare(conn)
        assert await conn.fetchval("SELECT to_regclass('nuq.group_crawl')") is None
        assert await conn.fetchval("SELECT to_regclass('webhook.crawl_sessions')") is not None
        await schemas.drop_all(conn)
        assert await conn.fetchval("SELECT count(*) FROM nuq.queue_scrape") == 0
        assert await conn.fetchval("SELECT to_regnamespace('webhook')") is None
        # Once it is gone, ours come.
        await conn.execute("DROP SCHEMA nuq CASCADE")
        await pool.prepare(conn)
        assert await conn.fetchval("SELECT to_regclass('nuq.group_crawl')") is not None


async def test_migrations_may_change_what_views_show(
    empty_dsn: str, server_settings: Settings
) -> None:
    async with pool.owner(empty_dsn, server_settings.database) as conn:
        await pool.prepare(conn)
        await migrate.downgrade(conn, to=1)
        assert await conn.fetchval("SELECT to_regclass('bee.jobs')") is None
        await pool.prepare(conn)
        assert await conn.fetchval("SELECT to_regclass('bee.jobs')") is not None
