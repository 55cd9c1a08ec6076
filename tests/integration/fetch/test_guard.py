"""No URL, redirect, name or proxy leads to an address that is not open."""

from collections.abc import Sequence

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.support.origin_server import Client, Serve, client, page, redirect
from trapline.errors import ExitCode

ONE = "127.0.0.1"
TWO = "127.0.0.2"

SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "１２７.0.0.1",  # noqa: RUF001 (full-width digits, which are digits to a URL)
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "0.0.0.0",
    "[::]",
    "localhost",
]


def changing(*answers: str) -> "Changing":
    return Changing(answers)


class Changing:
    """A name server that gives another answer each time, and keeps to the last one."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, _host: str, _port: int) -> Sequence[str]:
        self.asked += 1
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


@pytest.mark.parametrize("host", SPELLINGS)
async def test_every_spelling_of_ourselves_is_refused(serve: Serve, host: str) -> None:
    origin = await serve({"/": page()})
    async with client(allow_nets="") as fetch:
        got = await fetch(f"http://{host}:{origin.port}/")
    assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert "TRAPLINE_ALLOW_NETS" in got.message
    assert origin.connections == 0


@pytest.mark.parametrize("host", SPELLINGS)
async def test_every_spelling_is_refused_in_a_redirect(serve: Serve, host: str) -> None:
    inner = await serve({"/": page(b"secret")})
    outer = await serve({"/a": redirect(f"http://{host}:{inner.port}/")}, host=TWO)
    async with client(allow_nets=f"{TWO}/32") as fetch:
        got = await fetch(outer.url("/a"))
    assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert len(got.redirects) == 1
    assert [trace.exit_code for trace in got.requests] == [
        ExitCode.REDIRECTED,
        ExitCode.UNSAFE_ADDRESS,
    ]
    assert inner.connections == 0


async def test_a_name_that_leads_inside(serve: Serve) -> None:
    origin = await serve({"/": page()})
    async with client(allow_nets="", lookup=changing(ONE)) as fetch:
        got = await fetch(f"http://inside.test:{origin.port}/")
    assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert origin.connections == 0


async def test_a_name_with_one_open_address_goes_there(serve: Serve) -> None:
    async def lookup(_host: str, _port: int) -> Sequence[str]:
        return [ONE, TWO, "::1"]

    open_one = await serve({"/": page()}, host=TWO)
    async with client(allow_nets=f"{TWO}/32", lookup=lookup) as fetch:
        got = await fetch(f"http://both.test:{open_one.port}/")
    assert (got.exit_code, got.remote_address) == (ExitCode.CONTENT, TWO)


async def test_a_name_that_changes_its_answer(serve: Serve) -> None:
    """The classic rebinding: an open address for the check, a private one for the connection."""
    inner = await serve({"/": page(b"secret", Connection="close")}, host=ONE)
    lookup = changing(TWO, ONE)
    async with client(allow_nets=f"{TWO}/32", lookup=lookup) as fetch:
        got = await fetch(f"http://rebind.test:{inner.port}/")
        # The one answer is both checked and used; nothing listens on the open address.
        assert got.exit_code is ExitCode.CONNECTION_REFUSED
        assert lookup.asked == 1
        fetch.fetcher._routes._direct.clear_dns_cache()
        got = await fetch(f"http://rebind.test:{inner.port}/")
        assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert inner.connections == 0


async def test_the_socket_is_checked_even_if_the_resolver_lies(serve: Serve) -> None:
    class Liar(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, **_: object) -> list[ResolveResult]:
            return [
                ResolveResult(hostname=host, host=a, port=port, family=2, proto=0, flags=0)
                for a in (ONE, "127.0.0.3")
            ]

        async def close(self) -> None: ...

    origin = await serve({"/": page(b"secret")})
    async with client(allow_nets="") as fetch:
        fetch.fetcher._routes._direct._resolver = Liar()
        got = await fetch(f"http://lied.test:{origin.port}/")
    assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert origin.connections == 0


async def test_pinned_names(serve: Serve) -> None:
    origin = await serve({"/": page()})
    pins = f"a.test:{origin.port}:{ONE},*.many.test:{origin.port}:{ONE}"
    async with client(resolve=pins, lookup=changing("192.0.2.1")) as fetch:
        assert (await fetch(f"http://a.test:{origin.port}/")).exit_code is ExitCode.CONTENT
        assert origin.sent("Host") == f"a.test:{origin.port}"
        assert (await fetch(f"http://x.many.test:{origin.port}/")).exit_code is ExitCode.CONTENT
        other = await fetch(f"http://b.test:{origin.port}/")
        assert other.exit_code is ExitCode.UNSAFE_ADDRESS
    async with client(resolve=pins, allow_nets="") as fetch:
        assert (await fetch(f"http://a.test:{origin.port}/")).exit_code is ExitCode.UNSAFE_ADDRESS


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("file:///etc/passwd", ExitCode.UNSUPPORTED_SCHEME),
        ("unix:///var/run/docker.sock", ExitCode.UNSUPPORTED_SCHEME),
        ("http+unix://%2Fvar%2Frun%2Fdocker.sock/", ExitCode.UNSUPPORTED_SCHEME),
        ("gopher://127.0.0.1/", ExitCode.UNSUPPORTED_SCHEME),
        ("http://user:secret@1.1.1.1/", ExitCode.INVALID_URL),
        ("http://1.1.1.1/\ud800", ExitCode.INVALID_URL),
        ("not a url", ExitCode.INVALID_URL),
        ("http://1.1.1.1/" + "x" * 65536, ExitCode.URL_TOO_LONG),
    ],
)
async def test_urls_that_are_not_fetched(fetch: Client, url: str, code: ExitCode) -> None:
    got = await fetch(url)
    assert got.exit_code is code
    assert got.requests == ()
    assert "secret" not in got.message


async def test_a_proxy(serve: Serve) -> None:
    proxy = await serve({})
    proxy.answers["http://public.test/a"] = page(b"through the proxy")
    async with client(allow_nets=f"{ONE}/32", lookup=changing("1.1.1.1")) as fetch:
        got = await fetch("http://public.test/a", proxy=f"http://me:secret@{ONE}:{proxy.port}")
    assert got.body == b"through the proxy"
    assert got.proxy == f"http://{ONE}:{proxy.port}"
    assert proxy.asked[0].startswith("GET http://public.test/a HTTP/1.1")
    assert (proxy.sent("Proxy-Authorization") or "").startswith("Basic ")


async def test_the_operators_proxy_may_be_at_a_private_address(serve: Serve) -> None:
    proxy = await serve({})
    proxy.answers["http://public.test/a"] = page(b"through the proxy")
    own = f"http://{ONE}:{proxy.port}"
    async with client(allow_nets="", proxy=own, lookup=changing("1.1.1.1")) as fetch:
        assert (await fetch("http://public.test/a")).body == b"through the proxy"


async def test_a_jobs_proxy_may_not_be_at_a_private_address(serve: Serve) -> None:
    proxy = await serve({})
    async with client(allow_nets="", lookup=changing("1.1.1.1")) as fetch:
        got = await fetch("http://public.test/a", proxy=f"http://{ONE}:{proxy.port}")
    assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert proxy.connections == 0


@pytest.mark.parametrize("host", ["inside.test", "10.0.0.1", "169.254.169.254", "[::1]"])
async def test_a_proxy_is_not_asked_for_private_targets(serve: Serve, host: str) -> None:
    proxy = await serve({})
    own = f"http://{ONE}:{proxy.port}"
    async with client(allow_nets="", proxy=own, lookup=changing("10.0.0.1")) as fetch:
        got = await fetch(f"http://{host}/a")
    assert got.exit_code is ExitCode.UNSAFE_ADDRESS
    assert proxy.connections == 0


@pytest.mark.parametrize("text", ["socks5://127.0.0.1:1", "127.0.0.1:8080", "http://", "http://["])
async def test_what_is_no_proxy(fetch: Client, text: str) -> None:
    assert (await fetch("http://1.1.1.1/", proxy=text)).exit_code is ExitCode.PROXY_FAILURE


async def test_a_proxy_that_is_not_there(serve: Serve) -> None:
    async with client(lookup=changing("1.1.1.1")) as fetch:
        got = await fetch("http://public.test/", proxy=f"http://{ONE}:1")
    assert got.exit_code is ExitCode.PROXY_FAILURE


async def test_a_proxy_that_wants_a_password(serve: Serve) -> None:
    answer = page(b"", "407 Proxy Authentication Required")
    proxy = await serve({"http://public.test/": answer})
    async with client(lookup=changing("1.1.1.1")) as fetch:
        got = await fetch("http://public.test/", proxy=f"http://{ONE}:{proxy.port}")
    assert got.exit_code is ExitCode.PROXY_FAILURE


async def test_a_proxy_that_refuses_to_tunnel(serve: Serve) -> None:
    proxy = await serve({"public.test:443": page(b"", "407 Proxy Authentication Required")})
    async with client(lookup=changing("1.1.1.1")) as fetch:
        got = await fetch("https://public.test/", proxy=f"http://{ONE}:{proxy.port}")
    assert got.exit_code is ExitCode.PROXY_FAILURE
    assert "407" in got.message


async def test_unknown_names() -> None:
    async def lookup(_host: str, _port: int) -> Sequence[str]:
        return []

    async with client(lookup=lookup) as nowhere:
        got = await nowhere("http://does-not-exist.invalid/")
    assert got.exit_code is ExitCode.DNS_FAILURE
    assert got.requests[0].exit_code is ExitCode.DNS_FAILURE
    assert got.status is None


async def test_nothing_listens(fetch: Client) -> None:
    got = await fetch("http://127.0.0.1:1/")
    assert got.exit_code is ExitCode.CONNECTION_REFUSED
