"""Streaming parser of multipart/form-data: part by part, none of them whole in memory."""

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from trapline.errors import InvalidInput

_MOST_HEADER_BYTES: Final = 16 * 1024


@dataclass(slots=True)
class Part:
    """One part; its bytes can be read until the next part begins."""

    name: str
    filename: str | None
    content_type: str | None
    _stream: "_Stream"

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the remaining bytes of the part."""
        async for piece in self._stream.pieces():
            yield piece

    async def text(self, most: int) -> str:
        """Return the part as text; refuse one of more than `most` bytes."""
        content = b""
        async for piece in self.pieces():
            content += piece
            if len(content) > most:
                raise InvalidInput(f"The field {self.name!r} is longer than {most} bytes.")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"The field {self.name!r} is not UTF-8.") from None


async def parts(request: Request) -> AsyncIterator[Part]:
    """Yield the parts of a request; bytes that the caller does not read are skipped."""
    stream = _Stream(request)
    while (headers := await stream.next_part()) is not None:
        yield _part(headers, stream)


def _part(headers: dict[str, str], stream: "_Stream") -> Part:
    kind, options = parse_options_header(headers.get("content-disposition"))
    name = options.get(b"name")
    if kind != b"form-data" or name is None:
        raise InvalidInput("A part of the form has no name.")
    filename = options.get(b"filename")
    return Part(
        name.decode("utf-8", "replace"),
        None if filename is None else filename.decode("utf-8", "replace"),
        headers.get("content-type"),
        stream,
    )


# The parser's events, in order: the headers of a part, pieces of it, its end.
_Event = dict[str, str] | bytes | None


@dataclass(slots=True)
class _Stream:
    """Feeds the parser only as far as its events are read."""

    request: Request
    _chunks: AsyncIterator[bytes] = field(init=False)
    _parser: MultipartParser = field(init=False)
    _events: deque[_Event] = field(default_factory=deque)
    _in_part: bool = False
    _headers: dict[str, str] = field(default_factory=dict)
    _name: bytes = b""
    _value: bytes = b""
    _header_bytes: int = 0
    _over: bool = False

    def __post_init__(self) -> None:
        kind, options = parse_options_header(self.request.headers.get("content-type"))
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidInput("Send files as multipart/form-data.")
        calls: dict[str, Any] = {
            "on_part_begin": self._begin,
            "on_part_data": lambda data, start, end: self._events.append(bytes(data[start:end])),
            "on_part_end": lambda: self._events.append(None),
            "on_header_field": self._field,
            "on_header_value": self._more,
            "on_header_end": self._header,
            "on_headers_finished": lambda: self._events.append(self._headers),
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(boundary, calls)  # type: ignore[arg-type]
        except FormParserError as error:
            raise InvalidInput(f"The form cannot be read: {error}") from None
        self._chunks = self.request.stream()

    async def next_part(self) -> dict[str, str] | None:
        """Return the headers of the next part; None after the last."""
        async for _ in self.pieces():
            pass
        event = await self._next()
        self._in_part = isinstance(event, dict)
        return event if isinstance(event, dict) else None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the remaining bytes of this part."""
        while self._in_part:
            event = await self._next()
            if isinstance(event, bytes):
                yield event
            else:
                self._in_part = False

    async def _next(self) -> _Event:
        while not self._events:
            if self._over:
                return None
            await self._feed()
        return self._events.popleft()

    async def _feed(self) -> None:
        async for chunk in self._chunks:
            if not chunk:
                continue
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise InvalidInput(f"The form cannot be read: {error}") from None
            return
        if not self._over:
            raise InvalidInput("The form ends before its last part does.")

    def _begin(self) -> None:
        self._headers, self._name, self._value, self._header_bytes = {}, b"", b"", 0

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._name += self._bounded(data[start:end])

    def _more(self, data: bytes, start: int, end: int) -> None:
        self._value += self._bounded(data[start:end])

    def _bounded(self, piece: bytes) -> bytes:
        self._header_bytes += len(piece)
        if self._header_bytes > _MOST_HEADER_BYTES:
            raise InvalidInput("The headers of a part are too long.")
        return piece

    def _header(self) -> None:
        # Latin-1 keeps every byte; parameters are decoded as UTF-8 once they are split.
        name = self._name.decode("latin-1").lower()
        self._headers[name] = self._value.decode("latin-1")
        self._name = self._value = b""

    def _end(self) -> None:
        self._over = True
