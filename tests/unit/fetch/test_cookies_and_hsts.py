"""What hosts asked to be remembered: strict transport and cookies."""

import pytest

from trapline.fetch import CookieJar
from trapline.fetch.hsts import StrictHosts

NOW = 1_000_000.0


def hosts(header: str, host: str = "a.test") -> StrictHosts:
    strict = StrictHosts()
    strict.note(host, header, NOW)
    return strict


def test_strict_for_as_long_as_asked() -> None:
    strict = hosts("max-age=100")
    assert strict.covers("a.test", NOW + 99)
    assert not strict.covers("a.test", NOW + 101)
    assert not strict.covers("b.a.test", NOW)
    assert not strict.covers("test", NOW)


def test_strict_with_subdomains() -> None:
    strict = hosts('includeSubDomains; max-age="100"; preload')
    assert strict.covers("x.b.a.test", NOW)
    assert not strict.covers("xa.test", NOW)


def test_strict_can_be_taken_back() -> None:
    strict = hosts("max-age=100")
    strict.note("a.test", "max-age=0", NOW)
    assert not strict.covers("a.test", NOW)


@pytest.mark.parametrize("header", ["", "max-age", "max-age=x", "includeSubDomains", "xmax-age=5"])
def test_strict_wants_an_age(header: str) -> None:
    assert not hosts(header).covers("a.test", NOW)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_addresses_are_never_strict(host: str) -> None:
    assert not hosts("max-age=100", host).covers(host, NOW)


def test_strict_is_bounded() -> None:
    strict = StrictHosts(most=3)
    for number in range(10):
        strict.note(f"h{number}.test", "max-age=100", NOW)
    assert [n for n in range(10) if strict.covers(f"h{n}.test", NOW)] == [7, 8, 9]


async def test_cookies_go_back_to_who_set_them() -> None:
    jar = CookieJar()
    jar.remember("https://a.test/x/", ["sid=1; Path=/x; Secure", "all=2; Path=/"])
    assert jar.header("https://a.test/x/y") in {"sid=1; all=2", "all=2; sid=1"}
    assert jar.header("http://a.test/x/y") == "all=2"
    assert jar.header("https://b.test/x/y") == ""


async def test_cookies_are_bounded() -> None:
    jar = CookieJar()
    jar.remember("http://a.test/", [f"big={'x' * 5000}"])
    for number in range(1000):
        jar.remember("http://a.test/", [f"c{number}={'x' * 100}"])
    sent = jar.header("http://a.test/")
    assert "big" not in sent
    assert "c999=" in sent
    assert len(sent) < 10_000


async def test_cookies_for_bare_addresses() -> None:
    jar = CookieJar()
    jar.remember("http://127.0.0.1:8000/", ["a=1"])
    assert jar.header("http://127.0.0.1:8000/b") == "a=1"
