"""SSRF guard: which addresses may be connected to.

An address is refused unless it is public unicast. IPv6 addresses that embed an IPv4 address (mapped,
NAT64, 6to4, ISATAP) are checked by that one too, because a gateway may route them there.
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_REFUSED_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by carriers (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        # A public address by number, yet Azure answers on it inside every virtual machine.
        ("168.63.129.16/32", "cloud metadata"),
    )
)
_REFUSED_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "translated into a private network"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
        # Protocols of the IETF, among them Teredo, in which no one runs websites.
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = 0x5EFE
_LOW_32 = 0xFFFFFFFF


class UnsafeAddress(OSError):
    """A connection would go to an address that may not be reached."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address} is {reason}")
        self.address = address
        self.reason = reason


class Guard:
    """Checks addresses; `allowed` networks are open although they are not public."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def check(self, address: str) -> None:
        """Raise UnsafeAddress unless the address, as the socket gets it, may be reached."""
        try:
            # A zone (fe80::1%eth0) changes the interface, not the kind of the address.
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            raise UnsafeAddress(address, "not an address") from None
        for part in _parts(parsed):
            reason = _refusal(part)
            if reason is not None and not self._opens(part):
                raise UnsafeAddress(address, reason)

    def allows(self, address: str) -> bool:
        try:
            self.check(address)
        except UnsafeAddress:
            return False
        return True

    def _opens(self, address: Address) -> bool:
        return any(address in network for network in self._allowed)


def _parts(address: Address) -> Iterator[Address]:
    """Yield the address and the IPv4 addresses inside it; a mapped one is its IPv4 address alone."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    if address in _NAT64:
        yield IPv4Address(int(address) & _LOW_32)
        return
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    # The interface part of ISATAP is 0000:5efe or 0200:5efe, then the IPv4 address.
    if (int(address) >> 32) & 0xFDFFFFFF == _ISATAP:
        yield IPv4Address(int(address) & _LOW_32)


def _refusal(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _REFUSED_V4 if address in network), None)
    for network, reason in _REFUSED_V6:
        if address in network:
            return reason
    return None if address in _GLOBAL_V6 else "reserved"
