"""The commands as a person types them."""

import asyncio
import json
import re
import socket
import urllib.request
from uuid import uuid4

import asyncpg

from tests.support.cli import Trapline
from tests.support.postgres import on_database


def get(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 (our own server)
        return answer.status, answer.read()


async def test_serve_answers_and_stops_gracefully(trapline: Trapline) -> None:
    process, url = await trapline.serving()
    status, body = await asyncio.to_thread(get, f"{url}/health")
    assert (status, json.loads(body)["status"]) == (200, "healthy")
    status, body = await asyncio.to_thread(get, f"{url}/docs")
    assert b"swagger" in body
    process.terminate()
    _, err = await process.communicate()
    assert process.returncode == 0
    assert b'"event": "stopped"' in err


async def test_serve_refuses_another_address_without_keys(trapline: Trapline) -> None:
    refused = await trapline("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.status == 2
    assert "trapline keys create" in refused.err
    assert "Traceback" not in refused.err
    assert (await trapline("keys", "create", "k")).status == 0
    process, _ = await trapline.serving("--host", "0.0.0.0")
    process.terminate()
    await process.communicate()
    assert process.returncode == 0


async def test_serve_says_when_the_port_is_taken(trapline: Trapline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = await trapline("serve", "--port", str(taken.getsockname()[1]))
    assert refused.status == 7
    assert "TRAPLINE_PORT" in refused.err


async def test_organisations_members_and_keys(trapline: Trapline) -> None:
    acme = (await trapline("orgs", "create", "Acme", "--owner", "team-7", "--json")).json
    assert acme["foreign_id"] == "team-7"
    again = await trapline("orgs", "create", "acme")
    assert (again.status, again.out) == (5, "")
    ada = (await trapline("members", "add", "ada@acme.example", "--org", "Acme", "--json")).json
    assert ada["organisation_id"] == acme["id"]
    key = (await trapline("keys", "create", "laptop", "--org", "team-7", "--json")).json
    shown = await trapline("keys", "list", "--org", acme["id"])
    assert key["prefix"] in shown.out
    assert key["key"] not in shown.out
    revoked = (await trapline("keys", "revoke", key["prefix"], "--org", "Acme", "--json")).json
    assert revoked["revoked_at"] is not None
    assert (await trapline("keys", "revoke", "trp_none")).status == 3
    assert (await trapline("members", "remove", ada["id"], "--org", "Acme")).status == 0
    limited = await trapline("orgs", "limit", "Acme", "--max-concurrency", "-1")
    assert limited.status == 2
    assert (await trapline("orgs", "delete", "Acme", given="n\n")).status == 130
    assert (await trapline("orgs", "delete", "Acme", "--yes")).status == 0
    assert [row["name"] for row in (await trapline("orgs", "list", "--json")).json] == ["default"]
    assert (await trapline("orgs", "delete", "default", "--yes")).status == 5


async def test_a_new_key_is_shown_whole(trapline: Trapline) -> None:
    shown = await trapline("keys", "create", "laptop")
    assert re.search(r"^key +trp_[0-9a-f]{64}$", shown.out, re.MULTILINE)


async def test_migrations_go_down_and_up(trapline: Trapline) -> None:
    assert (await trapline("migrate", "up")).status == 0
    rows = (await trapline("migrate", "status", "--json")).json
    assert {row["state"] for row in rows} == {"applied"}
    assert (await trapline("migrate", "down", given="n\n")).status == 130
    assert (await trapline("migrate", "down", "--to", "0", "--yes")).status == 0
    rows = (await trapline("migrate", "status", "--json")).json
    assert {row["state"] for row in rows} == {"pending"}
    assert (await trapline("migrate", "up")).status == 0
    assert "up to date" in (await trapline("migrate", "up")).out


async def test_a_backup_comes_back_whole(trapline: Trapline) -> None:
    await trapline("orgs", "create", "Acme")
    assert (await trapline("db", "backup", "all.dump")).status == 0
    assert (await trapline("db", "backup", "all.dump")).status == 5
    assert (await trapline("db", "restore", "all.dump")).status == 5
    await trapline("orgs", "delete", "Acme", "--yes")
    assert (await trapline("db", "restore", "all.dump", "--replace")).status == 0
    assert "Acme" in (await trapline("orgs", "list")).out
    assert (await trapline("db", "restore", "nowhere.dump", "--replace")).status == 2


async def test_schema_and_data_can_be_restored_apart(trapline: Trapline) -> None:
    await trapline("orgs", "create", "Acme")
    assert (await trapline("db", "backup", "schema.dump", "--schema-only")).status == 0
    assert (await trapline("db", "backup", "data.dump", "--data-only")).status == 0
    both = await trapline("db", "backup", "no.dump", "--data-only", "--schema-only")
    assert both.status == 2
    assert (
        await trapline("db", "restore", "schema.dump", "--schema-only", "--replace")
    ).status == 0
    restored = await trapline("db", "restore", "data.dump", "--data-only")
    assert (restored.status, restored.err) == (0, "")
    assert "Acme" in (await trapline("orgs", "list")).out


async def test_a_broken_backup_changes_nothing(trapline: Trapline) -> None:
    await trapline("orgs", "create", "Acme")
    (trapline.directory / "broken.dump").write_bytes(b"PGDMP but not really")
    refused = await trapline("db", "restore", "broken.dump", "--replace")
    assert refused.status == 7
    assert "Acme" in (await trapline("orgs", "list")).out


async def test_reset_asks_first(trapline: Trapline) -> None:
    await trapline("orgs", "create", "Acme")
    assert (await trapline("db", "reset", given="n\n")).status == 130
    assert "Acme" in (await trapline("orgs", "list")).out
    assert (await trapline("db", "reset", given="y\n")).status == 0
    assert "Acme" not in (await trapline("orgs", "list")).out


async def test_psql_passes_its_arguments_and_status(trapline: Trapline) -> None:
    await trapline("migrate", "up")
    answer = await trapline("db", "psql", "--", "-At", "-c", "SELECT 6 * 7")
    assert (answer.status, answer.out) == (0, "42\n")
    assert (await trapline("db", "psql", "--", "-c", "SELECT nothing")).status != 0


async def test_doctor_tells_what_is_wrong(trapline: Trapline) -> None:
    fine = await trapline("doctor", "--json", TRAPLINE_PORT="0")
    states = {row["check"]: row["state"] for row in fine.json}
    assert states["PostgreSQL"] == "ok"
    assert fine.status == 0
    away = await trapline("doctor", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert away.status == 1
    assert "DATABASE_URL" in away.out
    assert "Traceback" not in away.err
    no_redis = await trapline("doctor", "--json", REDIS_URL="redis://127.0.0.1:1")
    assert {row["check"]: row["state"] for row in no_redis.json}["Redis"] == "problem"


async def test_a_worker_has_the_name_it_is_given(trapline: Trapline) -> None:
    await trapline("migrate", "up")
    process = await trapline.start("work", "--worker-name", "bee-7")
    conn = await asyncpg.connect(trapline.environment["DATABASE_URL"])
    try:
        async with asyncio.timeout(60):
            while await conn.fetchval("SELECT name FROM unobtanium.agent") != "bee-7":  # noqa: ASYNC110 (another process writes it)
                await asyncio.sleep(0.1)
    finally:
        await conn.close()
        process.terminate()
        await process.communicate()


async def test_doctor_leaves_a_fifth_of_the_connections_to_others(trapline: Trapline) -> None:
    """Of as many as the server itself says that it has: two hundred, for the embedded one."""
    fits = await trapline("doctor", "--json", TRAPLINE_PORT="0", TRAPLINE_POOL_SIZE="160")
    assert fits.status == 0
    large = await trapline("doctor", "--json", TRAPLINE_PORT="0", TRAPLINE_POOL_SIZE="161")
    (pool,) = (row for row in large.json if row["check"] == "Pool")
    assert (pool["state"], pool["found"]) == ("problem", "161 of 200 connections")
    assert large.status == 1


async def test_an_unreachable_database_is_one_sentence(trapline: Trapline) -> None:
    for url in ("postgresql://nobody@127.0.0.1:1/none", "http://example.com", "nonsense"):
        refused = await trapline("orgs", "list", DATABASE_URL=url)
        assert refused.status == 7, url
        assert refused.err.startswith("trapline: PostgreSQL cannot be reached"), refused.err


async def test_a_plain_user_who_may_create_roles_can_own_everything(
    trapline: Trapline, server_dsn: str
) -> None:
    """An external server where we are no superuser: roles, policies and backups still work."""
    user, base = f"owner_{uuid4().hex[:8]}", f"owned_{uuid4().hex[:8]}"
    conn = await asyncpg.connect(server_dsn)
    try:
        await conn.execute(f"CREATE ROLE {user} LOGIN CREATEROLE")
        # The roles exist in this cluster already, made by someone else.
        await conn.execute(f"GRANT trapline_worker, trapline_tenant TO {user} WITH ADMIN OPTION")
        await conn.execute(f"CREATE DATABASE {base} OWNER {user} STRATEGY FILE_COPY")
        inside = await asyncpg.connect(on_database(server_dsn, base))
        await inside.execute("CREATE EXTENSION vector")
        await inside.close()
        url = on_database(server_dsn, base).replace("//trapline@", f"//{user}@")
        mine = Trapline(trapline.environment | {"DATABASE_URL": url}, trapline.directory)
        assert (await mine("orgs", "create", "Acme")).status == 0
        assert (await mine("db", "backup", "mine.dump")).status == 0
        assert (await mine("db", "restore", "mine.dump", "--replace")).status == 0
        assert "Acme" in (await mine("orgs", "list")).out
    finally:
        await conn.execute(f"DROP DATABASE IF EXISTS {base} WITH (FORCE)")
        await conn.execute(f"DROP ROLE IF EXISTS {user}")
        await conn.close()


async def test_a_user_who_may_not_create_roles_is_told_what_to_run(
    trapline: Trapline, server_dsn: str
) -> None:
    user, base = f"humble_{uuid4().hex[:8]}", f"humble_{uuid4().hex[:8]}"
    conn = await asyncpg.connect(server_dsn)
    try:
        await conn.execute(f"CREATE ROLE {user} LOGIN")
        await conn.execute(f"CREATE DATABASE {base} OWNER {user} STRATEGY FILE_COPY")
        url = on_database(server_dsn, base).replace("//trapline@", f"//{user}@")
        refused = await trapline("orgs", "list", DATABASE_URL=url)
        assert refused.status == 7
        assert f"GRANT trapline_worker, trapline_tenant TO {user}" in refused.err
        told = await trapline("doctor", DATABASE_URL=url)
        assert told.status == 1
        assert "CREATE ROLE trapline_worker" in told.out
    finally:
        await conn.execute(f"DROP DATABASE IF EXISTS {base} WITH (FORCE)")
        await conn.execute(f"DROP ROLE IF EXISTS {user}")
        await conn.close()
