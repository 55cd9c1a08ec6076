"""`trapline jobs`, `tasks` and `audit`, as a person runs them."""

import asyncio
import json
import sys
from pathlib import Path

from tests.support.queue_jobs import ended, kinds_of, numbers, submit, working
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.queue.retry_policy import RetryPolicy
from trapline.queue.tasks import Task


async def run(dsn: str, *words: str) -> tuple[int, str]:
    """Run the real command line."""
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("trapline"),
        *words,
        env={"DATABASE_URL": dsn, "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_a_job_from_list_to_cancel(
    database: Database, organisation_id: OrganisationId, dsn: str
) -> None:
    job_id, added = await submit(database, kinds_of(), organisation_id, numbers(3))
    code, out = await run(dsn, "jobs", "list", "--json")
    assert code == 0
    assert [job["id"] for job in json.loads(out[out.index("[") :])] == [str(job_id)]
    assert "No agent is alive" in (await run(dsn, "jobs", "why", str(job_id)))[1]
    assert (await run(dsn, "jobs", "pause", str(job_id)))[0] == 0
    assert "paused" in (await run(dsn, "tasks", "show", str(added[0].task_id)))[1]
    assert (await run(dsn, "jobs", "resume", str(job_id)))[0] == 0
    assert (await run(dsn, "jobs", "cancel", str(job_id), "--reason", "enough"))[0] == 0
    assert (await run(dsn, "jobs", "cancel", str(job_id)))[0] == 5
    assert "enough" in (await run(dsn, "jobs", "show", str(job_id)))[1]
    assert "enough" in (await run(dsn, "jobs", "show", str(job_id)[:23]))[1]
    assert (await run(dsn, "jobs", "show", "nonsense"))[0] == 2
    assert (await run(dsn, "jobs", "show", "ffff"))[0] != 0
    code, out = await run(dsn, "audit")
    assert (code, "agree" in out) == (0, True)
    async with database.system_tx() as conn:
        await conn.execute("UPDATE queue.job SET completed = 1")
    assert (await run(dsn, "audit"))[0] == 1


async def test_dead_letters(database: Database, organisation_id: OrganisationId, dsn: str) -> None:
    async def handle(task: Task) -> None:
        raise ValueError(task.id)

    kinds = kinds_of(handle, retry=RetryPolicy(1))
    job_id, added = await submit(database, kinds, organisation_id, numbers(3))
    async with working(database, kinds):
        await ended(database, job_id)
    assert "ValueError" in (await run(dsn, "tasks", "list", "--dead", "--json"))[1]
    assert (await run(dsn, "tasks", "resolve", str(added[0].task_id)))[1].endswith("1 resolved.\n")
    assert (await run(dsn, "tasks", "retry", str(added[1].task_id)))[0] == 0
    assert (await run(dsn, "tasks", "retry", str(added[1].task_id)))[0] == 3
    assert (await run(dsn, "tasks", "resolve"))[0] == 2
    assert (await run(dsn, "jobs", "retry", str(job_id)))[0] == 0
    assert (await run(dsn, "jobs", "retry", str(job_id)))[0] == 5, "each failure is retried once"
    assert (await run(dsn, "tasks", "list", "--dead", "--json"))[1].strip() == "[]"
