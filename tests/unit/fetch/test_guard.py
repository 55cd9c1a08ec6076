"""No spelling of a private address gets past the guard."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.guard import Guard, UnsafeAddress
from trapline.fetch.target import parse_target

SIX_TO_FOUR = ip_network("2002::/16")
GUARD = Guard()
PRIVATE_V4 = [
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]

private_v4 = st.sampled_from(PRIVATE_V4).flatmap(
    lambda net: st.integers(0, net.num_addresses - 1).map(lambda n: IPv4Address(int(net[0]) + n))
)


def _number(value: int, base: str) -> str:
    return {"decimal": f"{value}", "hex": f"0x{value:x}", "octal": f"0{value:o}"}[base]


@st.composite
def spelled(draw: st.DrawFn) -> tuple[IPv4Address, str]:
    """An IPv4 address in any form that parsers of URLs take for one: 1 to 4 parts, any bases."""
    address = draw(private_v4)
    octets = list(address.packed)
    parts = draw(st.integers(1, 4))
    head = octets[: parts - 1]
    tail = int.from_bytes(bytes(octets[parts - 1 :]))
    bases = st.sampled_from(["decimal", "hex", "octal"])
    text = ".".join(_number(value, draw(bases)) for value in [*head, tail])
    if draw(st.booleans()):
        text += "."
    return address, text.upper() if draw(st.booleans()) else text


@given(spelled())
def test_every_spelling_of_a_private_address_is_refused(case: tuple[IPv4Address, str]) -> None:
    address, text = case
    goal = parse_target(f"http://{text}:8080/", 1000)
    assert goal.host == str(address)
    assert not GUARD.allows(goal.host)


@given(private_v4)
def test_private_addresses_inside_ipv6_are_refused(address: IPv4Address) -> None:
    number = int(address)
    for outer in (
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address(int(IPv6Address("64:ff9b::")) | number),
        IPv6Address((0x2002 << 112) | (number << 80) | 1),
        # Teredo hides the client's address by inverting it.
        IPv6Address((0x20010000 << 96) | (0x08080808 << 64) | (number ^ 0xFFFFFFFF)),
        IPv6Address((0x20010000 << 96) | (number << 64) | (0x08080808 ^ 0xFFFFFFFF)),
        IPv6Address((0x2606 << 112) | (0x5EFE << 32) | number),
        IPv6Address(number),
    ):
        assert not GUARD.allows(str(outer)), outer
        assert not GUARD.allows(parse_target(f"http://[{outer}]/", 1000).host)


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_what_is_allowed_is_global_for_the_standard_library_too(address: object) -> None:
    # Some versions of the standard library call all of 6to4 private; we look at the address inside.
    if GUARD.allows(str(address)) and ip_address(str(address)) not in SIX_TO_FOUR:
        assert ip_address(str(address)).is_global
        assert not ip_address(str(address)).is_multicast


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "fd00:ec2::254",
        "::",
        "::1",
        "fe80::1%eth0",
        "ff02::1",
        "2001:db8::1",
        "64:ff9b:1::a00:1",
        "255.255.255.255",
        "/run/docker.sock",
        "",
        "localhost",
    ],
)
def test_refused(address: str) -> None:
    with pytest.raises(UnsafeAddress):
        GUARD.check(address)


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::1"],
)
def test_allowed(address: str) -> None:
    GUARD.check(address)
    assert GUARD.allows(address)


def test_opened_ranges_open_nothing_else() -> None:
    guard = Guard([ip_network("127.0.0.2/32"), ip_network("fd00::/64")])
    assert guard.allows("127.0.0.2")
    assert guard.allows("::ffff:127.0.0.2")
    assert guard.allows("fd00::5")
    assert not guard.allows("127.0.0.1")
    assert not guard.allows("fd00:0:0:1::5")
    assert guard.allows("1.1.1.1")


def test_the_reason_is_said() -> None:
    with pytest.raises(UnsafeAddress, match=r"10\.0\.0\.1 is private"):
        GUARD.check("10.0.0.1")


def test_the_parser_under_test_is_the_one_that_requests_use() -> None:
    assert ada_url.normalize_url("http://0x7f.1/") == parse_target("http://0x7f.1/", 100).text
