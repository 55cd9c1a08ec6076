"""Protocol between `pool` and `worker`: frames of a length and that many bytes."""

import socket
import struct
from enum import StrEnum
from time import monotonic
from typing import TypeVar

import msgspec

from trapline.extract.files.reader_result import FileContent, Limits
from trapline.extract.html.attributes import AttributeValues
from trapline.model import Document, ExtractOptions

_LENGTH = struct.Struct(">Q")
_CHUNK = 1 << 20
MAX_FRAME = 1 << 31
T = TypeVar("T")


class Fault(StrEnum):
    """How reading a file can fail."""

    UNREADABLE = "unreadable"
    TOO_MUCH = "too much"
    UNSUPPORTED = "unsupported"


class PageRequest(msgspec.Struct):
    """How to extract an HTML page."""

    content_type: str | None
    url: str
    options: ExtractOptions
    attributes: tuple[tuple[str, str], ...] = ()
    """Pairs of a selector and an attribute to read, instead of a document."""


class Request(msgspec.Struct):
    """A file to read, or a page to extract; its bytes follow in a frame of their own."""

    kind: str
    limits: Limits
    page: PageRequest | None = None


class Answer(msgspec.Struct):
    """The content of a file or the document of a page, or why there is none."""

    content: FileContent | None = None
    document: Document | None = None
    attributes: tuple[AttributeValues, ...] = ()
    fault: Fault | None = None
    reason: str = ""


def send(connection: socket.socket, message: object) -> None:
    send_bytes(connection, msgspec.msgpack.encode(message))


def send_bytes(connection: socket.socket, content: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(content)))
    connection.sendall(content)


def receive(connection: socket.socket, kind: type[T], deadline: float | None = None) -> T:
    return msgspec.msgpack.decode(receive_bytes(connection, deadline), type=kind)


def receive_bytes(connection: socket.socket, deadline: float | None = None) -> bytes:
    """One frame. With a deadline (on the monotonic clock), all of it has come by then."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > MAX_FRAME:
        raise EOFError("a frame of impossible length")
    return _exactly(connection, length, deadline)


def _exactly(connection: socket.socket, length: int, deadline: float | None) -> bytes:
    content = bytearray()
    while len(content) < length:
        if deadline is not None:
            connection.settimeout(max(deadline - monotonic(), 0.001))
        part = connection.recv(min(_CHUNK, length - len(content)))
        if not part:
            raise EOFError("the other side is gone")
        content += part
    return bytes(content)
