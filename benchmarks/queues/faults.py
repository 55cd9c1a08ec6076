"""The rate before and after a fault: a worker that is killed, a server that crashes."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import Any

import asyncpg

from benchmarks.queues import peers, trapline
from benchmarks.queues.trapline import Start

GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)

WARM_UP = 3.0
BEFORE = 6.0
# Within this time the rate must be back.
ALLOWED = 10.0
AFTER = 5.0


NOTHING = "nothing"
KILL = "kill -9 of the worker"
CRASH = "crash of PostgreSQL"


async def recovery(
    dsn: str, name: str, fault: str, start: Start, tasks: int = 2_500_000
) -> dict[str, Any]:
    """Drain with one worker, cause a fault, and compare the rate before with that ten seconds later."""
    if name == "trapline":
        await trapline.fill(dsn, 1)
        await trapline.deepen(dsn, tasks, 0)
    else:
        await peers.fill_bare(dsn, tasks)
    worker = await start(name, dsn, 0)
    counts: list[tuple[float, int]] = []
    count = _committed(dsn, counts) if name == "trapline" else _told(worker, counts)
    counting = asyncio.create_task(count)
    try:
        while not counts or not counts[-1][1]:  # noqa: ASYNC110 (the database is asked)
            await asyncio.sleep(0.1)
        await asyncio.sleep(WARM_UP + BEFORE)
        at = time.time()
        if fault == KILL:
            worker.kill()
            await worker.wait()
            worker = await start(name, dsn, 0)
        elif fault == CRASH:
            await _crash(dsn)
        await asyncio.sleep(ALLOWED + AFTER)
    finally:
        counting.cancel()
        worker.kill()
        await worker.wait()
    assert counts[-1][1] < tasks, "the queue ran dry"
    before = _rate(counts, at - BEFORE, at)
    after = _rate(counts, at + ALLOWED, at + ALLOWED + AFTER)
    return {
        "queue": name.partition("-")[0],
        "fault": fault,
        "before tasks/s": round(before),
        "back at 90 % after s": _back(counts, at, 0.9 * before),
        "10 s later tasks/s": round(after),
        "ratio": after / before,
    }


async def _told(worker: asyncio.subprocess.Process, counts: list[tuple[float, int]]) -> None:
    """Note what a worker says of itself, once a second."""
    assert worker.stdout is not None
    async for line in worker.stdout:
        at, done = line.decode().split()
        counts.append((float(at), int(done)))


async def _committed(dsn: str, counts: list[tuple[float, int]]) -> None:
    """Note four times a second how much is committed, as far as the server answers."""
    while True:
        with suppress(*GONE):
            conn = await asyncpg.connect(dsn)
            try:
                while True:
                    done = await conn.fetchval("SELECT sum(completed)::bigint FROM queue.job")
                    counts.append((time.time(), done))
                    await asyncio.sleep(0.25)
            finally:
                conn.terminate()
        await asyncio.sleep(0.1)


async def _crash(dsn: str) -> None:
    """Kill a backend: PostgreSQL ends every session, restarts and recovers from its log."""
    conn = await asyncpg.connect(dsn)
    os.kill(await conn.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
    conn.terminate()


def _rate(counts: list[tuple[float, int]], begin: float, end: float) -> float:
    inside = [count for count in counts if begin <= count[0] <= end]
    (t0, n0), (t1, n1) = inside[0], inside[-1]
    # A server that is away for all of that time answers once: nothing was done as far as is known.
    return (n1 - n0) / (t1 - t0) if t1 > t0 else 0.0


def _back(counts: list[tuple[float, int]], at: float, wanted: float) -> float | str:
    """Seconds after the fault from which on two seconds ran at the wanted rate."""
    for begin, _ in counts:
        if (
            begin > at
            and counts[-1][0] >= begin + 2
            and _rate(counts, begin, begin + 2.1) >= wanted
        ):
            return begin - at
    return "never"
