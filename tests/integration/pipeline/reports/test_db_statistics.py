"""What the database and the queue are busy with, over HTTP and on the command line."""

from typing import Any

import aiohttp
from pydantic import SecretStr

from tests.support.cli import Trapline
from tests.support.http_api import Served
from tests.support.queue_jobs import ended, kinds_of, numbers, submit, working
from tests.support.settings import change_settings
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.queue.finish import TaskResult
from trapline.queue.maintenance import statistics_rollup
from trapline.queue.tasks import Task
from trapline.settings import Settings

PARTS = {
    "connections", "efficiency", "rates", "statements", "slow", "tables", "unused_indexes",
    "bloated_indexes",
}  # fmt: skip


async def test_the_embedded_server_looks_early_for_dead_rows(database: Database) -> None:
    """Twice as early as PostgreSQL would by itself, and it does not dawdle."""
    async with database.system_tx() as conn:
        told = await conn.fetch(
            "SELECT name, setting::float8, boot_val::float8 FROM pg_settings WHERE name = ANY ($1)",
            ["autovacuum_analyze_scale_factor", "autovacuum_vacuum_cost_limit"],
        )
    found = {row["name"]: row["setting"] for row in told}
    assert found == {"autovacuum_analyze_scale_factor": 0.05, "autovacuum_vacuum_cost_limit": 1000}
    assert all(row["setting"] != row["boot_val"] for row in told)


async def _some_work(database: Database, organisation_id: OrganisationId) -> None:
    async def work(task: Task) -> TaskResult:
        if task.payload.n == 0:
            raise ValueError("no")
        return TaskResult()

    kinds = kinds_of(work)
    job, _ = await submit(database, kinds, organisation_id, numbers(10, max_attempts=1))
    async with working(database, kinds):
        await ended(database, job)
    await statistics_rollup.merge_tally(database)


async def _stats(client: aiohttp.ClientSession, **options: Any) -> Any:
    async with client.get("/api/admin/stats", **options) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_everything_is_told(
    database: Database, organisation_id: OrganisationId, api: aiohttp.ClientSession
) -> None:
    await _some_work(database, organisation_id)
    found = await _stats(api)
    assert found.keys() == PARTS
    assert sum(state["connections"] for state in found["connections"]) >= 2
    (kind,) = found["efficiency"]
    assert (kind["kind"], kind["completed"], kind["failed"]) == ("number", 9, 1)
    assert [(hour["created"], hour["ended"]) for hour in found["rates"]] == [(1, 1)]
    assert {"queue", "store"} <= {table["schema"] for table in found["tables"]}


async def test_unused_indexes_and_slow_statements(
    database: Database, api: aiohttp.ClientSession
) -> None:
    found = await _stats(api, params={"limit": "1000"})
    # The server's other databases may crowd a statement out of its statistics as soon as it ran.
    for _ in range(20):
        async with database.system_tx() as conn:
            await conn.fetchval("SELECT 'a slow one', pg_sleep(0.05)")
        found = await _stats(api, params={"limit": "1000"})
        if any("pg_sleep" in statement["query"] for statement in found["statements"]):
            break
    unused = {index["index"] for index in found["unused_indexes"]}
    assert "site_config_idx" in unused
    # A constraint needs these, whether they are read or not.
    assert not unused & {"job_pkey", "organisation_name_key"}
    assert any("pg_sleep" in statement["query"] for statement in found["statements"])
    times = [statement["total_ms"] for statement in found["statements"]]
    assert times == sorted(times, reverse=True)
    assert len(found["statements"]) <= 50


async def test_only_an_administrator_may_look(
    database: Database, served: Served, server_settings: Settings
) -> None:
    guarded = change_settings(server_settings, {"admin_key": SecretStr("s3cret")})
    async with database.system_tx() as conn:
        organisation = await tenancy.create_organisation(conn, "A")
        key = (await tenancy.issue_key(conn, organisation.id, "k", ("admin",))).secret
    async with served(guarded) as client:
        for token, status in ((key, 403), ("wrong", 401), ("s3cret", 200)):
            headers = {"Authorization": f"Bearer {token}"}
            async with client.get("/api/admin/stats", headers=headers) as answer:
                assert answer.status == status
        async with client.get("/api/admin/stats?limit=0", headers=headers) as answer:
            assert answer.status == 400


async def test_the_command_shows_the_same(trapline: Trapline) -> None:
    done = await trapline("db", "stats", "--limit", "3", "--json")
    assert done.status == 0, done.err
    assert done.json.keys() == PARTS
    shown = await trapline("db", "stats", "--limit", "3")
    assert "Connections by state" in shown.out
    assert "Indexes that nothing reads" in shown.out
