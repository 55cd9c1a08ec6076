"""Connections: who they are, how long they may take, what a broken one costs."""

import asyncio
import socket
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from tests.support.postgres import on_database
from tests.support.settings import change_settings, make_settings
from trapline import app
from trapline.db import pool, roles
from trapline.db.connection import WORKER, Connection
from trapline.db.pool import Database, ExternalServer
from trapline.errors import DatabaseUnavailable
from trapline.settings import Settings


async def test_transactions_commit_and_roll_back(database: Database) -> None:
    async with database.system_tx() as conn:
        await conn.execute("INSERT INTO tenancy.organisation (name) VALUES ('kept')")
    with pytest.raises(asyncpg.UniqueViolationError):
        await _insert_twice(database, "lost")
    async with database.system_tx() as conn:
        names = [r["name"] for r in await conn.fetch("SELECT name FROM tenancy.organisation")]
    assert names == ["kept"]


async def _insert_twice(database: Database, name: str) -> None:
    async with database.system_tx() as conn:
        for _ in range(2):
            await conn.execute("INSERT INTO tenancy.organisation (name) VALUES ($1)", name)


async def test_limits_of_the_session_are_the_settings(dsn: str, server_settings: Settings) -> None:
    settings = change_settings(
        server_settings, {"statement_timeout": 1.5, "idle_in_transaction_timeout": 2.5}
    )
    async with (
        Database.connect(ExternalServer(dsn), settings) as database,
        database.system_tx() as conn,
    ):
        assert await conn.fetchval("SHOW statement_timeout") == "1500ms"
        assert await conn.fetchval("SHOW idle_in_transaction_session_timeout") == "2500ms"
        assert await conn.fetchval("SELECT current_user") == WORKER
        with pytest.raises(asyncpg.QueryCanceledError):
            await conn.execute("SELECT pg_sleep(5)")


async def test_jsonb_comes_back_as_it_went(database: Database) -> None:
    value = {"a": [1, 2.5, None, True], "ü": "€\U0001f41d"}
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT $1::jsonb", value) == value


async def test_the_system_takes_more_of_a_message_at_once_than_usual(database: Database) -> None:
    """A batch of pages is megabytes; a busy process would come back for each part of it."""
    one, other = socket.socketpair()
    with one, other:
        usual = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    async with database.system_tx(steady=True) as conn:
        own = conn._transport.get_extra_info("socket")  # type: ignore[union-attr]
        assert own.family == socket.AF_UNIX
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > usual


async def test_connections_tell_each_other_what_types_are_made_of(database: Database) -> None:
    """To find that out takes the server longer than most statements that need it."""
    asked: list[str] = []
    wants = [(1, 1, 0, 0, 0, False)]
    async with database.system_autocommit() as first, database.system_autocommit() as second:
        second.add_query_logger(lambda logged: asked.append(logged.query))
        for conn in (first, second):
            assert await conn.fetchval("SELECT cardinality($1::queue.want[])", wants) == 1
            assert await conn.fetchval("SELECT cardinality($1::queue.verdict[])", []) == 0
            assert await conn.fetchval("SELECT cardinality($1::uuid[])", [uuid4()]) == 1
    # Who listens is told when the loop turns.
    await asyncio.sleep(0)
    assert len(asked) == 3, asked


async def test_nothing_is_believed_of_the_types_of_a_server_that_went(database: Database) -> None:
    conn: Any
    async with database.system_autocommit() as conn:
        await conn.fetchval("SELECT cardinality($1::queue.want[])", [])
        known = type(conn._con).types
        assert known
        conn.terminate()
    for _ in range(2):  # The loop tells who listens in its next turn.
        await asyncio.sleep(0)
    assert not known
    async with database.system_autocommit() as conn:
        assert await conn.fetchval("SELECT cardinality($1::queue.want[])", []) == 0


async def test_a_closed_connection_is_replaced_unseen(database: Database) -> None:
    """The server drops every pooled connection; the next transactions do not notice."""
    owner = await asyncpg.connect(database.dsn)
    try:
        for _ in range(3):
            async with database.system_tx() as conn:
                await conn.execute("SELECT 1")
            await owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    finally:
        await owner.close()
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT 1") == 1


async def test_a_transaction_that_is_cancelled_at_any_moment_leaves_nothing_open(
    database: Database,
) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def ask() -> None:
        async with database.system_tx() as conn:
            await conn.fetchval("SELECT 1")

    for steps in range(60):
        asking = asyncio.create_task(ask())
        for _ in range(steps % 20):
            await asyncio.sleep(0.0001)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert complaints == []
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT 1") == 1


async def test_a_server_that_takes_no_more_connections_is_waited_for(
    dsn: str, server_settings: Settings
) -> None:
    name = f"plain_{uuid4().hex}"
    owner = await asyncpg.connect(dsn)
    database_name = await owner.fetchval("SELECT current_database()")
    await owner.execute(f"CREATE ROLE {name} LOGIN IN ROLE trapline_worker, trapline_tenant")
    await owner.execute(f"ALTER DATABASE {database_name} CONNECTION LIMIT 2")
    plain = dsn.replace("//trapline@", f"//{name}@")
    held = await asyncpg.connect(plain)

    async def one(database: Database) -> int:
        async with database.system_tx() as conn:
            return int(await conn.fetchval("SELECT 1"))

    async with Database.connect(ExternalServer(plain), server_settings) as database:
        asking = asyncio.create_task(one(database))
        done, _ = await asyncio.wait([asking], timeout=0.5)
        assert not done
        await held.close()
        assert await asyncio.wait_for(asking, 30) == 1
    await owner.execute(f"DROP ROLE {name}")
    await owner.close()


async def test_who_waits_for_a_worker_hears_of_its_death(
    database: Database, server_settings: Settings
) -> None:
    away = replace(database, server=ExternalServer(on_database(database.dsn, "nowhere")))
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        async with app.run_worker(away, server_settings):
            await asyncio.Event().wait()


async def test_old_connections_are_replaced(dsn: str, server_settings: Settings) -> None:
    settings = change_settings(server_settings, {"connection_max_age": 0.05})
    async with Database.connect(ExternalServer(dsn), settings) as database:
        pids = set()
        for _ in range(3):
            async with database.system_tx() as conn:
                pids.add(await conn.fetchval("SELECT pg_backend_pid()"))
            await asyncio.sleep(0.2)
    assert len(pids) == 3


async def test_idle_connections_are_closed(dsn: str, server_settings: Settings) -> None:
    settings = change_settings(server_settings, {"connection_max_idle": 0.2})
    async with Database.connect(ExternalServer(dsn), settings) as database:
        async with database.system_tx(), database.system_tx():
            assert database.worker_pool.get_size() == 2
        async with asyncio.timeout(100):
            while database.worker_pool.get_size():  # noqa: ASYNC110 (the pool tells nobody)
                await asyncio.sleep(0.05)


async def test_the_pools_share_one_bound(dsn: str, server_settings: Settings) -> None:
    settings = change_settings(server_settings, {"pool_size": 5})
    async with Database.connect(ExternalServer(dsn), settings) as database:
        sizes = database.worker_pool.get_max_size() + database.tenant_pool.get_max_size()
        assert sizes == 5
        assert database.steady_pool is None

        async def hold() -> None:
            async with database.system_tx() as conn:
                await conn.execute("SELECT pg_sleep(0.1)")

        await asyncio.gather(*(hold() for _ in range(20)))


async def test_steady_work_keeps_its_connection(dsn: str, server_settings: Settings) -> None:
    """Whatever else goes on, what is done all the time finds its plans where it made them."""
    settings = change_settings(server_settings, {"pool_size": 12})
    async with Database.connect(ExternalServer(dsn), settings) as database:
        pools = (database.worker_pool, database.tenant_pool, database.steady_pool)
        assert sum(pool.get_max_size() for pool in pools if pool is not None) == 12
        steady, others = set(), set()
        for _ in range(5):
            async with database.system_tx(), database.system_autocommit() as other:
                others.add(await other.fetchval("SELECT pg_backend_pid()"))
                async with database.system_tx(steady=True) as conn:
                    steady.add(await conn.fetchval("SELECT pg_backend_pid()"))
            async with database.system_autocommit(steady=True) as conn:
                steady.add(await conn.fetchval("SELECT pg_backend_pid()"))
                assert await conn.fetchval("SELECT current_user") == "trapline_worker"
    assert len(steady) == 1
    assert not steady & others


async def test_a_connection_comes_back_whatever_became_of_its_statement(
    dsn: str, server_settings: Settings
) -> None:
    settings = change_settings(server_settings, {"pool_size": 2})
    async with Database.connect(ExternalServer(dsn), settings) as database:

        async def sleep(conn: Connection) -> None:
            await conn.execute("SELECT pg_sleep(100)")

        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await database.run_statement(sleep)
            with pytest.raises(asyncpg.PostgresError):
                await database.run_statement(lambda conn: conn.execute("SELECT 1 / 0"))
            async with asyncio.timeout(100), database.system_tx() as conn:
                assert await conn.fetchval("SELECT 1") == 1


async def test_many_databases_make_the_roles_at_once(
    server_dsn: str, server_settings: Settings
) -> None:
    """Roles belong to the cluster: six fresh databases race for them."""
    names = [f"race_{number}_{id(server_settings)}" for number in range(6)]
    async with pool.owner(server_dsn, server_settings.database) as conn:
        for name in names:
            await conn.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY")

        async def prepare(name: str) -> None:
            async with pool.owner(on_database(server_dsn, name), server_settings.database) as fresh:
                await pool.prepare(fresh)
                assert await roles.missing(fresh) == ""

        try:
            await asyncio.gather(*map(prepare, names))
        finally:
            for name in names:
                await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nobody@127.0.0.1:1/none",
        "postgresql://nobody@/none?host=/nowhere",
        "mysql://example.com/none",
        "not a url",
    ],
)
async def test_a_database_that_is_not_there_is_one_sentence(url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="PostgreSQL cannot be reached"):
        async with Database.open(make_settings(database_url=url)):
            pytest.fail("opened")


async def test_a_missing_extension_is_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "trapline.db.server_requirements.REQUIRED_EXTENSIONS", ("vector", "no_such")
    )
    async with database.owner() as conn:
        with pytest.raises(DatabaseUnavailable, match="no_such"):
            await pool.prepare(conn)


async def test_a_connection_that_is_not_handed_out_is_not_left_open(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []

    async def given_up(conn: Connection) -> None:
        opened.append(conn)
        raise asyncio.CancelledError

    monkeypatch.setattr("trapline.db.connection.prepare", given_up)
    with pytest.raises(asyncio.CancelledError):
        await database.dedicated("test")
    assert [conn.is_closed() for conn in opened] == [True]
