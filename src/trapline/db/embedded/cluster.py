"""The cluster's directory: initdb, configuration, ownership and the errors that starting can have.

    <home>/postgres/data          PostgreSQL's data directory, with the socket inside
    <home>/postgres/users.lock    held shared by every process that uses the server
    <home>/postgres/watcher.lock  held by the supervisor
    <home>/postgres/server.log    output of the server and of the supervisor
    <home>/postgres/port          chosen once, so that URLs stay valid
    <home>/postgres/password      for TCP; the server listens on TCP only if this file exists

Data of an earlier run is never deleted: if it cannot be used, the error says what to do.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trapline.db.embedded import supervisor
from trapline.db.embedded.binaries import binary_for
from trapline.db.embedded.os_user import ServerUser, user_name
from trapline.errors import EmbeddedPostgresError
from trapline.logs import get_logger

MAJOR_VERSION = 18
DATABASE = SUPERUSER = "trapline"

_SOCKET_PATH_LIMIT = 107
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_LEAST_BUFFERS_MB, _MOST_BUFFERS_MB = 128, 1024
_FATAL_LINE = re.compile(r"(?:FATAL|PANIC|error): +(.+)")
_INITDB = (
    *("-D", supervisor.HERE, "--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8"),
    # The same order of strings on every machine and after every upgrade of its C library.
    # pg_trgm alone still asks that library what a letter is, hence lc-ctype.
    *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
    *("--locale", "C", "--lc-ctype", "C.UTF-8"),
)

log = get_logger(__name__)


@dataclass(frozen=True)
class Cluster:
    """The directory `<home>/postgres`."""

    directory: Path

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log_path(self) -> Path:
        return self.directory / "server.log"

    @property
    def password_path(self) -> Path:
        return self.directory / "password"

    @cached_property
    def user(self) -> ServerUser:
        return ServerUser.of(self.data)

    @property
    def port(self) -> int:
        return int((self.directory / "port").read_text())

    @property
    def exists(self) -> bool:
        return self.data.is_dir() and any(self.data.iterdir())

    def ensure_directory(self) -> None:
        """Create the directory, or check that it belongs to this user."""
        if not Path(supervisor.HERE).exists():
            raise EmbeddedPostgresError(
                "The embedded PostgreSQL needs Linux: set DATABASE_URL to a PostgreSQL of your own."
            )
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_owner(self.directory, os.geteuid())

    def prepare(self) -> None:
        """Create the data directory or check the existing one, then configure it."""
        if self.exists:
            self.check()
        else:
            self._initialise()
        if supervisor.postmaster(str(self.data)) is None:
            self.configure()

    def check(self) -> None:
        """Raise an error that says why the data directory cannot be used, and what to do."""
        require_owner(self.data, self.user.uid)
        version = self.data / "PG_VERSION"
        if not version.exists() or not (self.data / "global" / "pg_control").exists():
            raise EmbeddedPostgresError(
                f"{self.data} is not a complete PostgreSQL data directory: an initdb was interrupted, "
                "or files are missing. Move it away, or put a backup in its place."
            )
        if (major := version.read_text().strip()) != str(MAJOR_VERSION):
            raise EmbeddedPostgresError(
                f"{self.data} was made by PostgreSQL {major}, and this Trapline brings "
                f"{MAJOR_VERSION}. With the Trapline that made it run `trapline db backup`, then move "
                "the directory away and run `trapline db restore`; or choose another TRAPLINE_HOME."
            )

    def configure(self) -> None:
        """Write postgresql.conf and pg_hba.conf for the next start."""
        tcp = self.password_path.exists()
        port_path = self.directory / "port"
        if not port_path.exists() or (tcp and not _is_free(self.port)):
            _write_atomically(port_path, f"{_free_port()}\n")
        templates = Path(__file__).parent
        address = "127.0.0.1" if tcp else ""
        settings = (
            f"\nport = {self.port}\nlisten_addresses = '{address}'\n"
            f"shared_buffers = {buffers_mb(_memory())}MB\n"
        )
        for name, more in (("postgresql.conf", settings), ("pg_hba.conf", "")):
            _write_atomically(self.data / name, (templates / name).read_text() + more, self.user)

    def socket_directory(self) -> Path:
        """Return a path of the data directory that fits into a socket address."""
        if len(os.fsencode(self.data / f".s.PGSQL.{self.port}")) <= _SOCKET_PATH_LIMIT:
            return self.data
        digest = hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        short = Path(f"/tmp/trapline-{os.geteuid()}-{digest}")  # noqa: S108 — short, and checked
        with contextlib.suppress(FileExistsError):
            short.symlink_to(self.data)
        if short.lstat().st_uid != os.geteuid() or not short.samefile(self.data):
            raise EmbeddedPostgresError(
                f"{short} should lead to {self.data} and does not: remove it, "
                "or choose a TRAPLINE_HOME with a shorter path."
            )
        return short

    def password(self) -> str:
        """Return the password for TCP; the first call creates it."""
        if not self.password_path.exists():
            _write_atomically(self.password_path, secrets.token_urlsafe(24))
        return self.password_path.read_text().strip()

    def log_size(self) -> int:
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    def log_since(self, position: int) -> str:
        with self.log_path.open(encoding="utf-8", errors="replace") as file:
            file.seek(position)
            return file.read()

    def _initialise(self) -> None:
        """Create the cluster under a temporary name, so that `data` is always complete."""
        for left in self.directory.glob("data.unfinished-*"):
            log.warning(
                "an earlier set-up was interrupted; its files can be removed", path=str(left)
            )
        fresh = Path(tempfile.mkdtemp(prefix="data.unfinished-", dir=self.directory))
        os.chown(fresh, self.user.uid, self.user.gid)
        try:
            self._run(fresh, "initdb", *_INITDB)
            create = f"CREATE DATABASE {DATABASE};\n"
            self._run(
                fresh, "postgres", "--single", "-D", supervisor.HERE, "postgres", stdin=create
            )
        except EmbeddedPostgresError:
            # Just created and never used; kept, it would fill a full disk further.
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        fresh.rename(self.data)
        _sync(self.directory)

    def _run(self, cwd: Path, program: str, *arguments: str, stdin: str = "") -> None:
        """Run a program as the server's user, in its own session, out of reach of Ctrl-C."""
        done = subprocess.run(
            [binary_for(self.user, program), *arguments],
            cwd=cwd,
            input=stdin,
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            umask=0o077,
            start_new_session=True,
            check=False,
            **self.user.subprocess_arguments(),
        )
        if done.returncode != 0 or "ERROR:" in done.stderr:
            raise self.failure(done.stderr)

    def failure(self, output: str) -> EmbeddedPostgresError:
        """Turn PostgreSQL's output into an error that says what to do."""
        if any(os.strerror(code) in output for code in _DISK_FULL):
            return _disk_full_error(self.directory)
        fatal = _FATAL_LINE.search(output)
        reason = (
            fatal[1] if fatal else "".join(output.splitlines()[-1:]) or "PostgreSQL gave no reason"
        )
        return EmbeddedPostgresError(
            f"PostgreSQL did not start: {reason.replace(supervisor.HERE, str(self.data)).rstrip('.')}. "
            f"Its log is {self.log_path}."
        )


@contextlib.contextmanager
def file_errors_explained(home: Path) -> Iterator[None]:
    """Turn errors of the file system into ones that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise _disk_full_error(home) from error
        raise EmbeddedPostgresError(
            f"{user_name(os.geteuid())} cannot use {error.filename or home} "
            f"({error.strerror}): correct that, or choose another directory with TRAPLINE_HOME."
        ) from error


def _disk_full_error(path: Path) -> EmbeddedPostgresError:
    return EmbeddedPostgresError(
        f"The disk that holds {path} is full: make room and start again. "
        "Everything that was committed is still there."
    )


def require_owner(path: Path, uid: int) -> None:
    found = path.stat().st_uid
    if found != uid:
        raise EmbeddedPostgresError(
            f"{path} belongs to {user_name(found)} and would have to belong to {user_name(uid)}: "
            f"run Trapline as the user who made it, or `chown -R {uid} {path}`, "
            "or choose another TRAPLINE_HOME."
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _memory() -> int:
    """Return the bytes of memory of this machine or container."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def buffers_mb(memory: int) -> int:
    """Return shared_buffers: a sixteenth of the memory, within bounds that fit a million vectors."""
    return min(max(memory // 16 // 2**20, _LEAST_BUFFERS_MB), _MOST_BUFFERS_MB)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_atomically(path: Path, text: str, owner: ServerUser | None = None) -> None:
    """Write a file atomically, readable by its owner only."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if owner is not None:
            os.fchown(descriptor, owner.uid, owner.gid)
    new.replace(path)


def _sync(directory: Path) -> None:
    """Make a rename survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
