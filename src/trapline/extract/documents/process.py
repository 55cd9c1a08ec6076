"""Reads files in processes that can be killed: started when first needed, kept warm, few.

Any thread may call `read_apart`; it blocks, so an asyncio program calls it in a thread. Native
libraries crash and hang on hostile files: here that costs one small process and one error.
"""

import atexit
import os
import socket
import subprocess
import sys
from threading import BoundedSemaphore, Lock
from time import monotonic

from trapline.extract.documents import wire
from trapline.extract.documents.kinds import Kind
from trapline.extract.documents.reading import Limits, Reading, TooMuch, Unreadable, Unsupported

MAX_PROCESSES = 2
_MAX_REQUESTS = 200
"""A process is replaced after this many files, so that what a library leaks cannot grow."""


class _Process:
    """One worker and the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "trapline.extract.documents.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._socket = ours
        self.served = 0

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_usable(self) -> bool:
        return self.served < _MAX_REQUESTS and self._child.poll() is None

    def ask(self, body: bytes, kind: Kind, limits: Limits) -> wire.Answer:
        deadline = monotonic() + limits.seconds
        self.served += 1
        self._socket.settimeout(limits.seconds)
        wire.send(self._socket, wire.Request(kind, limits))
        wire.send_bytes(self._socket, body)
        return wire.receive(self._socket, wire.Answer, deadline)

    def end(self) -> None:
        self._socket.close()
        self._child.kill()
        self._child.wait()


class Pool:
    """The workers of this process: at most `size` at a time, reused, replaced when they die."""

    def __init__(self, size: int = MAX_PROCESSES) -> None:
        self._places = BoundedSemaphore(size)
        self._lock = Lock()
        self._idle: list[_Process] = []
        self._owner = os.getpid()

    def read(self, body: bytes, kind: Kind, limits: Limits) -> Reading:
        with self._places:
            answer = self._ask(body, kind, limits)
        if answer.reading is not None:
            return answer.reading
        faults = {wire.Fault.TOO_MUCH: TooMuch, wire.Fault.UNSUPPORTED: Unsupported}
        raise faults.get(answer.fault or wire.Fault.UNREADABLE, Unreadable)(answer.reason)

    def _ask(self, body: bytes, kind: Kind, limits: Limits) -> wire.Answer:
        process = self._take()
        try:
            answer = process.ask(body, kind, limits)
        except TimeoutError as error:
            process.end()
            raise Unreadable(f"reading it took more than {limits.seconds:g} seconds") from error
        except (OSError, EOFError) as error:
            process.end()
            raise Unreadable("reading it crashed the reader") from error
        except BaseException:
            process.end()
            raise
        self._give_back(process)
        return answer

    def _take(self) -> _Process:
        with self._lock:
            if self._owner != os.getpid():
                # After a fork these belong to the parent.
                self._idle, self._owner = [], os.getpid()
            while self._idle:
                process = self._idle.pop()
                if process.is_usable:
                    return process
                process.end()
        return _Process()

    def _give_back(self, process: _Process) -> None:
        with self._lock:
            self._idle.append(process)

    def close(self) -> None:
        """End the idle workers; the next file starts a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._owner == os.getpid():
            for process in idle:
                process.end()


_pool = Pool()
atexit.register(_pool.close)


def read_apart(body: bytes, kind: Kind, limits: Limits) -> Reading:
    """Read a file in another process. Raises Unreadable, and nothing else, for a bad file."""
    return _pool.read(body, kind, limits)
