"""HTTP exchange: one request and its response on one connection, within its limits.

It uses aiohttp's connections and parser without its session and response. Those have redirects,
cookies, time-outs and a silent second request of their own, which other modules here decide, and
they double the cost.
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
from aiohttp.http_parser import RawResponseMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.connector import (
    ConnectionRequest,
    ConnectionTimings,
    GuardedConnector,
    request_head,
)
from trapline.fetch.content_coding import decoder_for
from trapline.fetch.target import Target
from trapline.fetch.timeouts import Deadline
from trapline.model import FetchLimits, RequestTrace

_UNTIMED = ClientTimeout(total=None, sock_connect=None)
_READ_BUFFER = 2**16
_MOST_STATUS_LINE = 8190
_DRAIN_BYTES = 2**16
_SWITCHING = HTTPStatus.SWITCHING_PROTOCOLS
_MOST_INTERIM = 16
_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


class Exchange:
    """Filled while it runs, so that it has a trace however it ends."""

    __slots__ = (
        "_connection",
        "_content",
        "body",
        "first_byte",
        "headers",
        "limits",
        "raw_headers",
        "remote_address",
        "sent_at",
        "started",
        "status",
        "target",
        "timings",
        "wire_bytes",
    )

    def __init__(self, target: Target, limits: FetchLimits) -> None:
        self.target = target
        self.limits = limits
        self.timings = ConnectionTimings()
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

    async def send(
        self,
        connector: GuardedConnector,
        headers: Mapping[str, str],
        deadline: Deadline,
        *,
        proxy: URL | None,
        tls: SSLContext | bool,
    ) -> None:
        """Send the request and wait for the response's headers."""
        while True:
            try:
                connection, head = await self._connect(connector, headers, proxy=proxy, tls=tls)
                return await self._send(connection, head, deadline)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # The server may close an idle connection while it is taken from the pool. Each attempt
                # uses one up, so the last connection is new.
                if self.timings.begun is not None:
                    raise
                self.timings = ConnectionTimings()

    async def _connect(
        self,
        connector: GuardedConnector,
        headers: Mapping[str, str],
        *,
        proxy: URL | None,
        tls: SSLContext | bool,
    ) -> tuple[Connection, bytes]:
        """Return a connection, and the request head for it."""
        target = self.target
        head = request_head(target.path, {HOST: target.origin.authority, **headers})
        idle = None if proxy is not None else await connector.idle(target, tls)
        if idle is not None:
            return idle, head
        request = ConnectionRequest.to(target, headers, self.timings, proxy=proxy, tls=tls)
        connection = await connector.connect(request, [], _UNTIMED)
        if proxy is not None and not target.secure:
            # A proxy that is no tunnel needs the whole URL, and the headers that the pool added.
            head = request_head(target.text, request.headers)
        return connection, head

    async def _send(self, connection: Connection, head: bytes, deadline: Deadline) -> None:
        try:
            deadline.await_first_byte()
            protocol = self._begin(connection, head)
            message, content = await _final_response(protocol)
        except BaseException:
            connection.close()
            raise
        deadline.await_end()
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
        """Read the whole body, decompressed, or fail and close the connection."""
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
        """Read and discard a short body, so that the connection can be reused."""
        try:
            while self.wire_bytes <= _DRAIN_BYTES:
                data = await self._content.readany()
                if not data:
                    self._connection.release()
                    return
                self.wire_bytes += len(data)
        except aiohttp.ClientPayloadError:
            # It was cut short, which does not matter here; but the connection cannot be reused.
            pass
        except BaseException:
            self._connection.close()
            raise
        self._connection.close()

    def trace(self, code: ExitCode, *, robots_approved: bool) -> RequestTrace:
        timings, started = self.timings, self.started
        return RequestTrace(
            self.target.text,
            self.sent_at,
            code,
            robots_approved,
            (perf_counter() - started) * 1000,
            _span(timings.begun, timings.resolved),
            _span(timings.resolved, timings.connected),
            _span(timings.connected, timings.ready) if self.target.secure else None,
            _span(started, self.first_byte),
            self.status or None,
            http.decoded_value(self.headers, "ETag"),
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
        applied = http.combined(self.headers, "Content-Encoding")
        decoder = decoder_for(applied, self.limits.decompressed_bytes)
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


async def _final_response(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """Skip interim responses (1xx); a server may send them without end, and all at once."""
    for _ in range(_MOST_INTERIM + 1):
        message, content = await protocol.read()
        if message.code >= HTTPStatus.OK or message.code == _SWITCHING:
            return message, content
    raise VisitFailed(ExitCode.MALFORMED_RESPONSE, f"more than {_MOST_INTERIM} interim responses")


def _span(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else (end - begin) * 1000
