"""The migration runner, on scratch migrations and fresh databases."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tools.sql.schema import dump
from trapline.db import migrate, roles, server_requirements
from trapline.db.connection import OwnConnection
from trapline.db.migrate import MigrationState
from trapline.errors import MigrationError

TABLE = "CREATE TABLE public.thing (id bigint PRIMARY KEY, name text NOT NULL);"
INDEX = f"""{migrate.NO_TRANSACTION}
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS thing_name_key ON public.thing (name);
"""


class Scratch:
    """A directory of migrations that a test writes for itself."""

    def __init__(self, sql: Path) -> None:
        self.sql = sql
        (sql / "migrations").mkdir(parents=True)
        (sql / "functions").mkdir()

    def add(self, name: str, up: str, down: str = "") -> None:
        (self.sql / "migrations" / f"{name}.up.sql").write_text(up)
        (self.sql / "migrations" / f"{name}.down.sql").write_text(down)

    def function(self, name: str, text: str) -> None:
        (self.sql / "functions" / f"{name}.sql").write_text(text)

    def remove(self, name: str) -> None:
        for path in (self.sql / "migrations").glob(f"{name}.*"):
            path.unlink()


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "sql")


@pytest.fixture
async def conn(empty_dsn: str) -> AsyncIterator[OwnConnection]:
    opened = await asyncpg.connect(empty_dsn)
    yield opened
    await opened.close()


async def names(conn: OwnConnection) -> list[str]:
    rows = await conn.fetch("SELECT name FROM trapline.migration ORDER BY name")
    return [row["name"] for row in rows]


async def until(conn: OwnConnection, question: str) -> None:
    while not await conn.fetchval(question):  # noqa: ASYNC110 (another process answers)
        await asyncio.sleep(0.02)


async def test_each_migration_runs_once(conn: OwnConnection, scratch: Scratch) -> None:
    scratch.add("0001_thing", TABLE)
    scratch.add("0002_index", INDEX)
    applied = await migrate.upgrade(conn, sql=scratch.sql)
    assert [step.name for step in applied] == ["0001_thing", "0002_index"]
    assert await migrate.upgrade(conn, sql=scratch.sql) == []
    assert await names(conn) == ["0001_thing", "0002_index"]


_PROCESS = """
import asyncio, asyncpg, json, pathlib, sys
from trapline.db import migrate, server_requirements, roles
async def main(dsn, sql):
    conn = await asyncpg.connect(dsn)
    print(json.dumps([a.name for a in await migrate.upgrade(conn, sql=pathlib.Path(sql))]))
asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_column_goes_after_its_data_has_moved(
    conn: OwnConnection, scratch: Scratch
) -> None:
    """Add, move and drop, each in a migration of its own, which may be of another release."""
    scratch.add("0001_thing", TABLE)
    await migrate.upgrade(conn, sql=scratch.sql)
    await conn.execute("INSERT INTO public.thing VALUES (1, 'Ada Lovelace')")
    scratch.add("0002_add", "ALTER TABLE public.thing ADD COLUMN family text;")
    await migrate.upgrade(conn, sql=scratch.sql)
    scratch.add("0003_move", "UPDATE public.thing SET family = split_part(name, ' ', 2);")
    scratch.add("0004_drop", "ALTER TABLE public.thing DROP COLUMN name;")
    assert len(await migrate.upgrade(conn, sql=scratch.sql)) == 2
    row = await conn.fetchrow("SELECT * FROM public.thing")
    assert dict(row or {}) == {"id": 1, "family": "Lovelace"}


async def test_many_processes_may_start_at_once(
    conn: OwnConnection, empty_dsn: str, scratch: Scratch
) -> None:
    """The index is built concurrently: it waits for all snapshots, also those of waiting peers."""
    scratch.add("0001_thing", f"{TABLE} SELECT pg_sleep(0.3);")
    scratch.add("0002_index", INDEX)
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PROCESS, empty_dsn, str(scratch.sql)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(4)
    ]
    outputs = [await process.communicate() for process in processes]
    assert [p.returncode for p in processes] == [0] * 4, outputs
    reports = [json.loads(stdout.splitlines()[-1]) for stdout, _ in outputs]
    assert sorted(reports) == [[], [], [], ["0001_thing", "0002_index"]]
    assert await names(conn) == ["0001_thing", "0002_index"]


async def test_a_failing_migration_leaves_nothing_behind(
    conn: OwnConnection, scratch: Scratch
) -> None:
    scratch.add("0001_thing", TABLE)
    scratch.add("0002_bad", "CREATE TABLE public.half (id int); SELECT 1 / 0;")
    with pytest.raises(MigrationError, match=r"0002_bad\.up\.sql failed: division by zero"):
        await migrate.upgrade(conn, sql=scratch.sql)
    assert await names(conn) == ["0001_thing"]
    assert await conn.fetchval("SELECT to_regclass('public.half')") is None
    scratch.add("0002_bad", "CREATE TABLE public.half (id int);")
    assert [step.name for step in await migrate.upgrade(conn, sql=scratch.sql)] == ["0002_bad"]


async def test_an_interrupted_index_build_is_done_again(
    conn: OwnConnection, scratch: Scratch
) -> None:
    scratch.add("0001_thing", f"{TABLE} INSERT INTO public.thing VALUES (1, 'x'), (2, 'x');")
    scratch.add("0002_index", INDEX)
    with pytest.raises(MigrationError, match="could not create unique index"):
        await migrate.upgrade(conn, sql=scratch.sql)
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'public.thing_name_key'::regclass"
    assert await conn.fetchval(valid) is False
    await conn.execute("DELETE FROM public.thing WHERE id = 2")
    await migrate.upgrade(conn, sql=scratch.sql)
    assert await conn.fetchval(valid) is True


async def test_a_killed_migrator_leaves_the_lock_free(
    conn: OwnConnection, empty_dsn: str, scratch: Scratch
) -> None:
    scratch.add("0001_thing", f"{TABLE} SELECT pg_sleep(60);")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROCESS, empty_dsn, str(scratch.sql)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    await until(
        conn,
        "SELECT EXISTS (SELECT FROM pg_stat_activity"
        " WHERE wait_event = 'PgSleep' AND datname = current_database())",
    )
    process.kill()
    await process.wait()
    await conn.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    scratch.add("0001_thing", TABLE)
    assert len(await migrate.upgrade(conn, sql=scratch.sql)) == 1


async def test_a_waiting_migration_lets_others_pass(
    conn: OwnConnection, empty_dsn: str, scratch: Scratch
) -> None:
    """An ALTER TABLE behind a long reader must not hold up the readers that come after it."""
    scratch.add("0001_thing", TABLE)
    await migrate.upgrade(conn, sql=scratch.sql)
    scratch.add("0002_more", "ALTER TABLE public.thing ADD COLUMN more text;")
    reader, other = await asyncpg.connect(empty_dsn), await asyncpg.connect(empty_dsn)
    transaction = reader.transaction()
    await transaction.start()
    await reader.fetch("SELECT FROM public.thing")
    upgrade = asyncio.create_task(migrate.upgrade(conn, sql=scratch.sql))
    await until(
        other,
        "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE NOT l.granted AND d.datname = current_database())",
    )
    await other.execute("SET lock_timeout = '30s'")
    await other.fetch("SELECT FROM public.thing")
    assert not upgrade.done()
    await transaction.commit()
    assert len(await upgrade) == 1
    await reader.close()
    await other.close()


async def test_down_and_up_again_give_the_same_schema(
    conn: OwnConnection, empty_dsn: str, scratch: Scratch
) -> None:
    scratch.add("0001_thing", TABLE, "DROP TABLE public.thing;")
    scratch.add("0002_index", INDEX, "DROP VIEW public.names; DROP INDEX public.thing_name_key;")
    scratch.add("0003_more", "CREATE TABLE public.more (id int);", "DROP TABLE public.more;")
    scratch.function("names", "CREATE OR REPLACE VIEW public.names AS SELECT name FROM thing;")
    await migrate.upgrade(conn, sql=scratch.sql)
    before = dump(empty_dsn)
    assert [step.name for step in await migrate.downgrade(conn, sql=scratch.sql)] == ["0003_more"]
    reverted = await migrate.downgrade(conn, to=0, sql=scratch.sql)
    assert [step.name for step in reverted] == ["0002_index", "0001_thing"]
    assert "CREATE TABLE" not in dump(empty_dsn)
    assert await migrate.downgrade(conn, sql=scratch.sql) == []
    assert len(await migrate.upgrade(conn, sql=scratch.sql)) == 3
    assert dump(empty_dsn) == before


async def test_an_edited_migration_is_named(conn: OwnConnection, scratch: Scratch) -> None:
    scratch.add("0001_thing", TABLE)
    await migrate.upgrade(conn, sql=scratch.sql)
    scratch.add("0001_thing", f"{TABLE} -- harmless")
    for action in (migrate.upgrade, migrate.downgrade):
        with pytest.raises(MigrationError, match=r"0001_thing\.up\.sql was edited"):
            await action(conn, sql=scratch.sql)
    assert [s.state for s in await migrate.status(conn, sql=scratch.sql)] == [
        MigrationState.CHANGED
    ]


async def test_a_database_of_a_newer_version_is_refused(
    conn: OwnConnection, scratch: Scratch
) -> None:
    scratch.add("0001_thing", TABLE)
    scratch.add("0002_future", "SELECT 1;")
    await migrate.upgrade(conn, sql=scratch.sql)
    scratch.remove("0002_future")
    with pytest.raises(MigrationError, match="newer Trapline: it has 0002_future"):
        await migrate.upgrade(conn, sql=scratch.sql)
    scratch.add("0003_more", "SELECT 1;")
    with pytest.raises(MigrationError, match=r"0002_future is applied .* its file is missing"):
        await migrate.upgrade(conn, sql=scratch.sql)


async def test_a_late_number_is_refused(conn: OwnConnection, scratch: Scratch) -> None:
    scratch.add("0002_thing", TABLE)
    await migrate.upgrade(conn, sql=scratch.sql)
    scratch.add("0001_late", "SELECT 1;")
    with pytest.raises(MigrationError, match="0001_late is numbered before 0002_thing"):
        await migrate.upgrade(conn, sql=scratch.sql)


async def test_status_changes_nothing(conn: OwnConnection, scratch: Scratch) -> None:
    scratch.add("0001_thing", TABLE)
    (pending,) = await migrate.status(conn, sql=scratch.sql)
    assert (pending.name, pending.state, pending.applied_at) == (
        "0001_thing",
        MigrationState.PENDING,
        None,
    )
    assert await conn.fetchval("SELECT to_regclass('trapline.migration')") is None
    await migrate.upgrade(conn, sql=scratch.sql)
    (applied,) = await migrate.status(conn, sql=scratch.sql)
    assert applied.state is MigrationState.APPLIED
    scratch.remove("0001_thing")
    assert [s.state for s in await migrate.status(conn, sql=scratch.sql)] == [
        MigrationState.UNKNOWN
    ]


async def test_functions_are_run_again_when_one_changed(
    conn: OwnConnection, scratch: Scratch
) -> None:
    def one(result: int) -> str:
        return f"CREATE OR REPLACE FUNCTION public.one() RETURNS int RETURN {result};"

    run_at = "SELECT applied_at FROM trapline.functions"
    scratch.function("one", one(1))
    await migrate.upgrade(conn, sql=scratch.sql)
    first = await conn.fetchval(run_at)
    await migrate.upgrade(conn, sql=scratch.sql)
    assert await conn.fetchval(run_at) == first
    scratch.function("one", one(2))
    await migrate.upgrade(conn, sql=scratch.sql)
    assert await conn.fetchval("SELECT public.one()") == 2


async def test_a_renamed_function_leaves_no_orphan(conn: OwnConnection, scratch: Scratch) -> None:
    def named(name: str) -> str:
        return f"CREATE OR REPLACE FUNCTION queue.{name}() RETURNS int RETURN 1;"

    scratch.add("0001_first", f"CREATE SCHEMA queue; {named('permanent')}")
    for name in ("before", "after"):
        scratch.function("one", named(name))
        await migrate.upgrade(conn, sql=scratch.sql)
    rows = await conn.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'queue'::regnamespace ORDER BY 1"
    )
    assert [row["proname"] for row in rows] == ["after", "permanent"]


async def test_a_broken_function_file_changes_no_function(
    conn: OwnConnection, scratch: Scratch
) -> None:
    scratch.function("a", "CREATE OR REPLACE FUNCTION public.one() RETURNS int RETURN 1;")
    await migrate.upgrade(conn, sql=scratch.sql)
    scratch.function("a", "CREATE OR REPLACE FUNCTION public.one() RETURNS int RETURN 2;")
    scratch.function("b", "CREATE VIEW public.broken AS SELECT * FROM nowhere;")
    with pytest.raises(MigrationError, match=r"b\.sql failed: relation \"nowhere\""):
        await migrate.upgrade(conn, sql=scratch.sql)
    assert await conn.fetchval("SELECT public.one()") == 1


async def test_the_connection_comes_back_with_its_own_limits(
    conn: OwnConnection, scratch: Scratch
) -> None:
    before = await conn.fetchval("SHOW lock_timeout")
    await migrate.upgrade(conn, sql=scratch.sql)
    assert await conn.fetchval("SHOW lock_timeout") == before
    assert (
        await conn.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        == 0
    )


_STORED = """
WITH o AS (INSERT INTO tenancy.organisation (name) VALUES ('o') RETURNING id),
s AS (
    INSERT INTO store.site (organisation_id, name, base_url, implicit)
    SELECT id, 'https://a.test', 'https://a.test', true FROM o RETURNING id, organisation_id
), p AS (
    INSERT INTO store.page (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
    SELECT gen_random_uuid(), organisation_id, id, 1, now(), now() FROM s
), n AS (
    INSERT INTO store.snapshot (organisation_id, url_hash, tag, scraped_at, markdown)
    SELECT organisation_id, sha256('a'), '', now(), '' FROM s
)
SELECT organisation_id FROM s
"""


async def test_nobody_knows_how_the_pages_before_variants_were_asked_for(
    conn: OwnConnection,
) -> None:
    await roles.ensure(conn)
    await server_requirements.install_extensions(conn)
    await migrate.upgrade(conn)
    await migrate.downgrade(conn, to=17)
    organisation_id = await conn.fetchval(_STORED)
    await migrate.upgrade(conn)
    assert await conn.fetchval("SELECT variant FROM store.site") == b""
    assert await conn.fetchval("SELECT variant FROM store.page") == b"\0"
    assert await conn.fetchval("SELECT variant FROM store.snapshot") == b"\0"
    for variant in (b"", b"mobile"):
        await conn.execute(
            "INSERT INTO store.snapshot (organisation_id, url_hash, tag, variant, scraped_at, markdown)"
            " SELECT organisation_id, url_hash, tag, $1, now(), '' FROM store.snapshot LIMIT 1",
            variant,
        )
    await conn.execute(
        "INSERT INTO store.site (organisation_id, name, base_url, implicit, variant)"
        " VALUES ($1, 'mobile', 'https://a.test', true, 'mobile')",
        organisation_id,
    )
    await migrate.downgrade(conn, to=17)
    assert await conn.fetchval("SELECT count(*) FROM store.snapshot") == 1
    assert await conn.fetchval("SELECT array_agg(name) FROM store.site WHERE implicit") == [
        "https://a.test"
    ]
    assert await migrate.upgrade(conn)
