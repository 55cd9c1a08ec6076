"""The supervisor: keeps PostgreSQL running while any process uses it, and stops it after the last.

It is a program of its own, `python -I -S supervisor.py DIRECTORY LOCK UID GID POSTGRES`, because it
must outlive the process that started it. It imports almost nothing, because it stays in memory as
long as the server. LOCK is the descriptor of `watcher.lock`, already locked; whoever holds it is the
supervisor. Every user of the server holds `users.lock` shared. The supervisor gets it exclusively
once the last user is gone, however that happened, and holds it until PostgreSQL has stopped.
"""

# pathlib and its imports would take a third more memory.
# ruff: noqa: PTH118, PTH121, PTH123, PTH108, PTH208

import fcntl
import os
import signal
import sys
import time

POLL = 0.5
RETRY = 1.0
# Seconds for a fast and then for an immediate shutdown; with the pauses, well under ten.
SHUTDOWN_STEPS = ((signal.SIGINT, 4.0), (signal.SIGQUIT, 2.0))
LOG_LIMIT = 16 * 2**20
# By inode, not by name: the server's user needs no access to the parent directories.
HERE = "/proc/self/cwd"


def belongs(pid: int | str, data: str) -> bool:
    """Tell whether a process works in the data directory; a recycled process id does not."""
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data)
    except OSError:
        return False


def lock_file(data: str) -> list[str]:
    """Return the lines of postmaster.pid (0: process id, 3: port, 5: address, 7: status)."""
    try:
        with open(os.path.join(data, "postmaster.pid"), encoding="utf-8") as file:
            return [line.strip() for line in file]
    except OSError:
        return []


def postmaster(data: str) -> int | None:
    """Return the process id of the server of the data directory."""
    pid = next(iter(lock_file(data)), "")
    return int(pid) if pid.isdecimal() and pid in server_processes(data) else None


def ready(data: str) -> bool:
    return lock_file(data)[7:8] == ["ready"]


def server_processes(data: str) -> list[str]:
    """Return the PostgreSQL processes of the data directory, also without a live postmaster."""
    return [pid for pid in os.listdir("/proc") if belongs(pid, data) and _name(pid) == "postgres"]


def _name(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _nobody_left(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start(uid: int, gid: int, program: str) -> int:
    """Start the server. No other process can do so: we hold the supervisor's lock."""
    _kill_server_processes()
    for name in os.listdir("."):
        # Left by a killed server. PostgreSQL refuses to start if another process has its id by now.
        if name == "postmaster.pid" or name.startswith(".s.PGSQL."):
            os.unlink(name)
    return os.fork() or _become_server(uid, gid, program)


def _become_server(uid: int, gid: int, program: str) -> int:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        os.umask(0o077)
        os.execve(program, [program, "-D", HERE], {"PATH": "/usr/bin:/bin"})
    except OSError as error:
        os.write(2, f"FATAL:  {program}: {error.strerror}\n".encode())
    os._exit(1)


def _stop(pid: int) -> None:
    for request, seconds in SHUTDOWN_STEPS:
        deadline = time.monotonic() + seconds
        _signal(pid, request)
        while belongs(pid, ".") and time.monotonic() < deadline:
            time.sleep(0.02)
    _kill_server_processes()


def _kill_server_processes() -> None:
    """Kill processes that outlived their postmaster; the next start replays the log."""
    while pids := server_processes("."):
        for pid in pids:
            _signal(int(pid), signal.SIGKILL)
        time.sleep(0.02)


def _signal(pid: int, request: signal.Signals) -> None:
    try:
        if belongs(pid, "."):
            os.kill(pid, request)
    except ProcessLookupError:
        pass  # It ended by itself.


def _watch(users: int, uid: int, gid: int, program: str) -> None:
    adopted = postmaster(".")
    pid, was_ready = adopted or _start(uid, gid, program), adopted is not None
    while not _nobody_left(users):
        was_ready = was_ready or ready(".")
        if not belongs(pid, "."):
            if not was_ready:
                return  # It never came up: our parent reads the log and reports why.
            pid = _start(uid, gid, program)
            time.sleep(RETRY)
        if os.fstat(2).st_size > LOG_LIMIT:
            os.ftruncate(2, 0)
        time.sleep(POLL)
    _stop(pid)


def main(directory: str, lock: str, uid: str, gid: str, program: str) -> None:
    if os.fork():
        os._exit(0)  # As an orphan, so that our parent need not wait for our end.
    os.set_inheritable(int(lock), False)  # noqa: FBT003 (PostgreSQL must not hold it)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(ignored, signal.SIG_IGN)
    users = os.open(f"{directory}/users.lock", os.O_RDWR)
    os.chdir(f"{directory}/data")
    _watch(users, int(uid), int(gid), program)


if __name__ == "__main__":
    main(*sys.argv[1:])
