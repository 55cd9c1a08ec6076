"""The one HTTP client of a process."""

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from ssl import SSLContext
from types import TracebackType
from typing import Self

from yarl import URL

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.clock import Watch
from trapline.fetch.connector import GuardedConnector
from trapline.fetch.guard import Guard
from trapline.fetch.hsts import StrictHosts
from trapline.fetch.journey import Journey
from trapline.fetch.resolver import GuardedResolver, Lookup, Pins, SystemLookup
from trapline.fetch.route import Route
from trapline.model import Fetched, FetchLimits, FetchRequest
from trapline.settings import Settings

_EVERYTHING = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


class Fetcher:
    """Owns the pools of connections. Make it inside the running loop, and close it.

    `lookup` replaces the system's resolver, and `tls` its trust in certificates.
    """

    def __init__(
        self, settings: Settings, *, lookup: Lookup | None = None, tls: SSLContext | None = None
    ) -> None:
        self.limits = _limits(settings)
        self._user_agent = settings.user_agent
        self._system = SystemLookup() if lookup is None else None
        self._routes = _Routes(settings, lookup or self._system or SystemLookup(), tls)

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch a URL. Every end of it is in the result; only our own mistakes are raised."""
        try:
            route = self._routes.find(request.proxy, verify_tls=request.verify_tls)
        except VisitFailed as error:
            return Fetched(exit_code=error.code, message=error.message, url=request.url)
        headers = http.standing(request, self._user_agent)
        bounds = request.limits or self.limits
        return await Journey(request, bounds, route, headers).run()

    async def close(self) -> None:
        await self._routes.close()
        if self._system is not None:
            self._system.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class _Routes:
    """The pools, and which of them a request takes."""

    def __init__(self, settings: Settings, lookup: Lookup, tls: SSLContext | None) -> None:
        self._guard = Guard(settings.allow_nets)
        self._strict = StrictHosts()
        self._watch = Watch()
        self._tls: SSLContext | bool = True if tls is None else tls
        pins = Pins(settings.resolve)
        self._resolver = GuardedResolver(self._guard, pins, lookup)
        self._direct = GuardedConnector(self._guard, self._resolver, settings.fetch_connections)
        self._connectors = [self._direct]
        self._usual = self._route(self._direct, None)
        if settings.proxy is not None:
            # The operator's own proxy is usually at a private address, which is no reason to open
            # that address to URLs: so it gets a pool of its own, without the guard.
            trusting = Guard(_EVERYTHING)
            resolver = GuardedResolver(trusting, pins, lookup)
            pool = GuardedConnector(trusting, resolver, settings.fetch_connections)
            self._connectors.append(pool)
            self._usual = self._route(pool, _proxy(settings.proxy.get_secret_value()))

    def find(self, proxy: str | None, *, verify_tls: bool) -> Route:
        usual = self._usual
        if proxy is None and verify_tls:
            return usual
        tls = self._tls if verify_tls else False
        if proxy is None:
            return replace(usual, tls=tls)
        return replace(self._route(self._direct, _proxy(proxy)), tls=tls)

    def _route(self, connector: GuardedConnector, proxy: URL | None) -> Route:
        return Route(
            connector, self._resolver, self._guard, self._strict, self._watch, proxy, self._tls
        )

    async def close(self) -> None:
        self._watch.close()
        for connector in self._connectors:
            await connector.close()


def _limits(settings: Settings) -> FetchLimits:
    return FetchLimits(
        body_bytes=settings.fetch_body_bytes,
        decompressed_bytes=settings.fetch_decompressed_bytes,
        header_bytes=settings.fetch_header_bytes,
        redirects=settings.fetch_redirects,
        connect=settings.fetch_connect_timeout,
        first_byte=settings.fetch_first_byte_timeout,
        total=settings.fetch_total_timeout,
    )


def _proxy(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in {"http", "https"} or not url.host:
        raise VisitFailed(ExitCode.PROXY_FAILURE, "it is not an http:// or https:// URL")
    return url
