"""DNS resolver with pins, without the addresses that the guard refuses."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from aiohttp.abc import AbstractResolver, ResolveResult

from trapline.errors import SettingsError
from trapline.fetch.guard import Guard

# getaddrinfo blocks its thread. The loop's own thread pool is too small for a crawl of many hosts,
# and a name server that does not answer would block everything else there.
_THREADS = 32


class Lookup(Protocol):
    """Source of addresses; tests put their own name server here."""

    async def __call__(self, host: str, port: int) -> Sequence[str]: ...


class Pins:
    """`host:port:address`, as curl's --resolve.

    The host may be `*.name` for every name below it, or `*` for every name at all.
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._addresses = dict(map(_pin, texts))

    def find(self, host: str, port: int) -> str | None:
        if not self._addresses:
            return None
        labels = host.rstrip(".").lower().split(".")
        names = [".".join(labels)]
        names += ["*." + ".".join(labels[start:]) for start in range(1, len(labels))]
        found = (self._addresses.get((name, port)) for name in (*names, "*"))
        return next((address for address in found if address is not None), None)


class SystemLookup:
    """The operating system's resolver, in threads of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="dns")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        infos = await loop.run_in_executor(self._pool, _addresses, host, port)
        return list(dict.fromkeys(infos))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class GuardedResolver(AbstractResolver):
    """The resolver of the connector; it returns only addresses that the guard allows."""

    def __init__(self, guard: Guard, pins: Pins, lookup: Lookup) -> None:
        self._guard = guard
        self._pins = pins
        self._lookup = lookup

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 (aiohttp's signature)
    ) -> list[ResolveResult]:
        addresses = await self.addresses(host, port)
        allowed = [address for address in addresses if self._guard.allows(address)]
        if not allowed:
            self._guard.check(addresses[0])
        return [_result(host, address, port) for address in allowed]

    async def require_public(self, host: str, port: int) -> None:
        """Raise UnsafeAddress if the guard refuses any address of the name.

        For targets behind a proxy, which chooses among the addresses.
        """
        for address in await self.addresses(host, port):
            self._guard.check(address)

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        pinned = self._pins.find(host, port)
        if pinned is not None:
            return [pinned]
        found = await self._lookup(host, port)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    async def close(self) -> None:
        """Nothing to close: the lookup belongs to its creator."""


def _addresses(host: str, port: int) -> list[str]:
    # As bytes: for a str, Python's IDNA codec refuses names that resolvers know.
    infos = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in infos]


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": family,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    }


def _pin(text: str) -> tuple[tuple[str, int], str]:
    try:
        host, port, address = text.split(":", 2)
        address = str(ip_address(address.removeprefix("[").removesuffix("]")))
        return (host.rstrip(".").lower(), int(port)), address
    except ValueError:
        raise SettingsError(f"TRAPLINE_RESOLVE: {text!r} is not host:port:address") from None
