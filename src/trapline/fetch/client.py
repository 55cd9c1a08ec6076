"""HTTP client of a process: connection pools, proxies and limits."""

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from ssl import SSLContext
from types import TracebackType
from typing import Self

from yarl import URL

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.browser.socks_proxy import Outbound
from trapline.fetch.connector import GuardedConnector
from trapline.fetch.guard import Guard
from trapline.fetch.hsts import StrictHosts
from trapline.fetch.redirects import RedirectChain
from trapline.fetch.resolver import GuardedResolver, Lookup, Pins, SystemLookup
from trapline.fetch.route import Route
from trapline.fetch.timeouts import DeadlineTimer
from trapline.model import Fetched, FetchLimits, FetchRequest
from trapline.settings import FetchSettings

_ALL_NETWORKS = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


class Fetcher:
    """Owns the connection pools. Construct it inside the running loop, and close it.

    `lookup` replaces the system's resolver, and `tls` its certificate store.
    """

    def __init__(
        self,
        settings: FetchSettings,
        *,
        lookup: Lookup | None = None,
        tls: SSLContext | None = None,
    ) -> None:
        self.limits = _limits(settings)
        self.user_agent = settings.user_agent
        self._system = SystemLookup() if lookup is None else None
        self._routes = _Routes(settings, lookup or self._system or SystemLookup(), tls)

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch a URL. The result has every outcome; only programming errors are raised."""
        try:
            route = self._routes.find(request.proxy, verify_tls=request.verify_tls)
        except VisitFailed as error:
            return Fetched(exit_code=error.code, message=error.message, url=request.url)
        headers = http.request_headers(request, self.user_agent)
        bounds = request.limits or self.limits
        return await RedirectChain(request, bounds, route, headers).run()

    def outbound(self, proxy: str | None) -> Outbound:
        """Return the way out for a browser: the same guard, names and proxies as for our requests."""
        return self._routes.outbound(proxy)

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
    """The connection pools, and the choice among them for a request."""

    def __init__(self, settings: FetchSettings, lookup: Lookup, tls: SSLContext | None) -> None:
        self._guard = Guard(settings.allow_nets)
        self._strict = StrictHosts()
        self._timer = DeadlineTimer()
        self._tls: SSLContext | bool = True if tls is None else tls
        pins = Pins(settings.resolve)
        self._resolver = GuardedResolver(self._guard, pins, lookup)
        self._direct = GuardedConnector(self._guard, self._resolver, settings.connections)
        self._connectors = [self._direct]
        self._default = self._route(self._direct, None)
        self._trusting: GuardedResolver | None = None
        if settings.proxy is not None:
            # The operator's proxy is usually at a private address, which must stay closed to URLs: so
            # it gets a pool of its own, without the guard.
            trusting = Guard(_ALL_NETWORKS)
            self._trusting = GuardedResolver(trusting, pins, lookup)
            pool = GuardedConnector(trusting, self._trusting, settings.connections)
            self._connectors.append(pool)
            self._default = self._route(pool, _proxy(settings.proxy.get_secret_value()))

    def find(self, proxy: str | None, *, verify_tls: bool) -> Route:
        default = self._default
        if proxy is None and verify_tls:
            return default
        tls = self._tls if verify_tls else False
        if proxy is None:
            return replace(default, tls=tls)
        return replace(self._route(self._direct, _proxy(proxy)), tls=tls)

    def outbound(self, proxy: str | None) -> Outbound:
        route = self.find(proxy, verify_tls=True)
        trusted = self._trusting if proxy is None else None
        return Outbound(route.resolver, route.guard, route.proxy, trusted)

    def _route(self, connector: GuardedConnector, proxy: URL | None) -> Route:
        return Route(
            connector, self._resolver, self._guard, self._strict, self._timer, proxy, self._tls
        )

    async def close(self) -> None:
        self._timer.close()
        for connector in self._connectors:
            await connector.close()


def _limits(settings: FetchSettings) -> FetchLimits:
    return FetchLimits(
        body_bytes=settings.body_bytes,
        decompressed_bytes=settings.decompressed_bytes,
        header_bytes=settings.header_bytes,
        redirects=settings.redirects,
        connect=settings.connect_timeout,
        first_byte=settings.first_byte_timeout,
        total=settings.total_timeout,
    )


def _proxy(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in {"http", "https"} or not url.host:
        raise VisitFailed(ExitCode.PROXY_FAILURE, "it is not an http:// or https:// URL")
    return url
