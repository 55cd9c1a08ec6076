"""One request and its answer on one connection, within its bounds.

It stands directly on aiohttp's connections and parser, without its session and response: these
have their own redirects, cookies, timeouts and a silent second request after a reset, all of which
are decided elsewhere here, and cost as much again.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from ssl import SSLContext
from time import perf_counter

import aiohttp
from aiohttp import ClientTimeout, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.hdrs import HOST
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.clock import Clock
from trapline.fetch.connector import GuardedConnector, Opening, TimedRequest, head_of
from trapline.fetch.decode import codings
from trapline.fetch.target import Target
from trapline.model import FetchLimits, RequestTrace

_UNTIMED = ClientTimeout(total=None, sock_connect=None)
_READ_BUFFER = 2**16
_MOST_STATUS_LINE = 8190
_DRAIN_BYTES = 2**16
_SWITCHING = HTTPStatus.SWITCHING_PROTOCOLS
_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


class Exchange:
    """Filled while it runs, so that a trace can be made of it however it ends."""

    __slots__ = (
        "_connection",
        "_content",
        "body",
        "first_byte",
        "headers",
        "limits",
        "opening",
        "raw_headers",
        "remote_address",
        "sent_at",
        "started",
        "status",
        "target",
        "wire_bytes",
    )

    def __init__(self, target: Target, limits: FetchLimits) -> None:
        self.target = target
        self.limits = limits
        self.opening = Opening()
        self.sent_at = datetime.now(UTC)
        self.started = perf_counter()
        self._connection: Connection
        self._content: StreamReader
        self.first_byte: float | None = None
        self.status = 0
        self.headers: CIMultiDictProxy[str] = _NO_HEADERS
        self.raw_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.body = b""
        self.wire_bytes = 0
        self.remote_address: str | None = None

    async def ask(
        self,
        connector: GuardedConnector,
        headers: Mapping[str, str],
        clock: Clock,
        *,
        proxy: URL | None,
        tls: SSLContext | bool,
    ) -> None:
        """Send the request and wait for the answer's headers."""
        while True:
            try:
                connection, head = await self._connect(connector, headers, proxy=proxy, tls=tls)
                return await self._ask(connection, head, clock)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # The server may close an idle connection just when we take it from the pool;
                # each of these is used up by its try, so the last one is new.
                if self.opening.begun is not None:
                    raise
                self.opening = Opening()

    async def _connect(
        self,
        connector: GuardedConnector,
        headers: Mapping[str, str],
        *,
        proxy: URL | None,
        tls: SSLContext | bool,
    ) -> tuple[Connection, bytes]:
        """Return a connection, and what is sent on it."""
        goal = self.target
        head = head_of(goal.path, {HOST: goal.origin.authority, **headers})
        idle = None if proxy is not None else await connector.idle(goal, tls)
        if idle is not None:
            return idle, head
        request = TimedRequest.to(goal, headers, self.opening, proxy=proxy, tls=tls)
        connection = await connector.connect(request, [], _UNTIMED)
        if proxy is not None and not goal.secure:
            # A proxy that does not merely pass an encrypted stream on needs the whole URL, and what
            # the pool has added for it.
            head = head_of(goal.text, request.headers)
        return connection, head

    async def _ask(self, connection: Connection, head: bytes, clock: Clock) -> None:
        try:
            clock.await_first_byte()
            protocol = self._begin(connection, head)
            message, content = await protocol.read()
            while message.code < HTTPStatus.OK and message.code != _SWITCHING:
                message, content = await protocol.read()
        except BaseException:
            connection.close()
            raise
        clock.await_end()
        self.first_byte = perf_counter()
        self.status = message.code
        self.headers = message.headers
        self.raw_headers = message.raw_headers
        self._connection, self._content = connection, content

    def _begin(self, connection: Connection, head: bytes) -> ResponseHandler:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None or transport.is_closing():
            raise aiohttp.ServerDisconnectedError
        peer = transport.get_extra_info("peername")
        self.remote_address = str(peer[0]) if peer else None
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=_READ_BUFFER,
            max_line_size=_MOST_STATUS_LINE,
            max_field_size=self.limits.header_bytes,
            max_headers=self.limits.headers,
        )
        transport.write(head)
        return protocol

    async def read(self) -> None:
        """Take the whole body, decompressed, or fail and close the connection."""
        try:
            self._check_head()
            body = await self._body()
            self._check_end()
        except BaseException:
            self._connection.close()
            raise
        self._connection.release()
        self.body = body

    async def drain(self) -> None:
        """Read past a body that no one needs, if it is short, to keep the connection."""
        try:
            while self.wire_bytes <= _DRAIN_BYTES:
                data = await self._content.readany()
                if not data:
                    self._connection.release()
                    return
                self.wire_bytes += len(data)
        except aiohttp.ClientPayloadError:
            # It was cut short, which does not matter here; but the connection is of no more use.
            pass
        except BaseException:
            self._connection.close()
            raise
        self._connection.close()

    def trace(self, code: ExitCode, *, robots_approved: bool) -> RequestTrace:
        opening, started = self.opening, self.started
        return RequestTrace(
            self.target.text,
            self.sent_at,
            code,
            robots_approved,
            (perf_counter() - started) * 1000,
            _span(opening.begun, opening.resolved),
            _span(opening.resolved, opening.connected),
            _span(opening.connected, opening.ready) if self.target.secure else None,
            _span(started, self.first_byte),
            self.status or None,
            http.text(self.headers, "ETag"),
            http.http_date(self.headers.get("Last-Modified")),
            self.remote_address,
        )

    def _check_head(self) -> None:
        if http.size(self.raw_headers) > self.limits.header_bytes:
            raise VisitFailed(ExitCode.HEADERS_TOO_LARGE)
        announced = self.headers.get("Content-Length")
        # The parser has made sure that these are digits.
        if announced is not None and int(announced) > self.limits.body_bytes:
            raise VisitFailed(ExitCode.BODY_TOO_LARGE, f"{int(announced):,} bytes announced")

    def _check_end(self) -> None:
        """Fail if a body that ends with its connection ended by a reset.

        The client takes any end for the end of such a body.
        """
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            return
        protocol = self._connection.protocol
        if protocol is not None and isinstance(protocol.exception(), aiohttp.ClientOSError):
            raise VisitFailed(ExitCode.TRUNCATED, "the connection was reset")

    async def _body(self) -> bytes:
        decoder = codings(self.headers.get("Content-Encoding"), self.limits.decompressed_bytes)
        limit = self.limits.body_bytes
        parts: list[bytes] = []
        while data := await self._content.readany():
            self.wire_bytes += len(data)
            if self.wire_bytes > limit:
                raise VisitFailed(ExitCode.BODY_TOO_LARGE, f"over {limit:,} bytes")
            parts.append(data if decoder is None else decoder.decode(data))
        if decoder is not None:
            decoder.finish()
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _span(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else (end - begin) * 1000
