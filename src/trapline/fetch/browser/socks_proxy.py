"""Guarding SOCKS5 proxy: the only way from a browser to the network, under the fetcher's own guard.

Each browser context has a listener of its own, so that its bytes are counted and bounded. The proxy
connects to the very address that it has checked: a name that changes its mind reaches nothing.
"""

import asyncio
from base64 import b64encode
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, cast

from yarl import URL

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.exceptions import visit_failure
from trapline.fetch.guard import Guard
from trapline.fetch.resolver import GuardedResolver

BYPASS_NOTHING: Final = "<-loopback>"

_VERSION: Final = 5
_CONNECT: Final = 1
_SUCCEEDED: Final = 0
_UNREACHABLE: Final = 4
_BAD_COMMAND: Final = 7
_IPV4, _NAME, _IPV6 = 1, 3, 4
_BUFFER: Final = 2**18
_MAX_HEAD: Final = 2**14


@dataclass(slots=True)
class Traffic:
    """What one context has sent and received, and the addresses and failures of its hosts."""

    limit: int
    wire_bytes: int = 0
    connections: int = 0
    refused: int = 0
    addresses: dict[tuple[str, int], str] = field(default_factory=dict)
    failures: dict[tuple[str, int], VisitFailed] = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        return self.wire_bytes >= self.limit

    def allow(self, more: int) -> None:
        """Let the next page of this context transfer so many bytes more."""
        self.limit = self.wire_bytes + more


@dataclass(slots=True)
class Outbound:
    """How the proxy reaches a host: directly, or through an HTTP proxy, under the guard."""

    resolver: GuardedResolver
    guard: Guard
    proxy: URL | None = None
    proxy_resolver: GuardedResolver | None = None
    """For the operator's own proxy, which may be at a private address."""

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses that may be connected to; raises UnsafeAddress if there is none."""
        literal = _literal(host)
        if literal is not None:
            self.guard.check(str(literal))
            return [str(literal)]
        if self.proxy is not None:
            await self.resolver.require_public(host, port)
            return [host]
        return [entry["host"] for entry in await self.resolver.resolve(host, port)]


class SocksProxy:
    """One listener on the loopback interface, for one browser context."""

    def __init__(self, outbound: Outbound, traffic: Traffic, connect_seconds: float) -> None:
        self.outbound = outbound
        self.traffic = traffic
        self.connect_seconds = connect_seconds
        self.clients: set[_Client] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen on a free port; return the URL for the browser."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self), "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"socks5://127.0.0.1:{port}"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for client in list(self.clients):
            client.abort()

    def count(self, size: int) -> None:
        self.traffic.wire_bytes += size
        if self.traffic.exhausted:
            for client in list(self.clients):
                client.abort()


class _Upstream(asyncio.Protocol):
    """The connection to the website; it writes to its client and pauses with it."""

    def __init__(self, client: "_Client") -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).set_write_buffer_limits(_BUFFER)

    def data_received(self, data: bytes) -> None:
        self._client.from_upstream(data)

    def pause_writing(self) -> None:
        self._client.pause()

    def resume_writing(self) -> None:
        self._client.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._client.upstream_lost()


class _Client(asyncio.Protocol):
    """One connection of the browser: greeting, request, then a tunnel."""

    def __init__(self, proxy: SocksProxy) -> None:
        self._proxy = proxy
        self._buffer = b""
        self._greeted = False
        self._transport: asyncio.Transport | None = None
        self._upstream: asyncio.Transport | None = None
        self._reply_head: bytearray | None = None
        self._head_grew = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # The browser's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_BUFFER)
        self._proxy.clients.add(self)

    def data_received(self, data: bytes) -> None:
        if self._upstream is not None and self._reply_head is None:
            self._upstream.write(data)
            self._proxy.count(len(data))
            return
        self._buffer += data
        if self._task is None:
            self._handshake()
        elif len(self._buffer) > _BUFFER:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._proxy.clients.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self._upstream is not None:
            self._upstream.close()

    def pause_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.pause_reading()

    def resume_writing(self) -> None:
        if self._upstream is not None and not self._upstream.is_closing():
            self._upstream.resume_reading()

    def abort(self) -> None:
        for transport in (self._transport, self._upstream):
            if transport is not None:
                transport.abort()

    # The website's side

    def from_upstream(self, data: bytes) -> None:
        self._proxy.count(len(data))
        if self._reply_head is not None:
            self._reply_head += data
            self._head_grew.set()
        elif self._transport is not None:
            self._transport.write(data)

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def upstream_lost(self) -> None:
        self._head_grew.set()
        if self._transport is not None:
            self._transport.close()

    # SOCKS5, RFC 1928

    def _handshake(self) -> None:
        if not self._greeted and not self._greet():
            return
        request = _request(self._buffer)
        if request is None:
            return
        command, host, port, size = request
        self._buffer = self._buffer[size:]
        if command != _CONNECT or not host:
            self._refuse(_BAD_COMMAND)
            return
        self._task = asyncio.get_running_loop().create_task(self._connect(host, port))

    def _greet(self) -> bool:
        buffer = self._buffer
        if len(buffer) < 2 or len(buffer) < 2 + buffer[1]:  # noqa: PLR2004 (version, count)
            return False
        if buffer[0] != _VERSION:
            self.abort()
            return False
        self._buffer = buffer[2 + buffer[1] :]
        self._greeted = True
        self._reply(b"\x05\x00")
        return True

    async def _connect(self, host: str, port: int) -> None:
        traffic = self._proxy.traffic
        traffic.connections += 1
        try:
            async with asyncio.timeout(self._proxy.connect_seconds):
                address = await self._open(host, port)
        except (OSError, VisitFailed) as error:
            traffic.refused += 1
            traffic.failures[host, port] = _visit_failure(error)
            self._refuse(_UNREACHABLE)
            return
        traffic.addresses[host, port] = address
        self._reply(_answer(_SUCCEEDED))
        if self._buffer and self._upstream is not None:
            self._upstream.write(self._buffer)
        self._buffer = b""

    async def _open(self, host: str, port: int) -> str:
        """Connect to the first address that answers; return it."""
        if self._proxy.traffic.exhausted:
            raise VisitFailed(ExitCode.BODY_TOO_LARGE)
        outbound = self._proxy.outbound
        addresses = await outbound.addresses(host, port)
        if outbound.proxy is not None:
            await self._through(outbound, outbound.proxy, addresses[0], port)
            return addresses[0]
        problem: OSError = OSError("no address")
        for address in addresses:
            try:
                await self._dial(address, port)
            except OSError as error:
                problem = error
            else:
                return address
        raise problem

    async def _dial(self, address: str, port: int) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: _Upstream(self), address, port)
        self._upstream = transport
        return transport

    async def _through(self, outbound: Outbound, proxy: URL, host: str, port: int) -> None:
        """Open a tunnel through an HTTP proxy."""
        resolver = outbound.proxy_resolver or outbound.resolver
        entries = await resolver.resolve(proxy.host or "", proxy.port or 80)
        self._reply_head = bytearray()
        upstream = await self._dial(entries[0]["host"], proxy.port or 80)
        upstream.write(_tunnel_request(proxy, host, port))
        while b"\r\n\r\n" not in self._reply_head:
            if len(self._reply_head) > _MAX_HEAD or upstream.is_closing():
                raise VisitFailed(ExitCode.PROXY_FAILURE)
            self._head_grew.clear()
            await self._head_grew.wait()
        status = bytes(self._reply_head).split(b" ", 2)[1:2]
        if status != [b"200"]:
            raise VisitFailed(ExitCode.PROXY_FAILURE, f"it answers {status[0].decode()}")
        rest = bytes(self._reply_head).partition(b"\r\n\r\n")[2]
        self._reply_head = None
        if rest and self._transport is not None:
            self._transport.write(rest)

    def _reply(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _refuse(self, code: int) -> None:
        self._reply(_answer(code))
        if self._transport is not None:
            self._transport.close()


def _request(data: bytes) -> tuple[int, str, int, int] | None:
    """Parse a request: command, host, port and length; None while it is incomplete."""
    if len(data) < 5:  # noqa: PLR2004 (the fixed part and a length)
        return None
    end = {_IPV4: 8, _IPV6: 20, _NAME: 5 + data[4]}.get(data[3], 4)
    if len(data) < end + 2:
        return None
    if data[3] == _IPV4:
        host = str(IPv4Address(data[4:8]))
    elif data[3] == _IPV6:
        host = str(IPv6Address(data[4:20]))
    else:
        host = data[5:end].decode("ascii", "replace")
    return data[1], host, int.from_bytes(data[end : end + 2]), end + 2


def _answer(code: int) -> bytes:
    return bytes((_VERSION, code, 0, _IPV4)) + bytes(6)


def _tunnel_request(proxy: URL, host: str, port: int) -> bytes:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if proxy.user is not None:
        secret = b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {secret}")
    return "\r\n".join([*lines, "", ""]).encode()


def _visit_failure(error: BaseException) -> VisitFailed:
    if isinstance(error, VisitFailed):
        return error
    if isinstance(error, TimeoutError):
        return VisitFailed(ExitCode.CONNECT_TIMEOUT)
    return visit_failure(error)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
