"""Worker process of the sandbox: answers requests over a socket, one after the other, under hard limits.

The pool starts it and may kill it at any time. It exits by itself when its parent is gone, after a
while without requests, and when a request exceeds its processor time, so that none outlives its parent
for long.
"""

import resource
import socket
import sys

import msgspec
import turbohtml

from trapline.extract.files.kinds import Kind
from trapline.extract.files.reader_result import (
    FileTooLarge,
    Limits,
    UnreadableFile,
    UnsupportedFile,
)
from trapline.extract.files.readers import read
from trapline.extract.files.sandbox import protocol
from trapline.extract.html.attributes import read_attributes
from trapline.extract.html.charset import decode

_IDLE_SECONDS = 120.0
_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_SPARE_BYTES = 1 << 20


def serve(connection: socket.socket) -> None:
    """Answer requests until there are no more."""
    while True:
        connection.settimeout(_IDLE_SECONDS)
        try:
            request = protocol.receive(connection, protocol.Request)
            body = protocol.receive_bytes(connection)
        except (OSError, EOFError):
            return
        _limit(request.limits)
        connection.settimeout(None)
        protocol.send_bytes(connection, _encoded_answer(request, body))


def _encoded_answer(request: protocol.Request, body: bytes) -> bytes:
    """Read and encode under the limit: the content may fit into it, and its encoding not."""
    spare: list[bytes] = []
    try:
        spare.append(bytes(_SPARE_BYTES))
        return msgspec.msgpack.encode(_answer(request, body))
    except MemoryError:
        # The error message needs memory as well, and so does raising the limit.
        spare.clear()
        resource.setrlimit(resource.RLIMIT_AS, _UNLIMITED)
        return _failure("it needs more memory than the limit")
    except UnicodeEncodeError:
        return _failure("its metadata has lone surrogates")


def _failure(reason: str) -> bytes:
    return msgspec.msgpack.encode(protocol.Answer(fault=protocol.Fault.UNREADABLE, reason=reason))


def _answer(request: protocol.Request, body: bytes) -> protocol.Answer:
    try:
        if request.page is not None:
            return _page_answer(request.page, body)
        return protocol.Answer(content=read(body, Kind(request.kind), request.limits))
    except UnreadableFile as error:
        return protocol.Answer(fault=_fault(error), reason=str(error))


def _page_answer(page: protocol.PageRequest, body: bytes) -> protocol.Answer:
    if page.attributes:
        tree = turbohtml.parse(decode(body, page.content_type).text)
        return protocol.Answer(attributes=read_attributes(tree, page.attributes))
    # The extractor loads numpy and a model, which files do not need.
    from trapline.extract.page import extract  # noqa: PLC0415

    return protocol.Answer(document=extract(body, page.content_type, page.url, page.options))


def _fault(error: UnreadableFile) -> protocol.Fault:
    if isinstance(error, FileTooLarge):
        return protocol.Fault.TOO_MUCH
    return (
        protocol.Fault.UNSUPPORTED
        if isinstance(error, UnsupportedFile)
        else protocol.Fault.UNREADABLE
    )


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
