"""A worker process to be killed: it writes each task's effect in the finishing transaction."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tests.support.queue_jobs import kinds_of, make_worker
from tests.support.settings import make_settings
from trapline.db.connection import Connection
from trapline.db.pool import Database, ExternalServer
from trapline.queue.finish import Attempt
from trapline.queue.maintenance import loop
from trapline.queue.maintenance.dead_workers import DeadAgents, sweep
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.tasks import Task


async def _handle(task: Task) -> int:
    await asyncio.sleep(0.001)
    return int(task.payload.n)


async def _store(conn: Connection, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    await conn.executemany(
        "INSERT INTO chaos.effect (n) VALUES ($1)",
        [(attempt.result.value,) for attempt in attempts],
    )
    return attempts


async def main(dsn: str, home: str) -> None:
    settings = make_settings(database_url=dsn, home=Path(home), pool_size=4)
    duties = [
        Duty("sweep", sweep, timedelta(seconds=2)),
        Duty("dead", DeadAgents().look, timedelta(seconds=1)),
    ]
    async with Database.connect(ExternalServer(dsn), settings) as database:
        worker = make_worker(
            database,
            kinds_of(_handle, stored=True),
            concurrency=20,
            store=_store,
            lease_time=timedelta(seconds=8),
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        maintenance = asyncio.create_task(loop.run(database, duties))
        await worker.run()
        maintenance.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
