"""The connection pool: asks the guard for every socket, and times how connections come about."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
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
from trapline.fetch.target import Target

_DNS_SECONDS = 60
_DNS_NAMES = 10_000
_IDLE_SECONDS = 30.0

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, Any]


class Opening:
    """When the steps of a new connection were done. Stays empty when one is reused."""

    __slots__ = ("begun", "connected", "ready", "resolved")

    def __init__(self) -> None:
        self.begun: float | None = None
        self.resolved: float | None = None
        self.connected: float | None = None
        self.ready: float | None = None


class TimedRequest(ClientRequest):
    """What the pool is asked by for a new connection; knows how that came about."""

    opening: Opening | None = None

    @classmethod
    def to(
        cls,
        goal: Target,
        headers: Mapping[str, str],
        opening: Opening,
        *,
        proxy: URL | None,
        tls: SSLContext | bool,
    ) -> Self:
        loop = asyncio.get_running_loop()
        request = cls("GET", goal.url, headers=headers, loop=loop, proxy=proxy, ssl=tls)
        request.opening = opening
        return request

    def update_headers(self, headers: Any) -> None:
        """Take the headers as they are: they are complete and were checked before."""
        self.headers = CIMultiDict([(HOST, self.url.host_port_subcomponent or "")])
        self.headers.extend(headers)

    def update_auto_headers(self, skip_auto_headers: Any) -> None:
        """Add nothing."""


def head_of(place: str, headers: Mapping[str, str]) -> bytes:
    """Return a request as it goes over the wire."""
    text = f"GET {place} HTTP/1.1\r\n{_lines(tuple(headers.items()))}\r\n"
    if not text.count("\r") == text.count("\n") == len(headers) + 2:
        raise InvalidInput("A header holds a line break.")
    return text.encode()


@lru_cache(maxsize=256)
def _lines(headers: tuple[tuple[str, str], ...]) -> str:
    """Return headers as lines: all pages of a site get the same."""
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


class GuardedConnector(TCPConnector):
    """Checks the address that a socket is about to connect to, whatever led there.

    The check and the connect use the same address, so a name that changes its answer between
    the two gains nothing. It also sees the literals, for which aiohttp asks no resolver.
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

    async def idle(self, goal: Target, tls: SSLContext | bool) -> Connection | None:
        """Return a connection that was used before and can be used again.

        Most requests of a crawl get one, and to ask so needs no request of the client's own kind.
        """
        to = goal.origin
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
        opening = getattr(req, "opening", None)
        if opening is None:
            return await super()._create_connection(req, traces, timeout)
        opening.begun = perf_counter()
        protocol = await super()._create_connection(req, traces, timeout)
        opening.ready = perf_counter()
        return protocol

    async def _wrap_create_connection(
        self, *args: Any, req: ClientRequest, **kwargs: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        opening = getattr(req, "opening", None)
        if opening is not None:
            opening.resolved = opening.resolved or perf_counter()
            # The protocol is made when TCP stands and before TLS begins.
            args = (_noting(opening, args[0]), *args[1:])
        return await super()._wrap_create_connection(*args, req=req, **kwargs)


def _noting(
    opening: Opening, factory: Callable[[], ResponseHandler]
) -> Callable[[], ResponseHandler]:
    def make() -> ResponseHandler:
        opening.connected = perf_counter()
        return factory()

    return make
