"""One worker process of one queue: `python -m benchmarks.queues.drain NAME DSN TASKS`.

It prints a line a second with the tasks done so far, and at its end the seconds it took.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop

from benchmarks.queues import peers, trapline
from trapline import logs
from trapline.settings import LogSettings

# 0 tasks means: until killed.
Drain = Callable[[str, int, "Count"], Awaitable[float]]


class Count:
    """Counts handled tasks, and tells of them every second."""

    def __init__(self) -> None:
        self.done = 0

    async def tell(self) -> None:
        while True:
            print(f"{time.time():.3f} {self.done}", flush=True)
            await asyncio.sleep(1)


async def bare(dsn: str, tasks: int, count: Count) -> float:
    """Claim and complete by two updates of one table, batches of 100: what any such queue must do."""
    conn = await asyncpg.connect(dsn)
    claim = await conn.prepare(peers.BARE_CLAIM)
    finish = await conn.prepare(peers.BARE_FINISH)
    began = time.perf_counter()
    while rows := await claim.fetch(100):
        count.done += len(rows)
        await finish.fetch([row["id"] for row in rows])
    assert not tasks or count.done == tasks
    return time.perf_counter() - began


async def bare_again(dsn: str, _: int, count: Count) -> float:
    """Run the bare loop for ever, connecting again as soon as a server is there."""
    while True:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await bare(dsn, 0, count)
        await asyncio.sleep(0.05)


async def pgqueuer(dsn: str, tasks: int, count: Count, batch: int) -> float:
    from pgqueuer import PgQueuer  # noqa: PLC0415
    from pgqueuer.db import AsyncpgDriver  # noqa: PLC0415
    from pgqueuer.domain.types import QueueExecutionMode  # noqa: PLC0415

    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn)))

    @queue.entrypoint("noop")
    async def noop(job: Any) -> None:
        del job
        count.done += 1

    mode = QueueExecutionMode.drain if tasks else QueueExecutionMode.continuous
    began = time.perf_counter()
    await queue.qm.run(
        dequeue_timeout=timedelta(seconds=1), batch_size=batch, mode=mode, max_concurrent_tasks=None
    )
    return time.perf_counter() - began


async def procrastinate(dsn: str, tasks: int, count: Count) -> float:
    app = peers.procrastinate_app(dsn, count)
    async with app.open_async():
        began = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=100, install_signal_handlers=False, delete_jobs="always"
        )
        assert count.done == tasks
        return time.perf_counter() - began


async def awa(dsn: str, tasks: int, count: Count) -> float:
    from awa import AsyncClient  # noqa: PLC0415

    client = AsyncClient(peers.awa_url(dsn))

    @client.task(peers.Noop, queue="bench")
    async def noop(job: Any) -> None:
        del job
        count.done += 1

    began = time.perf_counter()
    await client.start([("bench", 200)])
    while count.done < tasks:  # noqa: ASYNC110 (its handler runs on another loop)
        await asyncio.sleep(0.01)
    seconds = time.perf_counter() - began
    await client.shutdown()
    return seconds


QUEUES: dict[str, Drain] = {
    "bare": bare,
    "bare-again": bare_again,
    "trapline": trapline.drain,
    "trapline-starts": trapline.starts,
    "pgqueuer-10": lambda dsn, tasks, count: pgqueuer(dsn, tasks, count, 10),
    "pgqueuer-100": lambda dsn, tasks, count: pgqueuer(dsn, tasks, count, 100),
    "procrastinate": procrastinate,
    "awa": awa,
}


async def main(name: str, dsn: str, tasks: int) -> None:
    logs.configure(LogSettings(level="error"))
    count = Count()
    # Starts are its only lines.
    quiet = name == "trapline-starts"
    telling = asyncio.create_task(asyncio.sleep(0) if quiet else count.tell())
    seconds = await QUEUES[name](dsn, tasks, count)
    telling.cancel()
    print(f"took {seconds:.4f}", flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
