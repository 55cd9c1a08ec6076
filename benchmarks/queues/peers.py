"""Schemas and fillers of the peers, and of the bare loop."""

from dataclasses import dataclass
from typing import Any

import asyncpg

BARE_SCHEMA = """
CREATE TABLE IF NOT EXISTS bare (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'queued',
    priority integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    payload jsonb NOT NULL
);
CREATE INDEX IF NOT EXISTS bare_queued_idx ON bare (priority, id) WHERE status = 'queued'
"""
BARE_CLAIM = """
UPDATE bare SET status = 'active' WHERE id = ANY (ARRAY(
    SELECT id FROM bare WHERE status = 'queued' ORDER BY priority, id LIMIT $1
    FOR UPDATE SKIP LOCKED))
RETURNING id, payload
"""
BARE_FINISH = "UPDATE bare SET status = 'done' WHERE id = ANY ($1)"


@dataclass
class Noop:
    """A payload."""

    n: int


async def fill_bare(dsn: str, tasks: int) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute(BARE_SCHEMA)
    await conn.execute("TRUNCATE bare")
    await conn.execute(
        "INSERT INTO bare (payload) SELECT '{\"n\": 1}' FROM generate_series(1, $1::integer)", tasks
    )
    await conn.execute("VACUUM ANALYZE bare")
    await conn.close()


async def fill_pgqueuer(dsn: str, tasks: int) -> None:
    from pgqueuer.db import AsyncpgDriver  # noqa: PLC0415
    from pgqueuer.queries import Queries  # noqa: PLC0415

    conn = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(conn))
    if not await conn.fetchval("SELECT to_regclass('pgqueuer')"):
        await queries.install()
    for start in range(0, tasks, 10_000):
        n = min(10_000, tasks - start)
        await queries.enqueue(["noop"] * n, [b'{"n": 1}'] * n, [0] * n)
    await conn.execute("VACUUM ANALYZE pgqueuer")
    await conn.close()


def procrastinate_app(dsn: str, count: Any) -> Any:
    import procrastinate  # noqa: PLC0415

    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=4, max_size=20)
    )

    @app.task(name="noop")
    async def noop(n: int) -> None:
        del n
        count.done += 1

    return app


async def fill_procrastinate(dsn: str, tasks: int) -> None:
    app = procrastinate_app(dsn, None)
    async with app.open_async():
        conn = await asyncpg.connect(dsn)
        if not await conn.fetchval("SELECT to_regclass('procrastinate_jobs')"):
            await app.schema_manager.apply_schema_async()
        await app.tasks["noop"].batch_defer_async(*({"n": 1} for _ in range(tasks)))
        await conn.close()


def awa_url(dsn: str) -> str:
    """Its URLs need a host even where a socket's directory is given."""
    return dsn.replace("@/", "@localhost/")


async def fill_awa(dsn: str, tasks: int) -> None:
    from awa import AsyncClient  # noqa: PLC0415

    client = AsyncClient(awa_url(dsn))
    await client.migrate()
    await client.install_queue_storage()

    @client.task(Noop, queue="bench")
    async def noop(job: Any) -> None:
        del job

    for start in range(0, tasks, 5_000):
        n = min(5_000, tasks - start)
        await client.enqueue_many_copy([Noop(1)] * n, queue="bench")
