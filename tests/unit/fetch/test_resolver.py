"""Names lead only to addresses that may be reached; pins come before the name server."""

from collections.abc import Sequence
from ipaddress import ip_network
from socket import gaierror

import pytest

from trapline.errors import SettingsError
from trapline.fetch.guard import Guard, UnsafeAddress
from trapline.fetch.resolver import GuardedResolver, Pins, SystemLookup

PINS = Pins(["a.test:80:127.0.0.1", "*.b.test:80:127.0.0.2", "c.test:443:[::1]"])


def answering(*addresses: str) -> GuardedResolver:
    async def lookup(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return GuardedResolver(Guard([ip_network("127.0.0.2/32")]), PINS, lookup)


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("a.test", 80, "127.0.0.1"),
        ("A.TEST.", 80, "127.0.0.1"),
        ("a.test", 8080, None),
        ("x.y.b.test", 80, "127.0.0.2"),
        ("b.test", 80, None),
        ("c.test", 443, "::1"),
        ("d.test", 80, None),
    ],
)
def test_pins(host: str, port: int, address: str | None) -> None:
    assert PINS.find(host, port) == address


def test_a_star_pins_every_name() -> None:
    assert Pins(["*:80:127.0.0.1"]).find("any.where.test", 80) == "127.0.0.1"


@pytest.mark.parametrize("text", ["a.test", "a.test:80", "a.test:x:127.0.0.1", "a.test:80:b.test"])
def test_a_pin_must_be_whole(text: str) -> None:
    with pytest.raises(SettingsError, match="TRAPLINE_RESOLVE"):
        Pins([text])


async def test_refused_addresses_are_left_out() -> None:
    found = await answering("10.0.0.1", "1.1.1.1", "::1", "2606:4700::1").resolve("x.test", 80)
    assert [entry["host"] for entry in found] == ["1.1.1.1", "2606:4700::1"]


async def test_nothing_but_refused_addresses() -> None:
    with pytest.raises(UnsafeAddress):
        await answering("10.0.0.1", "::1").resolve("x.test", 80)


async def test_pins_open_no_range() -> None:
    with pytest.raises(UnsafeAddress):
        await answering().resolve("a.test", 80)
    assert await answering().resolve("x.b.test", 80)


async def test_behind_a_proxy_one_refused_address_is_enough() -> None:
    with pytest.raises(UnsafeAddress):
        await answering("1.1.1.1", "10.0.0.1").require_public("x.test", 80)


async def test_no_address_is_no_name() -> None:
    with pytest.raises(gaierror):
        await answering().resolve("x.test", 80)


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f.1"])
async def test_the_system_knows_every_name_of_ourselves(host: str) -> None:
    lookup = SystemLookup()
    try:
        found = await lookup(host, 80)
    finally:
        lookup.close()
    assert found
    assert not any(Guard().allows(address) for address in found)


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".test", ".", "-", "_._"])
async def test_names_that_cannot_be(host: str) -> None:
    lookup = SystemLookup()
    try:
        with pytest.raises((gaierror, UnicodeError)):
            await lookup(host, 80)
    finally:
        lookup.close()
