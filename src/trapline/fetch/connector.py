"""Connection pool: checks the address of every socket, and times the steps of a connection."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from ssl import SSLContext
from time import perf_counter
from typing import Any, Self

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.hdrs import HOST
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from trapline.errors import InvalidInput
from trapline.fetch.guard import Guard
from trapline.fetch.resolver import GuardedResolver
from trapline.fetch.response_protocol import LenientProtocol
from trapline.fetch.target import Target

_DNS_SECONDS = 60
_DNS_NAMES = 10_000
_IDLE_SECONDS = 30.0

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, Any]


class ConnectionTimings:
    """The times of the steps of a new connection; all None for a reused one."""

    __slots__ = ("begun", "connected", "ready", "resolved")

    def __init__(self) -> None:
        self.begun: float | None = None
        self.resolved: float | None = None
        self.connected: float | None = None
        self.ready: float | None = None


class ConnectionRequest(ClientRequest):
    """A request for a new connection, as the pool takes it; records its timings."""

    timings: ConnectionTimings | None = None

    @classmethod
    def to(
        cls,
        target: Target,
        headers: Mapping[str, str],
        timings: ConnectionTimings,
        *,
        proxy: URL | None,
        tls: SSLContext | bool,
    ) -> Self:
        loop = asyncio.get_running_loop()
        request = cls("GET", target.url, headers=headers, loop=loop, proxy=proxy, ssl=tls)
        request.timings = timings
        return request

    def update_headers(self, headers: Any) -> None:
        """Take the headers unchanged: they are complete and were checked before."""
        self.headers = CIMultiDict([(HOST, self.url.host_port_subcomponent or "")])
        self.headers.extend(headers)

    def update_auto_headers(self, skip_auto_headers: Any) -> None:
        """Add nothing."""


def request_head(request_target: str, headers: Mapping[str, str]) -> bytes:
    """Return a request in its wire format."""
    text = f"GET {request_target} HTTP/1.1\r\n{_lines(tuple(headers.items()))}\r\n"
    if not text.count("\r") == text.count("\n") == len(headers) + 2:
        raise InvalidInput("A header holds a line break.")
    return text.encode()


@lru_cache(maxsize=256)
def _lines(headers: tuple[tuple[str, str], ...]) -> str:
    """Return headers as lines; cached, because all pages of a site get the same."""
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


class GuardedConnector(TCPConnector):
    """Checks the address of every socket before it connects (SSRF).

    The check and the connection use the same address, so DNS rebinding gains nothing. It also covers
    IP literals, for which aiohttp does not call the resolver.
    """

    def __init__(self, guard: Guard, resolver: GuardedResolver, limit: int) -> None:
        super().__init__(
            resolver=resolver,
            ttl_dns_cache=_DNS_SECONDS,
            dns_cache_max_size=_DNS_NAMES,
            limit=limit,
            keepalive_timeout=_IDLE_SECONDS,
            socket_factory=self._open,
        )
        self._guard = guard
        factory: Callable[[], ResponseHandler] = partial(LenientProtocol, loop=self._loop)
        self._factory = partial(factory)

    async def idle(self, target: Target, tls: SSLContext | bool) -> Connection | None:
        """Return an idle connection of the pool, if there is one.

        Most requests of a crawl get one, without constructing a request of aiohttp.
        """
        to = target.origin
        return await self._get(
            ConnectionKey(to.host, to.port, to.secure, tls, None, None, None), []
        )

    def _open(self, info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        self._guard.check(address[0])
        return socket.socket(family, kind, protocol)

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 (aiohttp's name)
    ) -> ResponseHandler:
        timings = getattr(req, "timings", None)
        if timings is None:
            return await super()._create_connection(req, traces, timeout)
        timings.begun = perf_counter()
        protocol = await super()._create_connection(req, traces, timeout)
        timings.ready = perf_counter()
        return protocol

    async def _wrap_create_connection(
        self, *args: Any, req: ClientRequest, **kwargs: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        timings = getattr(req, "timings", None)
        if timings is not None:
            timings.resolved = timings.resolved or perf_counter()
            # The protocol is constructed after the TCP handshake and before TLS.
            args = (_timed(timings, args[0]), *args[1:])
        return await super()._wrap_create_connection(*args, req=req, **kwargs)


def _timed(
    timings: ConnectionTimings, factory: Callable[[], ResponseHandler]
) -> Callable[[], ResponseHandler]:
    def make() -> ResponseHandler:
        timings.connected = perf_counter()
        return factory()

    return make
