"""The running embedded server: start or join it, and have a supervisor stop it after its last user."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from trapline.db.embedded import supervisor
from trapline.db.embedded.binaries import binary, binary_for
from trapline.db.embedded.cluster import (
    DATABASE,
    SUPERUSER,
    Cluster,
    file_errors_explained,
)
from trapline.errors import EmbeddedPostgresError
from trapline.logs import get_logger
from trapline.settings import DatabaseSettings

_POLL = 0.02
_WARN_EVERY = 10.0

log = get_logger(__name__)


@contextlib.asynccontextmanager
async def running(settings: DatabaseSettings) -> AsyncIterator["EmbeddedServer"]:
    """Start the server of this home or join it; it runs until its last user has left."""
    server = EmbeddedServer(_cluster(settings))
    with file_errors_explained(settings.home):
        server.cluster.ensure_directory()
        users = os.open(server.cluster.directory / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with file_errors_explained(settings.home):
            await _join(users)
            await server.started()
        try:
            yield server
        finally:
            # This process is done; the next one to start can still appoint a supervisor.
            with contextlib.suppress(OSError, EmbeddedPostgresError):
                await server.ensure_supervised()
    finally:
        os.close(users)


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A PostgreSQL that runs at least until its `running` block ends."""

    cluster: Cluster

    @property
    def dsn(self) -> str:
        """The URL of the database over its Unix socket, as superuser."""
        host = quote(str(self.cluster.socket_directory()))
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={self.cluster.port}"

    async def tcp_url(self) -> str:
        """Return a URL on 127.0.0.1 with a password; the first call makes the server listen there.

        That restarts the server: every open connection is closed once.
        """
        with file_errors_explained(self.cluster.directory):
            password = self.cluster.password()
            await asyncio.to_thread(self._set_password, password)
            if not self._listens():
                await self._restart_with_tcp()
        return f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{self.cluster.port}/{DATABASE}"

    async def started(self) -> None:
        """Wait until the server takes connections, starting a supervisor if there is none."""
        log_position: int | None = None
        warn_at = time.monotonic() + _WARN_EVERY
        while True:
            lock = _try_lock(self.cluster.directory / "watcher.lock")
            if lock is None and self.accepts():
                return
            if lock is not None and log_position is not None:
                os.close(lock)
                raise self.cluster.failure(self.cluster.log_since(log_position))
            if lock is not None:
                log_position = self.cluster.log_size()
                await asyncio.to_thread(self._start_supervisor, lock)
            if time.monotonic() > warn_at:
                log.warning("PostgreSQL is still starting", log=str(self.cluster.log_path))
                warn_at += _WARN_EVERY
            await asyncio.sleep(_POLL)

    async def ensure_supervised(self) -> None:
        """Replace a supervisor that was killed, so that the server still stops after its last user."""
        if supervisor.postmaster(str(self.cluster.data)) is None:
            return
        lock = _try_lock(self.cluster.directory / "watcher.lock")
        if lock is not None:
            await asyncio.to_thread(self._start_supervisor, lock)

    def accepts(self) -> bool:
        """Tell whether the server takes connections now."""
        if not supervisor.ready(str(self.cluster.data)):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            path = self.cluster.socket_directory() / f".s.PGSQL.{self.cluster.port}"
            return probe.connect_ex(str(path)) == 0

    def _start_supervisor(self, lock: int) -> None:
        """Hand the lock to a new supervisor, which starts PostgreSQL or adopts the running one."""
        cluster = self.cluster
        log_file = os.open(cluster.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            cluster.prepare()
            program = binary_for(cluster.user, "postgres")
            arguments = (cluster.directory, lock, cluster.user.uid, cluster.user.gid, program)
            subprocess.run(
                # Isolated and without site-packages it starts in 20 ms and stays small.
                [sys.executable, "-I", "-S", supervisor.__file__, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C in our terminal must not reach it.
                cwd="/",
                check=False,  # A supervisor that fails releases its lock, and its log says why.
            )
        finally:
            os.close(log_file)
            os.close(lock)

    def _listens(self) -> bool:
        return bool("".join(supervisor.lock_file(str(self.cluster.data))[5:6]))

    async def _restart_with_tcp(self) -> None:
        self.cluster.configure()
        old = supervisor.postmaster(str(self.cluster.data))
        if old is not None:
            os.kill(old, signal.SIGINT)  # The supervisor starts it again.
        while not self._listens():
            await self.started()
            await asyncio.sleep(_POLL)

    def _set_password(self, password: str) -> None:
        # pg_stat_statements would store the statement with the password.
        statements = (
            "SET pg_stat_statements.track_utility = off;"
            f"ALTER ROLE {SUPERUSER} PASSWORD '{password}';"
        )
        command = [str(binary("psql")), "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet", self.dsn]
        done = subprocess.run(
            command, input=statements, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise EmbeddedPostgresError(f"The password could not be set: {done.stderr.strip()}")


def _cluster(settings: DatabaseSettings) -> Cluster:
    return Cluster(settings.home.absolute() / "postgres")


async def _join(users: int) -> None:
    """Become a user of the server; while a supervisor stops the server, wait for it."""
    while True:
        try:
            fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(_POLL)
        else:
            return


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
