"""One request and its answer on one connection, within its bounds.

It stands directly on aiohttp's request, connection pool and response, without its session: a
session has its own redirects, cookies, timeouts and a silent second request after a reset, all of
which are decided elsewhere here, and costs twice as much.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from ssl import SSLContext
from time import perf_counter

import aiohttp
from aiohttp import ClientResponse, ClientTimeout, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.clock import Clock
from trapline.fetch.connector import GuardedConnector, Opening, TimedRequest
from trapline.fetch.decode import codings
from trapline.fetch.target import Target
from trapline.model import FetchLimits, RequestTrace

_UNTIMED = ClientTimeout(total=None, sock_connect=None)
_READ_BUFFER = 2**16
_MOST_STATUS_LINE = 8190
_DRAIN_BYTES = 2**16
_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


class Exchange:
    """Filled while it runs, so that a trace can be made of it however it ends."""

    __slots__ = (
        "_protocol",
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
        self._protocol: ResponseHandler | None = None
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
    ) -> ClientResponse:
        """Send the request and wait for the answer's headers."""
        while True:
            request = TimedRequest(
                "GET", self.target.url, headers=headers, loop=connector.loop, proxy=proxy, ssl=tls
            )
            request.opening = self.opening = Opening()
            try:
                return await self._ask(connector, request, clock)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # The server may close an idle connection just when we take it from the pool;
                # each of these is used up by its try, so the last one is new.
                if self.opening.begun is not None:
                    raise

    async def _ask(
        self, connector: GuardedConnector, request: TimedRequest, clock: Clock
    ) -> ClientResponse:
        connection = await connector.connect(request, [], _UNTIMED)
        try:
            clock.await_first_byte()
            self._prepare(connection)
            response = await request.send(connection)
            await response.start(connection)
        except BaseException:
            connection.close()
            raise
        clock.await_end()
        self.first_byte = perf_counter()
        self.status = response.status
        self.headers = response.headers
        self.raw_headers = response.raw_headers
        return response

    async def read(self, response: ClientResponse) -> None:
        """Take the whole body, decompressed, or fail and close the connection."""
        try:
            self._check_head(response)
            body = await self._body(response.content)
            self._check_end()
            self.body = body
        except BaseException:
            response.close()
            raise

    async def drain(self, response: ClientResponse) -> None:
        """Read past a body that no one needs, if it is short, to keep the connection."""
        try:
            while self.wire_bytes <= _DRAIN_BYTES:
                data = await response.content.readany()
                if not data:
                    return
                self.wire_bytes += len(data)
            response.close()
        except aiohttp.ClientPayloadError:
            response.close()
        except BaseException:
            response.close()
            raise

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

    def _prepare(self, connection: Connection) -> None:
        protocol = connection.protocol
        if protocol is None or protocol.transport is None:
            raise aiohttp.ServerDisconnectedError
        self._protocol = protocol
        peer = protocol.transport.get_extra_info("peername")
        self.remote_address = str(peer[0]) if peer else None
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=_READ_BUFFER,
            max_line_size=_MOST_STATUS_LINE,
            max_field_size=self.limits.header_bytes,
            max_headers=self.limits.headers,
        )

    def _check_head(self, response: ClientResponse) -> None:
        if http.size(self.raw_headers) > self.limits.header_bytes:
            raise VisitFailed(ExitCode.HEADERS_TOO_LARGE)
        announced = response.content_length
        if announced is not None and announced > self.limits.body_bytes:
            raise VisitFailed(ExitCode.BODY_TOO_LARGE, f"{announced:,} bytes announced")

    def _check_end(self) -> None:
        """Fail if a body that ends with its connection ended by a reset.

        The client takes any end for the end of such a body.
        """
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            return
        if self._protocol is not None and isinstance(
            self._protocol.exception(), aiohttp.ClientOSError
        ):
            raise VisitFailed(ExitCode.TRUNCATED, "the connection was reset")

    async def _body(self, content: StreamReader) -> bytes:
        decoder = codings(self.headers.get("Content-Encoding"), self.limits.decompressed_bytes)
        limit = self.limits.body_bytes
        parts: list[bytes] = []
        while data := await content.readany():
            self.wire_bytes += len(data)
            if self.wire_bytes > limit:
                raise VisitFailed(ExitCode.BODY_TOO_LARGE, f"over {limit:,} bytes")
            parts.append(data if decoder is None else decoder.decode(data))
        if decoder is not None:
            decoder.finish()
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _span(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else (end - begin) * 1000
