"""Every table and view that has an organisation is isolated, also those that are yet to come.

The catalog is walked: a new table is covered without anyone remembering.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import asyncpg
import pytest

from trapline.db import schemas, tenancy
from trapline.db.connection import TENANT, WORKER, OwnConnection
from trapline.db.pool import Database
from trapline.errors import Forbidden
from trapline.model import MemberId, OrganisationId
from trapline.queue import jobs
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kind, Kinds
from trapline.queue.tasks import NewTask, Unique

RELATIONS = """
SELECT n.nspname, c.relname, c.relkind::text AS kind, c.relrowsecurity, c.relforcerowsecurity,
       coalesce('security_invoker=true' = ANY (c.reloptions)
             OR 'security_invoker=on' = ANY (c.reloptions), false) AS security_invoker,
       c.relispartition, pg_get_userbyid(c.relowner) AS owner
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm')
"""
OWNED = """
SELECT n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organisation_id' AND NOT a.attisdropped
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p')
UNION ALL SELECT 'tenancy', 'organisation'
-- What is inherited is dropped with the parent's, so a parent comes before its partitions.
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Tenants:
    """Two organisations with a member each."""

    a: OrganisationId
    b: OrganisationId
    member_a: MemberId
    member_b: MemberId


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[OwnConnection]:
    conn = await asyncpg.connect(dsn)
    yield conn
    await conn.close()


@pytest.fixture
async def tenants(database: Database) -> Tenants:
    async with database.system_tx() as conn:
        a = (await tenancy.create_organisation(conn, "A")).id
        b = (await tenancy.create_organisation(conn, "B")).id
        member_a = (await tenancy.add_member(conn, a, "a@example.com")).id
        member_b = (await tenancy.add_member(conn, b, "b@example.com")).id
        await tenancy.issue_key(conn, a, "key of A")
        await tenancy.issue_key(conn, b, "key of B")
    return Tenants(a, b, member_a, member_b)


async def test_every_table_of_an_organisation_forces_row_level_security(
    owner: OwnConnection,
) -> None:
    owned = {tuple(row) for row in await owner.fetch(OWNED, list(schemas.SCHEMAS))}
    assert ("tenancy", "member") in owned
    for relation in await owner.fetch(RELATIONS, [*schemas.SCHEMAS, *schemas.VIEWS]):
        name = (relation["nspname"], relation["relname"])
        if relation["kind"] == "v":
            assert relation["security_invoker"], f"the view {name} must be security_invoker"
        elif relation["kind"] == "m":
            pytest.fail(f"{name}: a materialised view has no row-level security")
        elif name in owned:
            assert relation["relrowsecurity"], f"call tenancy.isolate on {name}"
            assert relation["relforcerowsecurity"], f"call tenancy.isolate on {name}"
        assert relation["owner"] not in {WORKER, TENANT}


async def test_no_schema_is_forgotten(owner: OwnConnection) -> None:
    rows = await owner.fetch(
        "SELECT nspname FROM pg_namespace"
        " WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema')"
    )
    assert {row["nspname"] for row in rows} <= {*schemas.SCHEMAS, *schemas.VIEWS}


async def test_the_roles_are_neither_superusers_nor_exempt(
    owner: OwnConnection,
) -> None:
    rows = await owner.fetch(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolcanlogin"
        " FROM pg_roles WHERE rolname = ANY ($1)",
        [WORKER, TENANT],
    )
    assert len(rows) == 2
    assert not any(any(row.values()) for row in rows)


async def test_a_tenant_reads_updates_and_deletes_none_of_anothers_rows(
    database: Database, owner: OwnConnection, tenants: Tenants
) -> None:
    """For every table: one row of B is there, and for A it is not."""
    tables = await owner.fetch(OWNED, list(schemas.SCHEMAS))
    assert tables
    for schema, table in tables:
        relation = f'"{schema}"."{table}"'
        column = "id" if (schema, table) == ("tenancy", "organisation") else "organisation_id"
        await _ensure_row(owner, schema, table, column, tenants.b)
        for member in (None, tenants.member_a):
            async with database.tenant_tx(tenants.a, member) as conn:
                seen = await conn.fetchval(
                    f"SELECT count(*) FROM {relation} WHERE {column} = $1", tenants.b
                )
            assert seen == 0, f"{relation} shows rows of another organisation"
            assert await _changed(database, tenants.a, member, relation, column, tenants.b) == 0
        left = await owner.fetchval(
            f"SELECT count(*) FROM {relation} WHERE {column} = $1", tenants.b
        )
        assert left > 0, f"{relation}: a row of another organisation was deleted"


SHARED = {
    ("trapline", "migration"),
    ("trapline", "functions"),
    ("archive", "mimetype"),
    ("frontier", "robots"),
    ("knowledge", "mirror"),
    ("queue", "agent"),
    ("queue", "consumer"),
    ("queue", "duty"),
    ("queue", "gate"),
    ("queue", "lease"),
    ("queue", "statistic"),
    ("queue", "statistic_day"),
    ("queue", "statistic_default"),
}
"""Tables that belong to no organisation. A new one is a decision: it must be listed here."""


async def test_a_table_is_isolated_or_known_to_be_shared(owner: OwnConnection) -> None:
    rows = await owner.fetch(RELATIONS, list(schemas.SCHEMAS))
    open_tables = {
        (row["nspname"], row["relname"])
        for row in rows
        if row["kind"] in {"r", "p"} and not row["relforcerowsecurity"]
    }
    assert open_tables == SHARED


async def test_tables_that_only_follow_a_job_are_isolated_too(
    database: Database, owner: OwnConnection, tenants: Tenants
) -> None:
    """Rows without an organisation of their own are seen by whoever sees their lane or task."""
    kinds = Kinds([Kind("noop", dict)])
    new = [NewTask("noop", {"n": n}, unique=Unique(str(n))) for n in range(6)]
    async with database.tenant_tx(tenants.b) as conn:
        job = NewJob("noop", tenants.b, limit=4)
        await jobs.submit(conn, kinds, job, new, now=datetime.now(UTC))
    filled = {"ready", "overflow", "unique_key", "task", "lane", "job"}
    for table in filled:
        count = f"SELECT count(*) FROM queue.{table}"
        assert await owner.fetchval(count) > 0, table
        async with database.tenant_tx(tenants.b) as conn:
            assert await conn.fetchval(count) > 0, table
        async with database.tenant_tx(tenants.a) as conn:
            assert await conn.fetchval(count) == 0, table


async def test_a_tenant_cannot_write_rows_for_another(database: Database, tenants: Tenants) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with database.tenant_tx(tenants.a) as conn:
            await tenancy.add_member(conn, tenants.b, "intruder@example.com")


async def test_outside_of_a_transaction_nobody_is_the_tenant(
    database: Database, tenants: Tenants
) -> None:
    async with database.tenant_tx(tenants.a) as conn:
        assert await conn.fetchval("SELECT current_user") == TENANT
    async with database.tenant_pool.acquire() as conn:
        assert await conn.fetchval("SELECT tenancy.current_organisation()") is None
        assert await conn.fetchval("SELECT count(*) FROM tenancy.member") == 0


async def test_a_role_cannot_be_left_by_reset(database: Database, tenants: Tenants) -> None:
    async with database.tenant_tx(tenants.a) as conn:
        await conn.execute("RESET ROLE")
        assert await conn.fetchval("SELECT current_user") == TENANT


class TestPoliciesOfBlueBandedBee:
    """The three policies of the reference hold in effect, whatever their text."""

    async def test_users_own_data(self, database: Database, tenants: Tenants) -> None:
        async with database.system_tx() as conn:
            colleague = await tenancy.add_member(conn, tenants.a, "colleague@example.com")
        async with database.tenant_tx(tenants.a, tenants.member_a) as conn:
            rows = await conn.fetch("SELECT id, auth.uid() AS me FROM tenancy.member")
        assert [(row["id"], row["me"]) for row in rows] == [(tenants.member_a, tenants.member_a)]
        assert colleague.id != tenants.member_a

    async def test_a_member_of_one_organisation_cannot_enter_another(
        self, database: Database, tenants: Tenants
    ) -> None:
        with pytest.raises(Forbidden):
            async with database.tenant_tx(tenants.a, tenants.member_b):
                pytest.fail("entered")


async def _changed(
    database: Database,
    acting: OrganisationId,
    member: MemberId | None,
    relation: str,
    column: str,
    victim: OrganisationId,
) -> int:
    """Count the victim's rows that the acting organisation could update or delete."""
    changed = 0
    for statement in (
        f"UPDATE {relation} SET {column} = {column} WHERE {column} = $1",
        f"DELETE FROM {relation} WHERE {column} = $1",
    ):
        try:
            async with database.tenant_tx(acting, member) as conn:
                changed += int((await conn.execute(statement, victim)).split()[-1])
        except asyncpg.InsufficientPrivilegeError:
            continue
    return changed


async def _ensure_row(
    owner: OwnConnection,
    schema: str,
    table: str,
    column: str,
    organisation_id: OrganisationId,
) -> None:
    """Put one row of the organisation into the table, whatever its columns are."""
    relation = f'"{schema}"."{table}"'
    if await owner.fetchval(
        f"SELECT EXISTS (SELECT FROM {relation} WHERE {column} = $1)", organisation_id
    ):
        return
    columns = await owner.fetch(
        """
        SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type, t.typtype::text AS kind,
               (SELECT min(enumlabel) FROM pg_enum WHERE enumtypid = a.atttypid) AS label
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
          AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = ''
          AND a.attname <> $2
        """,
        relation,
        column,
    )
    names = [column, *(f'"{row["name"]}"' for row in columns)]
    values = [f"'{organisation_id}'", *(_sample(row) for row in columns)]
    # Foreign keys and checks are not what is tested here.
    async with owner.transaction():
        await owner.execute("SET LOCAL session_replication_role = replica")
        checks = await owner.fetch(
            "SELECT quote_ident(conname) AS name FROM pg_constraint"
            " WHERE conrelid = $1::regclass AND contype = 'c' AND coninhcount = 0",
            relation,
        )
        for check in checks:
            await owner.execute(f"ALTER TABLE {relation} DROP CONSTRAINT {check['name']}")
        await owner.execute(
            f"INSERT INTO {relation} ({', '.join(names)}) VALUES ({', '.join(values)})"
        )


def _sample(column: asyncpg.Record) -> str:
    """Return a literal of the column's type."""
    if column["label"] is not None:
        return f"'{column['label']}'::{column['type']}"
    kind = column["type"]
    if kind.endswith("[]"):
        return f"'{{}}'::{kind}"
    samples = {
        "uuid": f"'{uuid4()}'",
        "jsonb": "'{}'",
        "bytea": r"'\x00'",
        "boolean": "true",
        "timestamp with time zone": "now()",
        "interval": "'1 second'",
        "date": "current_date",
        "inet": "'192.0.2.1'",
        "halfvec": "'[1]'",
    }
    return f"{samples.get(kind, repr('1'))}::{kind}"


def test_two_ids_are_two_ids() -> None:
    assert tenancy.organisation_id_of("team-7") == tenancy.organisation_id_of("team-7")
    assert tenancy.organisation_id_of("team-7") != tenancy.organisation_id_of("team-8")
    same = UUID("0197c9e2-7b1f-7c9e-8d6c-2f6f3f6f1a11")
    assert tenancy.organisation_id_of(str(same)) == same
