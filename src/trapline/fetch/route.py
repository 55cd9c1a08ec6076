"""Route of a request: its connection pool, proxy and guard."""

from dataclasses import dataclass
from ipaddress import ip_address
from ssl import SSLContext

from yarl import URL

from trapline.fetch.connector import GuardedConnector
from trapline.fetch.guard import Guard
from trapline.fetch.hsts import StrictHosts
from trapline.fetch.resolver import GuardedResolver
from trapline.fetch.target import Target
from trapline.fetch.timeouts import DeadlineTimer


@dataclass(frozen=True, slots=True)
class Route:
    """`guard` checks the target; the pool has a guard of its own, except for the operator's proxy."""

    connector: GuardedConnector
    resolver: GuardedResolver
    guard: Guard
    strict: StrictHosts
    timer: DeadlineTimer
    proxy: URL | None
    tls: SSLContext | bool

    async def check_behind_proxy(self, target: Target) -> None:
        """Refuse a private target that the proxy could reach."""
        if self.proxy is None:
            return
        if _is_literal(target.host):
            self.guard.check(target.host)
        else:
            await self.resolver.require_public(target.host, target.port)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
