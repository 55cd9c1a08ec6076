"""The connection that single statements run on, one after the other."""

import asyncio
from collections.abc import Awaitable

import asyncpg
import pytest

from tests.support.queue_jobs import until
from tests.support.settings import change_settings
from trapline.db.connection import Connection
from trapline.db.pool import Database, ExternalServer
from trapline.settings import Settings


def _backend(conn: Connection) -> Awaitable[int]:
    return conn.fetchval("SELECT pg_backend_pid()")


async def test_statements_that_follow_each_other_share_a_connection(database: Database) -> None:
    assert len({await database.run_statement(_backend) for _ in range(5)}) == 1


async def test_statements_at_the_same_time_do_not(database: Database) -> None:
    async def slow(conn: Connection) -> int:
        await conn.execute("SELECT pg_sleep(0.2)")
        return await _backend(conn)

    together = await asyncio.gather(*(database.run_statement(slow) for _ in range(3)))
    assert len(set(together)) == 3
    assert await database.run_statement(_backend) in together


async def test_what_is_not_used_goes_back_to_the_pool(database: Database) -> None:
    await database.run_statement(_backend)
    await until(lambda: _is_idle(database))


def _is_idle(database: Database) -> bool:
    connections = database.worker_pool
    return connections.get_idle_size() == connections.get_size() > 0


async def test_a_small_pool_has_none_to_spare(dsn: str, server_settings: Settings) -> None:
    settings = change_settings(server_settings, {"pool_size": 2})
    async with (
        asyncio.timeout(60),
        Database.connect(ExternalServer(dsn), settings) as database,
    ):
        await database.run_statement(_backend)
        async with database.system_tx() as conn:
            assert await conn.fetchval("SELECT 1") == 1


async def test_a_connection_that_was_killed_is_replaced(database: Database) -> None:
    killed = await database.run_statement(_backend)
    async with database.owner() as conn:
        await conn.execute("SELECT pg_terminate_backend($1)", killed)
    assert await database.run_statement(_backend) != killed


async def test_a_statement_that_failed_leaves_a_sound_connection(database: Database) -> None:
    for _ in range(3):
        with pytest.raises(asyncpg.DivisionByZeroError):
            await database.run_statement(lambda conn: conn.fetchval("SELECT 1 / 0"))
    assert await database.run_statement(lambda conn: conn.fetchval("SELECT 1")) == 1


async def test_who_is_cancelled_in_a_statement_leaves_a_sound_connection(
    database: Database,
) -> None:
    await database.run_statement(_backend)
    sleeping = asyncio.create_task(
        database.run_statement(lambda conn: conn.execute("SELECT pg_sleep(60)"))
    )
    await asyncio.sleep(0.05)
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeping
    assert await database.run_statement(lambda conn: conn.fetchval("SELECT 1")) == 1


async def test_a_kept_connection_does_not_hold_up_the_end(
    dsn: str, server_settings: Settings
) -> None:
    async with (
        asyncio.timeout(60),
        Database.connect(ExternalServer(dsn), server_settings) as database,
    ):
        await database.run_statement(_backend)
