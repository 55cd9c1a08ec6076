"""The cluster at work: join it, and be sure that it runs while you are there."""

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

from trapline.db.embedded import watcher
from trapline.db.embedded.cluster import DATABASE, SUPERUSER, Cluster, explained, require_owner
from trapline.db.embedded.programs import binary, binary_for
from trapline.errors import EmbeddedPostgresError
from trapline.logs import get_logger
from trapline.settings import Settings

_POLL = 0.02
_SAY_SO_EVERY = 10.0

log = get_logger(__name__)


@contextlib.asynccontextmanager
async def running(settings: Settings) -> AsyncIterator["Server"]:
    """Start the server of this home, or join those who use it; it runs until all have left."""
    server = Server(_cluster(settings))
    with explained(settings.home):
        server.cluster.enter()
        users = os.open(server.cluster.directory / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with explained(settings.home):
            await _join(users)
            await server.started()
        try:
            yield server
        finally:
            # Whoever leaves has done what it came for; the next to come can still put this right.
            with contextlib.suppress(OSError, EmbeddedPostgresError):
                await server.ensure_watched()
    finally:
        os.close(users)


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL that runs at least as long as the `running` that gave it."""

    cluster: Cluster

    @property
    def dsn(self) -> str:
        """The database over its Unix socket, as superuser."""
        host = quote(str(self.cluster.socket_directory()))
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={self.cluster.port}"

    async def tcp_url(self) -> str:
        """Return a URL on 127.0.0.1 with a password; from its first call on the server listens there.

        Listening needs a restart of the server: every open connection is closed once.
        """
        with explained(self.cluster.directory):
            password = self.cluster.password()
            await asyncio.to_thread(self._set_password, password)
            if not self._listens():
                await self._restart_with_tcp()
        return f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{self.cluster.port}/{DATABASE}"

    async def started(self) -> None:
        """Wait until the server takes connections, appointing a watcher if there is none."""
        appointed_at: int | None = None
        say_so = time.monotonic() + _SAY_SO_EVERY
        while True:
            vacancy = _try_lock(self.cluster.directory / "watcher.lock")
            if vacancy is None and self.accepts():
                return
            if vacancy is not None and appointed_at is not None:
                os.close(vacancy)
                raise self.cluster.failure(self.cluster.log_since(appointed_at))
            if vacancy is not None:
                appointed_at = self.cluster.log_size()
                await asyncio.to_thread(self._appoint_watcher, vacancy)
            if time.monotonic() > say_so:
                log.warning("PostgreSQL is still starting", log=str(self.cluster.log_path))
                say_so += _SAY_SO_EVERY
            await asyncio.sleep(_POLL)

    async def ensure_watched(self) -> None:
        """Replace a watcher that was killed, so that the server ends when its users do."""
        if watcher.postmaster(str(self.cluster.data)) is None:
            return
        vacancy = _try_lock(self.cluster.directory / "watcher.lock")
        if vacancy is not None:
            await asyncio.to_thread(self._appoint_watcher, vacancy)

    def accepts(self) -> bool:
        """Say whether the server takes connections now."""
        if not watcher.ready(str(self.cluster.data)):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            path = self.cluster.socket_directory() / f".s.PGSQL.{self.cluster.port}"
            return probe.connect_ex(str(path)) == 0

    def _appoint_watcher(self, vacancy: int) -> None:
        """Hand the lock to a watcher. It starts PostgreSQL, or adopts the one that runs."""
        cluster = self.cluster
        log_file = os.open(cluster.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            cluster.prepare()
            program = binary_for(cluster.owner, "postgres")
            arguments = (cluster.directory, vacancy, cluster.owner.uid, cluster.owner.gid, program)
            subprocess.run(
                # Isolated and without site-packages, it starts in 20 ms and stays small.
                [sys.executable, "-I", "-S", watcher.__file__, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                pass_fds=(vacancy,),
                start_new_session=True,  # Ctrl-C in our terminal is not meant for it.
                cwd="/",
                check=False,  # A watcher that fails gives up its lock, and its log says why.
            )
        finally:
            os.close(log_file)
            os.close(vacancy)

    def _listens(self) -> bool:
        return bool("".join(watcher.lock_file(str(self.cluster.data))[5:6]))

    async def _restart_with_tcp(self) -> None:
        self.cluster.configure()
        old = watcher.postmaster(str(self.cluster.data))
        if old is not None:
            os.kill(old, signal.SIGINT)  # The watcher starts it again.
        while not self._listens():
            await self.started()
            await asyncio.sleep(_POLL)

    def _set_password(self, password: str) -> None:
        # Utility statements would be kept word for word by pg_stat_statements.
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


@dataclass(frozen=True, slots=True)
class Status:
    """What can be said of a home's server without starting it."""

    directory: Path
    initialised: bool = False
    running: bool = False
    watched: bool = False
    problem: str | None = None


def status(settings: Settings) -> Status:
    """Look at the server of this home; nothing is started, made or changed."""
    cluster = _cluster(settings)
    try:
        with explained(settings.home):
            return _look(cluster)
    except EmbeddedPostgresError as error:
        return Status(cluster.directory, problem=error.message)


def _look(cluster: Cluster) -> Status:
    if cluster.directory.exists():
        require_owner(cluster.directory, os.geteuid())
    if not cluster.exists:
        return Status(cluster.directory)
    cluster.check()
    return Status(
        cluster.directory,
        initialised=True,
        running=watcher.postmaster(str(cluster.data)) is not None,
        watched=_is_locked(cluster.directory / "watcher.lock"),
    )


def _cluster(settings: Settings) -> Cluster:
    return Cluster(settings.home.absolute() / "postgres")


async def _join(users: int) -> None:
    """Become one of the server's users; while a watcher stops the server, wait for it to finish."""
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


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    descriptor = _try_lock(path)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None
