"""The process that reads files: one request after the other over a socket, under hard limits.

It is started by `process`, which may kill it at any time. It leaves by itself when its parent is
gone, when it has been idle for a while, or when one request takes more processor time than it
may, so that none outlives its parent for long.
"""

import resource
import socket
import sys

import msgspec

from trapline.extract.documents import wire
from trapline.extract.documents.kinds import Kind
from trapline.extract.documents.readers import read
from trapline.extract.documents.reading import Limits, TooMuch, Unreadable, Unsupported

_IDLE_SECONDS = 120.0
_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_SPARE_BYTES = 1 << 20


def serve(connection: socket.socket) -> None:
    """Answer requests until there are no more."""
    while True:
        connection.settimeout(_IDLE_SECONDS)
        try:
            request = wire.receive(connection, wire.Request)
            body = wire.receive_bytes(connection)
        except (OSError, EOFError):
            return
        _limit(request.limits)
        connection.settimeout(None)
        wire.send_bytes(connection, _encoded_answer(request, body))


def _encoded_answer(request: wire.Request, body: bytes) -> bytes:
    """Read and encode under the limit: the reading may fit into it, and its encoding not."""
    spare: list[bytes] = []
    try:
        spare.append(bytes(_SPARE_BYTES))
        return msgspec.msgpack.encode(_answer(request, body))
    except MemoryError:
        # Saying so needs memory as well, and so does asking for it.
        spare.clear()
        resource.setrlimit(resource.RLIMIT_AS, _UNLIMITED)
        reason = "it needs more memory than the limit"
        return msgspec.msgpack.encode(wire.Answer(fault=wire.Fault.UNREADABLE, reason=reason))


def _answer(request: wire.Request, body: bytes) -> wire.Answer:
    try:
        reading = read(body, Kind(request.kind), request.limits)
    except Unreadable as error:
        return wire.Answer(fault=_fault(error), reason=str(error))
    return wire.Answer(reading=reading)


def _fault(error: Unreadable) -> wire.Fault:
    if isinstance(error, TooMuch):
        return wire.Fault.TOO_MUCH
    return wire.Fault.UNSUPPORTED if isinstance(error, Unsupported) else wire.Fault.UNREADABLE


def _limit(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, resource.RLIM_INFINITY))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + limits.seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        try:
            serve(connection)
        except OSError:
            # The parent is gone: there is nobody to tell.
            return


if __name__ == "__main__":
    main()
