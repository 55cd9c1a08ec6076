"""The watcher: keeps PostgreSQL running while anybody uses it, and stops it when nobody does.

It is a program of its own, `python -I -S watcher.py DIRECTORY LOCK UID GID POSTGRES`, because it
must outlive the process that started it. It imports almost nothing: it stays in memory for as long
as the server does. LOCK is the descriptor of `watcher.lock`, already locked; holding it says that a
watcher is there. Every user of the server holds `users.lock` shared. The watcher gets it exclusively
once the last user is gone, however that came about, and keeps it until PostgreSQL has stopped.
"""

# pathlib, with all that it imports, would take a third more memory.
# ruff: noqa: PTH118, PTH121, PTH123, PTH108, PTH208

import fcntl
import os
import signal
import sys
import time

POLL = 0.5
RETRY = 1.0
# How long a fast and then an immediate shutdown may take; with the pauses, well under ten seconds.
PATIENCE = ((signal.SIGINT, 4.0), (signal.SIGQUIT, 2.0))
LOG_LIMIT = 16 * 2**20
# Found by inode, not by name: a server user needs no right to enter the directories above.
HERE = "/proc/self/cwd"


def belongs(pid: int | str, data: str) -> bool:
    """Say whether a process works in the data directory: a recycled process id does not."""
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
    """Return the id of the server that runs on the data directory."""
    pid = next(iter(lock_file(data)), "")
    return int(pid) if pid.isdecimal() and pid in family(data) else None


def ready(data: str) -> bool:
    return lock_file(data)[7:8] == ["ready"]


def family(data: str) -> list[str]:
    """Return every PostgreSQL process of the data directory, also where the postmaster is dead."""
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
    """Start the server. Nobody else can be doing that: we hold the watcher's lock."""
    _kill_family()
    for name in os.listdir("."):
        # Left by a server that was killed. Its process id may by now be somebody else's,
        # and PostgreSQL would then refuse to start.
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
    for request, patience in PATIENCE:
        deadline = time.monotonic() + patience
        _signal(pid, request)
        while belongs(pid, ".") and time.monotonic() < deadline:
            time.sleep(0.02)
    _kill_family()


def _kill_family() -> None:
    """End what outlived its postmaster; as after any crash, the next start replays the log."""
    while pids := family("."):
        for pid in pids:
            _signal(int(pid), signal.SIGKILL)
        time.sleep(0.02)


def _signal(pid: int, request: signal.Signals) -> None:
    try:
        if belongs(pid, "."):
            os.kill(pid, request)
    except ProcessLookupError:
        pass  # It went by itself.


def _watch(users: int, uid: int, gid: int, program: str) -> None:
    adopted = postmaster(".")
    pid, proven = adopted or _start(uid, gid, program), adopted is not None
    while not _nobody_left(users):
        proven = proven or ready(".")
        if not belongs(pid, "."):
            if not proven:
                return  # It never came up: whoever appointed us reads the log and says why.
            pid = _start(uid, gid, program)
            time.sleep(RETRY)
        if os.fstat(2).st_size > LOG_LIMIT:
            os.ftruncate(2, 0)
        time.sleep(POLL)
    _stop(pid)


def main(directory: str, lock: str, uid: str, gid: str, program: str) -> None:
    if os.fork():
        os._exit(0)  # An orphan: whoever appointed us need not wait for our end.
    os.set_inheritable(int(lock), False)  # noqa: FBT003 (PostgreSQL must not hold it)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(ignored, signal.SIG_IGN)
    users = os.open(f"{directory}/users.lock", os.O_RDWR)
    os.chdir(f"{directory}/data")
    _watch(users, int(uid), int(gid), program)


if __name__ == "__main__":
    main(*sys.argv[1:])
