"""Eight workers, kill -9 at random, PostgreSQL restarted in the middle: each effect once."""

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from tests.support.paths import ROOT
from tests.support.queue_jobs import assert_sound, kinds_of, numbers, submit
from tests.support.settings import make_settings
from trapline.db import pool, tenancy
from trapline.db.pool import Database, ExternalServer
from trapline.settings import Settings

TASKS = 80_000
WORKERS = 8


@pytest.fixture
async def own_server() -> AsyncIterator[tuple[str, Settings]]:
    """A server of this test's own, because it is restarted."""
    home = Path(tempfile.mkdtemp(prefix="trapline-chaos-"))
    settings = make_settings(home=home, pool_size=6)
    async with pool.server(settings.database) as server:
        async with pool.owner(server.dsn, settings.database) as conn:
            await pool.prepare(conn)
            await conn.execute("CREATE SCHEMA chaos")
            await conn.execute("GRANT USAGE ON SCHEMA chaos TO trapline_worker")
            await conn.execute("CREATE TABLE chaos.effect (n integer PRIMARY KEY)")
            await conn.execute("GRANT ALL ON chaos.effect TO trapline_worker")
        yield server.dsn, settings
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.timeout(240)
async def test_every_effect_is_there_once(own_server: tuple[str, Settings]) -> None:
    dsn, settings = own_server
    rng = random.Random(11)
    async with Database.connect(ExternalServer(dsn), settings) as database:
        async with database.system_tx() as conn:
            organisation_id = await tenancy.ensure_default(conn)
        workers = [await _start(dsn, settings) for _ in range(WORKERS)]
        try:
            # Work comes when all are there: the first ones would have done it before anything is killed.
            await _until(dsn, "SELECT count(*) >= 8 FROM queue.agent")
            job_id, _ = await submit(database, kinds_of(), organisation_id, numbers(TASKS))
            await _havoc(dsn, settings, workers, rng)
            await _until(dsn, "SELECT sum(remaining) = 0 FROM queue.job")
            await _until(dsn, "SELECT count(*) > 0 FROM queue.agent WHERE died")
        finally:
            for worker in workers:
                if worker.returncode is None:
                    worker.terminate()
            await asyncio.gather(*(worker.wait() for worker in workers))
        async with database.system_tx() as conn:
            assert await conn.fetchval("SELECT count(*) FROM chaos.effect") == TASKS
            job = await conn.fetchrow("SELECT * FROM queue.job WHERE id = $1", job_id)
            assert job is not None
            assert (job["status"], job["completed"], job["failed"]) == ("completed", TASKS, 0)
            ends = await conn.fetchval(
                "SELECT count(*) FROM queue.event WHERE job_id = $1 AND type = 'job.completed'",
                job_id,
            )
            assert ends == 1
        await assert_sound(database)


async def _start(dsn: str, settings: Settings) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.chaos.workload",
        dsn,
        str(settings.database.home),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def _havoc(
    dsn: str,
    settings: Settings,
    workers: list[asyncio.subprocess.Process],
    rng: random.Random,
) -> None:
    """Kill a worker now and then and start another; restart PostgreSQL once."""
    for step in range(6):
        await asyncio.sleep(rng.uniform(0.5, 1.5))
        victim = rng.choice([worker for worker in workers if worker.returncode is None])
        victim.kill()
        workers.append(await _start(dsn, settings))
        if step == 2:
            await _restart(dsn)


async def _restart(dsn: str) -> None:
    """Kill a backend with -9: PostgreSQL ends every session, restarts and recovers from its log."""
    conn = await asyncpg.connect(dsn)
    os.kill(await conn.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
    conn.terminate()


async def _until(dsn: str, condition: str) -> None:
    """Ask until it is so, whether or not the server is there at the moment."""
    async with asyncio.timeout(150):
        while True:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                conn = await asyncpg.connect(dsn)
                try:
                    if await conn.fetchval(condition):
                        return
                finally:
                    await conn.close()
            await asyncio.sleep(0.5)
