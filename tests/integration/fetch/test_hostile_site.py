"""Everything that the test site does to crawlers ends as the exit code that fits it."""

import pytest

from tests.site.hostile import BASE
from tests.site.redirects import UNSAFE
from tests.site.site import Site
from tests.support.origin_server import client, hurried
from trapline.errors import ExitCode
from trapline.fetch import CookieJar
from trapline.model import FetchLimits

E = ExitCode
LIMITS = FetchLimits(body_bytes=4_000_000, decompressed_bytes=8_000_000, redirects=20)
HOST = "hostile.test"

TIME = {
    "slow-first-byte?seconds=5": E.FIRST_BYTE_TIMEOUT,
    "slow-body?seconds=5": E.TOTAL_TIMEOUT,
    "slow-head": E.FIRST_BYTE_TIMEOUT,
    "hang": E.FIRST_BYTE_TIMEOUT,
    "hang-after-head": E.TOTAL_TIMEOUT,
    "hang-in-body": E.TOTAL_TIMEOUT,
    "close": E.CONNECTION_RESET,
    "close-after-head": E.TRUNCATED,
    "reset": E.CONNECTION_RESET,
    "reset-in-body": E.TRUNCATED,
    "close-once": E.CONNECTION_RESET,
}
BODY = {
    "huge": E.BODY_TOO_LARGE,
    "endless": E.BODY_TOO_LARGE,
    "endless-chunks": E.BODY_TOO_LARGE,
    "endless-line": E.BODY_TOO_LARGE,
    "gzip-bomb?mb=20": E.DECOMPRESSED_TOO_LARGE,
    "deflate-bomb?mb=20": E.DECOMPRESSED_TOO_LARGE,
    "zstd-bomb?mb=20": E.DECOMPRESSED_TOO_LARGE,
    "gzip-twice": E.CONTENT,
    "deflate": E.CONTENT,
    "deflate-raw": E.CONTENT,
    "gzip-cut": E.TRUNCATED,
    "gzip-no-trailer": E.TRUNCATED,
    "gzip-wrong-sum": E.MALFORMED_RESPONSE,
    "gzip-trailing-garbage": E.CONTENT,
    "gzip-is-plain": E.MALFORMED_RESPONSE,
    "unknown-coding": E.CONTENT,
    "empty": E.CONTENT,
    "bomb-in-html": E.CONTENT,
}
FRAME = {
    "length-too-large": E.TRUNCATED,
    "length-too-small": E.MALFORMED_RESPONSE,
    "length-negative": E.MALFORMED_RESPONSE,
    "length-words": E.MALFORMED_RESPONSE,
    "length-twice": E.MALFORMED_RESPONSE,
    "length-and-chunks": E.CONTENT,
    "no-length": E.CONTENT,
    "http-1.0": E.CONTENT,
    "http-0.9": E.MALFORMED_RESPONSE,
    "chunks": E.CONTENT,
    "chunks-with-trailer": E.CONTENT,
    "chunks-with-extension": E.CONTENT,
    "chunks-cut": E.TRUNCATED,
    "chunks-without-end": E.TRUNCATED,
    "chunks-bad-size": E.MALFORMED_RESPONSE,
    "chunks-giant-size": E.MALFORMED_RESPONSE,
    "status-words": E.MALFORMED_RESPONSE,
    "status-999": E.ACCESS_DENIED,
    "status-no-reason": E.CONTENT,
    "other-protocol": E.MALFORMED_RESPONSE,
    "garbage": E.MALFORMED_RESPONSE,
    "lf-only": E.CONTENT,
    "nul-in-header": E.MALFORMED_RESPONSE,
    "space-before-colon": E.CONTENT,
    "folded-header": E.CONTENT,
    "no-colon": E.MALFORMED_RESPONSE,
    "early-hints": E.CONTENT,
    "body-on-204": E.MALFORMED_RESPONSE,
    "head-only": E.CONNECTION_RESET,
}
HEAD = {
    "many?n=100000": E.HEADERS_TOO_LARGE,
    "long": E.HEADERS_TOO_LARGE,
    "endless": E.HEADERS_TOO_LARGE,
    "cookies": E.HEADERS_TOO_LARGE,
    "echo": E.CONTENT,
    "not-latin": E.CONTENT,
    "strict-transport": E.CONTENT,
}
REDIRECT = {
    "chain/0": E.TOO_MANY_REDIRECTS,
    "chain/15": E.CONTENT,
    "endless/1": E.TOO_MANY_REDIRECTS,
    "loop/1": E.REDIRECT_LOOP,
    "loop/2a": E.REDIRECT_LOOP,
    "loop/3b": E.REDIRECT_LOOP,
    "cookie": E.CONTENT,
    "mixed/0": E.CONTENT,
    "other-host": E.CONTENT,
    "other-host-and-back": E.CONTENT,
    "unknown-host": E.DNS_FAILURE,
    "relative": E.CONTENT,
    "dots": E.CONTENT,
    "fragment": E.CONTENT,
    "space": E.CONTENT,
    "to-404": E.NOT_FOUND,
    "no-location": E.MALFORMED_RESPONSE,
    "empty-location": E.MALFORMED_RESPONSE,
    "two-locations": E.CONTENT,
    "multiple-choices": E.CONTENT,
    "bad-location": E.INVALID_URL,
}
OF_SCHEMES = {"file", "javascript", "data", "ftp"}
STATUS = {
    "limited": E.RATE_LIMITED,
    "limited-until": E.RATE_LIMITED,
    "limited-silent": E.RATE_LIMITED,
    "unavailable": E.SERVICE_UNAVAILABLE,
    "first-fails": E.SERVER_ERROR,
    "password": E.ACCESS_DENIED,
    "soft-404": E.CONTENT,
    "challenge": E.CHALLENGE,
    "unasked-304": E.MALFORMED_RESPONSE,
}


def cases() -> list[tuple[str, ExitCode]]:
    tables = {
        "time": TIME,
        "body": BODY,
        "frame": FRAME,
        "head": HEAD,
        "redirect": REDIRECT,
        "status": STATUS,
    }
    return [
        (f"{part}/{name}", code) for part, table in tables.items() for name, code in table.items()
    ]


@pytest.mark.parametrize(("name", "code"), cases())
async def test_harm(site: Site, name: str, code: ExitCode) -> None:
    limits = hurried(LIMITS, code)
    async with client(resolve=site.resolve("does-not-exist.invalid")) as fetch:
        got = await fetch(site.at(BASE + name, HOST), limits=limits, cookies=CookieJar())
        assert got.exit_code is code, got.message
        # The same client goes on as if nothing had been.
        after = await fetch(site.at("/hostile/redirect/end", HOST))
        assert after.exit_code is E.CONTENT


@pytest.mark.parametrize("part", ["time", "body", "frame", "head"])
def test_no_harm_is_left_out(site: Site, part: str) -> None:
    prefix = f"{BASE}{part}/"
    there = {p.target.removeprefix(prefix) for p in site.pages(HOST) if p.target.startswith(prefix)}
    tested = {name.partition("?")[0] for name, _ in cases() if name.startswith(f"{part}/")}
    assert there == {name.removeprefix(f"{part}/") for name in tested}


@pytest.mark.parametrize("name", UNSAFE)
async def test_unsafe_redirects(site: Site, name: str) -> None:
    async with client(allow_nets="127.0.0.0/8", resolve=site.resolve()) as fetch:
        got = await fetch(site.at(f"{BASE}redirect/unsafe/{name}", HOST))
    if name in OF_SCHEMES:
        assert got.exit_code is E.UNSUPPORTED_SCHEME
    elif name == "userinfo":
        assert got.exit_code is E.INVALID_URL
    elif name.startswith("loopback") and name != "loopback-v6":
        # Opened with the site, and nothing listens on port 1.
        assert got.exit_code is E.CONNECTION_REFUSED
    else:
        assert got.exit_code is E.UNSAFE_ADDRESS
