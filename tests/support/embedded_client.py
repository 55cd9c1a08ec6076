"""A client process of the embedded server of a home: it stays until its stdin closes.

`python -m tests.support.embedded_client HOME [SQL …]` joins, runs the statements, prints one JSON line with the DSN
and their values, and stays until its stdin closes. If the server cannot be used, it prints why.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.paths import ROOT
from tests.support.settings import make_settings
from trapline import logs
from trapline.db import embedded
from trapline.db.embedded import supervisor
from trapline.errors import EmbeddedPostgresError

IS_ROOT = os.geteuid() == 0
PROMISE = 10.0
"""Seconds within which no process of the server is left after the last user is gone."""


class EmbeddedClient:
    """Starts the process; `prefix` is a command that runs it, as another user for example."""

    def __init__(
        self,
        home: Path,
        *statements: str,
        prefix: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                "-m",
                "tests.support.embedded_client",
                str(home),
                *statements,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=None if environment is None else os.environ | environment,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def answer(self) -> dict[str, Any]:
        """Wait until it has joined; a client that could not says why in `error`."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        return dict(json.loads(line))

    def leave(self) -> None:
        self._process.communicate()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.communicate()


class EmbeddedHome:
    """One home, its clients, and every process that they brought about."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "postgres"
        self.data = self.directory / "data"
        self.clients: list[EmbeddedClient] = []

    def client(self, *statements: str, **options: Any) -> EmbeddedClient:
        self.clients.append(EmbeddedClient(self.home, *statements, **options))
        return self.clients[-1]

    def postmaster(self) -> int | None:
        return supervisor.postmaster(str(self.data))

    def watchers(self) -> list[int]:
        return [pid for pid, command in _commands() if self._is_watcher(command)]

    def processes(self) -> list[int]:
        servers = supervisor.server_processes(str(self.data)) if self.data.exists() else []
        return [*self.watchers(), *map(int, servers)]

    def wait_until_gone(self) -> None:
        wait_for(lambda: not self.processes())

    def end(self) -> None:
        """Leave no process behind, whatever the test did."""
        for client in self.clients:
            client.kill()
        for pid in self.watchers():
            os.kill(pid, signal.SIGCONT)
        deadline = time.monotonic() + PROMISE
        while self.processes() and self.watchers() and time.monotonic() < deadline:
            time.sleep(0.05)
        while left := self.processes():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _is_watcher(self, command: list[str]) -> bool:
        return str(self.directory) in command and supervisor.__file__ in command


@contextmanager
def embedded_home(home: Path) -> Iterator[EmbeddedHome]:
    server_home = EmbeddedHome(home)
    try:
        yield server_home
    finally:
        server_home.end()


def wait_for(condition: Callable[[], bool], seconds: float = PROMISE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def _commands() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_text().split("\0")


async def _join(home: Path, statements: Sequence[str]) -> None:
    settings = make_settings(home=home)
    logs.configure(settings.logs)
    async with embedded.running(settings.database) as server:
        connection = await asyncpg.connect(server.dsn)
        values = [await connection.fetchval(statement) for statement in statements]
        await connection.close()
        sys.stdout.write(json.dumps({"dsn": server.dsn, "values": values}, default=str) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    try:
        asyncio.run(_join(Path(sys.argv[1]), sys.argv[2:]))
    except EmbeddedPostgresError as error:
        sys.stdout.write(json.dumps({"error": error.message}) + "\n")


if __name__ == "__main__":
    main()
