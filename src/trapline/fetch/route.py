"""How requests leave: through which pool and proxy, and under which guard."""

from dataclasses import dataclass
from ipaddress import ip_address
from ssl import SSLContext

from yarl import URL

from trapline.fetch.clock import Watch
from trapline.fetch.connector import GuardedConnector
from trapline.fetch.guard import Guard
from trapline.fetch.hsts import StrictHosts
from trapline.fetch.resolver import GuardedResolver
from trapline.fetch.target import Target


@dataclass(frozen=True, slots=True)
class Route:
    """The guard is that of targets; the pool has its own, which a trusted proxy may lack."""

    connector: GuardedConnector
    resolver: GuardedResolver
    guard: Guard
    strict: StrictHosts
    watch: Watch
    proxy: URL | None
    tls: SSLContext | bool

    async def check_behind_proxy(self, goal: Target) -> None:
        """Refuse a private target that the proxy would reach for us."""
        if self.proxy is None:
            return
        if _is_literal(goal.host):
            self.guard.check(goal.host)
        else:
            await self.resolver.require_public(goal.host, goal.port)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
