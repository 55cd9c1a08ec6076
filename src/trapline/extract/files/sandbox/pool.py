"""Process pools of the sandbox: workers start on demand, stay for the next request, and can be killed.

Any thread may call `read_in_sandbox` and `extract_in_sandbox`; they block, so an asyncio program calls
them in a thread. Native libraries crash and hang on hostile input: here that costs one small process
and one error.
"""

import atexit
import os
import socket
import subprocess
import sys
from threading import BoundedSemaphore, Lock
from time import monotonic

from trapline.errors import ExitCode, VisitFailed
from trapline.extract.files.kinds import Kind
from trapline.extract.files.reader_result import (
    FileContent,
    FileTooLarge,
    Limits,
    UnreadableFile,
    UnsupportedFile,
)
from trapline.extract.files.sandbox import protocol
from trapline.extract.html.attributes import AttributeValues
from trapline.model import Document, ExtractOptions

MAX_PROCESSES = 2
PAGE_LIMITS = Limits(seconds=20.0)
_MAX_REQUESTS = 200
"""A process is replaced after this many files, so that what a library leaks cannot grow."""


class _Process:
    """One worker and the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "trapline.extract.files.sandbox.worker",
                    str(theirs.fileno()),
                ],
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

    def ask(self, body: bytes, request: protocol.Request) -> protocol.Answer:
        seconds = request.limits.seconds
        deadline = monotonic() + seconds
        self.served += 1
        self._socket.settimeout(seconds)
        protocol.send(self._socket, request)
        protocol.send_bytes(self._socket, body)
        return protocol.receive(self._socket, protocol.Answer, deadline)

    def end(self) -> None:
        self._socket.close()
        self._child.kill()
        self._child.wait()


class Pool:
    """The workers of this process: at most `size` at a time, reused, replaced when they die."""

    def __init__(self, size: int = MAX_PROCESSES) -> None:
        self._slots = BoundedSemaphore(size)
        self._lock = Lock()
        self._idle: list[_Process] = []
        self._owner = os.getpid()

    def read(self, body: bytes, kind: Kind, limits: Limits) -> FileContent:
        """Read a file."""
        return self.ask(body, protocol.Request(kind, limits)).content or FileContent([])

    def ask(self, body: bytes, request: protocol.Request) -> protocol.Answer:
        """Have a worker answer a request; UnreadableFile if it cannot."""
        with self._slots:
            answer = self._ask(body, request)
        if answer.fault is None:
            return answer
        faults = {
            protocol.Fault.TOO_MUCH: FileTooLarge,
            protocol.Fault.UNSUPPORTED: UnsupportedFile,
        }
        raise faults.get(answer.fault, UnreadableFile)(answer.reason)

    def _ask(self, body: bytes, request: protocol.Request) -> protocol.Answer:
        process = self._take()
        try:
            answer = process.ask(body, request)
        except TimeoutError as error:
            process.end()
            raise UnreadableFile(
                f"reading it took more than {request.limits.seconds:g} seconds"
            ) from error
        except (OSError, EOFError) as error:
            process.end()
            raise UnreadableFile("reading it crashed the reader") from error
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
# Of its own: a flood of hostile pages must not delay files.
_page_pool = Pool()
atexit.register(_pool.close)
atexit.register(_page_pool.close)


def read_in_sandbox(body: bytes, kind: Kind, limits: Limits) -> FileContent:
    """Read a file in another process. Raises UnreadableFile, and nothing else, for a bad file."""
    return _pool.read(body, kind, limits)


def extract_in_sandbox(
    body: bytes,
    content_type: str | None,
    url: str,
    options: ExtractOptions,
    limits: Limits = PAGE_LIMITS,
) -> Document:
    """Extract an HTML page in another process; VisitFailed if that takes too long or too much memory."""
    answer = _ask_page_pool(body, protocol.PageRequest(content_type, url, options), limits)
    return answer.document or Document(url)


def attributes_in_sandbox(
    body: bytes,
    content_type: str | None,
    pairs: tuple[tuple[str, str], ...],
    limits: Limits = PAGE_LIMITS,
) -> tuple[AttributeValues, ...]:
    """As `read_attributes`, in another process; VisitFailed as for `extract_in_sandbox`."""
    page = protocol.PageRequest(content_type, "", ExtractOptions(), pairs)
    return _ask_page_pool(body, page, limits).attributes


def _ask_page_pool(body: bytes, page: protocol.PageRequest, limits: Limits) -> protocol.Answer:
    try:
        return _page_pool.ask(body, protocol.Request(Kind.HTML, limits, page))
    except UnreadableFile as error:
        raise VisitFailed(ExitCode.EXTRACTION_FAILED, str(error)) from error
