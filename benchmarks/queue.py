"""bench-queue: no-op tasks through our queue and its peers, on one embedded PostgreSQL.

python -m benchmarks.queue [--parts drain growth held faults] [--rounds 3] [--depth 5000000] [--finished 10000000] [--held 180]
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop

from benchmarks import report, versions
from benchmarks.queues import faults, peers, trapline
from trapline import logs
from trapline.db import pool
from trapline.queue.sql import claim
from trapline.settings import LogSettings, Settings

TASKS = 200_000
Fill = Callable[[str, int], Awaitable[object]]
PEERS: dict[str, tuple[Fill, int]] = {
    "pgqueuer-10": (peers.fill_pgqueuer, 10_000),
    "pgqueuer-100": (peers.fill_pgqueuer, 30_000),
    "awa": (peers.fill_awa, 10_000),
    "procrastinate": (peers.fill_procrastinate, 2_000),
}


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """The embedded PostgreSQL, durable as it always is, with nothing else in it."""
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as home:
        os.chmod(home, 0o755)  # noqa: S103, PTH101 (its server runs as another user)
        settings = Settings.load({"TRAPLINE_HOME": home})
        async with pool.server(settings.database) as running:
            yield running.dsn


async def database(dsn: str, name: str) -> str:
    conn = await asyncpg.connect(dsn)
    await conn.execute(f"CREATE DATABASE {name}")
    await conn.close()
    head, _, parameters = dsn.partition("?")
    return f"{head.rsplit('/', 1)[0]}/{name}?{parameters}"


async def start(name: str, dsn: str, tasks: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.queues.drain",
        name,
        dsn,
        str(tasks),
        stdout=asyncio.subprocess.PIPE,
    )


async def drained(name: str, dsn: str, tasks: int, processes: int = 1) -> float:
    """Return the tasks a second that worker processes drain."""
    workers = [await start(name, dsn, tasks) for _ in range(processes)]
    outputs = await asyncio.gather(*(worker.communicate() for worker in workers))
    seconds = []
    for out, _ in outputs:
        last = out.decode().strip().splitlines()[-1]
        assert last.startswith("took"), out
        seconds.append(float(last.split()[1]))
    return tasks / max(seconds)


async def drains(dsn: str, rounds: int) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Drain rates of all queues, ours and the bare loop in turns, medians of the rounds."""
    ours_dsn, bare_dsn = await database(dsn, "ours"), await database(dsn, "bare")
    rates: dict[str, list[float]] = {}
    filled: list[float] = []

    async def ours(label: str, processes: int = 1, **shape: int) -> None:
        filled.append(TASKS / await trapline.fill(ours_dsn, TASKS, **shape))
        rate = await drained("trapline", ours_dsn, TASKS, processes)
        rates.setdefault(label, []).append(rate)
        print(f"  {label}: {rate:,.0f}/s", flush=True)

    for _ in range(rounds):
        await peers.fill_bare(bare_dsn, TASKS)
        rates.setdefault("bare", []).append(await drained("bare", bare_dsn, TASKS))
        print(f"  bare: {rates['bare'][-1]:,.0f}/s", flush=True)
        await ours("trapline")
        for name, (fill, tasks) in PEERS.items():
            peer_dsn = await database(dsn, f"{name.replace('-', '_')}_{len(rates['bare'])}")
            await fill(peer_dsn, tasks)
            rates.setdefault(name, []).append(await drained(name, peer_dsn, tasks))
            print(f"  {name}: {rates[name][-1]:,.0f}/s", flush=True)
    await ours("trapline, 2 processes", processes=2)
    await ours("trapline, 1,000 jobs", n_jobs=1000)
    await ours("trapline, 10,000 gates", n_gates=10_000)
    middle = {name: statistics.median(values) for name, values in rates.items()}
    rows = [
        {"queue": name, "tasks/s": round(rate), "of bare": rate / middle["bare"]}
        for name, rate in middle.items()
    ]
    rows.append(
        {"queue": "trapline, enqueue", "tasks/s": round(statistics.median(filled)), "of bare": ""}
    )
    return rows, middle


async def growth(dsn: str, depth: int, finished: int) -> tuple[list[dict[str, Any]], float]:
    """Claim latency in a deep queue beside that in a shallow one, claim by claim in turns."""
    shallow, deep = await database(dsn, "shallow"), await database(dsn, "deep")
    for name in (shallow, deep):
        await trapline.fill(name, 1)
        await trapline.deepen(name, 10_000, 0)
    rows, worst = [], 0.0
    steps = [(min(1_000_000, depth), 0), (depth, 0), (10_000, finished)]
    for queued, done in dict.fromkeys(steps):
        if done:
            await trapline.fill(deep, 1)
        await trapline.deepen(deep, queued, done)
        small, large = await _claims(shallow, deep)
        ratio = _p(large, 99) / _p(small, 99)
        worst = max(worst, ratio)
        rows.append(
            {
                "queued": queued,
                "finished": done,
                "claim p50 ms": _p(large, 50),
                "claim p99 ms": _p(large, 99),
                "at 10 k: p50 ms": _p(small, 50),
                "p99 ms": _p(small, 99),
                "p99 ratio": ratio,
            }
        )
        print(f"  {rows[-1]}", flush=True)
    return rows, worst


async def _claims(shallow: str, deep: str, samples: int = 900) -> tuple[list[float], list[float]]:
    """Claim ten tasks at a time, in turns from both; what was claimed is put back at the end."""
    took: tuple[list[float], list[float]] = ([], [])
    async with trapline.opened(shallow) as (one, _), trapline.opened(deep) as (two, _):
        after = [(-(2**15), 0), (-(2**15), 0)]
        lanes = []
        for database_ in (one, two):
            async with database_.system_tx() as conn:
                lanes.append(await conn.fetchval("SELECT id FROM queue.lane"))
        for _ in range(samples):
            for which, database_ in enumerate((one, two)):
                began = time.perf_counter()
                async with database_.system_tx() as conn:
                    rows = await claim.finish_and_claim(
                        conn,
                        leases=[],
                        tasks=[],
                        results=[],
                        outcomes=[],
                        most_stalls=9,
                        agent_id=1,  # type: ignore[arg-type]
                        requests=[(lanes[which], 10, *after[which], 2**15 - 1, False)],
                        starting=[],
                        lease_time=timedelta(minutes=10),
                    )
                took[which].append(1000 * (time.perf_counter() - began))
                assert len(rows) == 10
                after[which] = max((row.priority or 0, row.turn or 0) for row in rows)
    await trapline.deepen(shallow, 10_000, 0)
    return sorted(took[0]), sorted(took[1])


def _p(values: list[float], percent: int) -> float:
    return values[min(len(values) - 1, len(values) * percent // 100)]


async def recoveries(dsn: str) -> list[dict[str, Any]]:
    """Faults, and beside them what the same seconds bring without one, and the bare loop's crash."""
    own, bare = await database(dsn, "faults"), await database(dsn, "faults_bare")
    return [
        await faults.recovery(own, "trapline", faults.KILL, start),
        await faults.recovery(own, "trapline", faults.CRASH, start),
        await faults.recovery(own, "trapline", faults.NOTHING, start),
        await faults.recovery(bare, "bare-again", faults.CRASH, start),
        await faults.recovery(bare, "bare-again", faults.NOTHING, start),
    ]


async def held(dsn: str, name: str, seconds: int) -> dict[str, Any]:
    """Steady load while another session holds a snapshot: the first 20 s against the last."""
    own = await database(dsn, f"held_{name.partition('-')[0]}")
    fill = (
        (lambda n: trapline_feed(own, n))
        if name == "trapline"
        else (lambda n: peers.fill_pgqueuer(own, n))
    )
    await (trapline.fill(own, 1) if name == "trapline" else peers.fill_pgqueuer(own, 1))
    await fill(60_000)
    holder = await asyncpg.connect(own)
    await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class")
    worker = await start(name, own, 0)
    counts: list[tuple[float, int]] = []
    fed = 60_000
    assert worker.stdout is not None
    try:
        async with asyncio.timeout(seconds + 30):
            while not counts or counts[-1][0] - counts[0][0] < seconds:
                at, done = (await worker.stdout.readline()).decode().split()
                if int(done):
                    counts.append((float(at), int(done)))
                # Three seconds' work ahead, so that the queue is never empty.
                rate = counts[-1][1] / max(1.0, counts[-1][0] - counts[0][0]) if counts else 0
                more = round(max(60_000, 3 * rate)) - (fed - int(done))
                if more > 0:
                    await fill(more)
                    fed += more
    finally:
        worker.kill()
        await worker.wait()
        await holder.close()
    window = min(20, seconds // 3)
    first = _rate([c for c in counts if c[0] <= counts[0][0] + window])
    last = _rate([c for c in counts if c[0] >= counts[-1][0] - window])
    conn = await asyncpg.connect(own)
    dead = await conn.fetchval("SELECT sum(n_dead_tup) FROM pg_stat_user_tables")
    await conn.close()
    return {
        "queue": name,
        "seconds": seconds,
        "first tasks/s": round(first),
        "last tasks/s": round(last),
        "last ÷ first": last / first,
        "dead tuples": int(dead),
    }


def _rate(counts: list[tuple[float, int]]) -> float:
    (t0, n0), (t1, n1) = counts[0], counts[-1]
    return (n1 - n0) / (t1 - t0)


async def trapline_feed(dsn: str, tasks: int) -> None:
    conn = await asyncpg.connect(dsn)
    async with conn.transaction():
        await conn.execute(
            "UPDATE queue.job SET standing = true, total = total + $1, remaining = remaining + $1",
            tasks,
        )
        await conn.execute(trapline.FILL_READY, tasks)
    await conn.close()


async def main(options: argparse.Namespace) -> None:
    logs.configure(LogSettings(level="error"))
    title = versions("trapline", "asyncpg", "pgqueuer", "procrastinate", "awa-pg")
    figures: dict[str, object] = {}
    async with server() as dsn:
        if "drain" in options.parts:
            rows, rates = await drains(dsn, options.rounds)
            best = max(rate for name, rate in rates.items() if name in PEERS)
            figures["drain_vs_best_peer"] = round(rates["trapline"] / best, 2)
            figures["drain_vs_bare"] = round(rates["trapline"] / rates["bare"], 2)
            waits = await trapline.latencies(await database(dsn, "idle"), start, 200)
            figures["idle_latency_p50_ms"] = round(_p(waits, 50), 2)
            figures["idle_latency_p99_ms"] = round(_p(waits, 99), 2)
            report(f"Drain, one process unless said otherwise ({title})", rows, figures)
        if "growth" in options.parts:
            grown, worst = await growth(dsn, options.depth, options.finished)
            figures["claim_p99_growth"] = round(worst, 2)
            report("Claims of 10 in a deep queue", grown, figures)
        if "held" in options.parts:
            steady = [await held(dsn, name, options.held) for name in ("trapline", "pgqueuer-100")]
            figures["held_snapshot_ratio"] = round(steady[0]["last ÷ first"], 2)
            report("Steady load under a held snapshot", steady, figures)
        if "faults" in options.parts:
            recovered = await recoveries(dsn)
            figures["recovery_ratio"] = round(min(row["ratio"] for row in recovered[:2]), 2)
            report("The rate before a fault and ten seconds after it", recovered, figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", nargs="+", default=["drain", "growth", "held", "faults"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=5_000_000)
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--held", type=int, default=180)
    uvloop.run(main(parser.parse_args()))
