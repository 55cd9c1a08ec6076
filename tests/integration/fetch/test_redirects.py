"""Redirects are followed by us, hop by hop, each approved and recorded."""

import pytest

from tests.support.origin_server import Client, Serve, client, page, redirect
from trapline.errors import ExitCode
from trapline.fetch import CookieJar
from trapline.model import Approval, Conditional, FetchLimits, RedirectSource

END = page(b"<p>the end</p>")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_each_status(serve: Serve, fetch: Client, status: int) -> None:
    origin = await serve({"/a": redirect("/end", status), "/end": END})
    got = await fetch(origin.url("/a"))
    assert got.exit_code is ExitCode.CONTENT
    assert got.url == origin.url("/end")
    assert [trace.exit_code for trace in got.requests] == [ExitCode.REDIRECTED, ExitCode.CONTENT]
    [hop] = got.redirects
    assert (hop.from_url, hop.to_url) == (origin.url("/a"), origin.url("/end"))
    assert hop.source is RedirectSource.HTTP
    assert hop.permanent is (status in {301, 308})
    assert hop.request == 0
    assert origin.connections == 1


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("end", "/x/end"),
        ("./y/../end", "/x/end"),
        ("/end#part", "/end"),
        ("?q=1", "/x/a?q=1"),
        ("/a b", "/a%20b"),
        ("/\xc3\xa4", "/%C3%A4"),
        ("/\xe4", "/%C3%A4"),
    ],
)
async def test_locations_are_joined(serve: Serve, fetch: Client, location: str, path: str) -> None:
    answer = redirect("@").replace(b"@", location.encode("latin-1"))
    origin = await serve({"/x/a": answer} | dict.fromkeys(("/x/end", "/end"), END))
    got = await fetch(origin.url("/x/a"), limits=FetchLimits(redirects=1))
    assert origin.paths[1] == path
    assert got.redirects[0].to_url == origin.url(path)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (page(b"", "302 Found"), ExitCode.MALFORMED_RESPONSE),
        (redirect(""), ExitCode.MALFORMED_RESPONSE),
        (redirect("http://[::"), ExitCode.INVALID_URL),
        (redirect("http://user:secret@a.test/"), ExitCode.INVALID_URL),
        (redirect("file:///etc/passwd"), ExitCode.UNSUPPORTED_SCHEME),
        (redirect("javascript:alert(1)"), ExitCode.UNSUPPORTED_SCHEME),
        (redirect("/" + "x" * 20_000), ExitCode.URL_TOO_LONG),
        (redirect("/a"), ExitCode.REDIRECT_LOOP),
    ],
)
async def test_where_a_redirect_cannot_lead(
    serve: Serve, fetch: Client, answer: bytes, code: ExitCode
) -> None:
    origin = await serve({"/a": answer})
    got = await fetch(origin.url("/a"))
    assert got.exit_code is code
    assert len(origin.asked) == 1
    assert len(got.requests) == 1
    assert "secret" not in got.message


async def test_circle(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": redirect("/b"), "/b": redirect("/a")})
    got = await fetch(origin.url("/a"))
    assert got.exit_code is ExitCode.REDIRECT_LOOP
    assert len(got.redirects) == 2
    assert origin.paths == ["/a", "/b"]


async def test_too_many(serve: Serve, fetch: Client) -> None:
    origin = await serve({f"/{n}": redirect(f"/{n + 1}") for n in range(50)})
    got = await fetch(origin.url("/0"), limits=FetchLimits(redirects=3))
    assert got.exit_code is ExitCode.TOO_MANY_REDIRECTS
    assert origin.paths == ["/0", "/1", "/2", "/3"]
    got = await fetch(origin.url("/50"), limits=FetchLimits(redirects=0))
    assert got.exit_code is ExitCode.NOT_FOUND


async def test_every_hop_is_approved(serve: Serve, fetch: Client) -> None:
    seen: list[str] = []

    async def approve(url: str) -> Approval:
        seen.append(url)
        refused = url.endswith("/c")
        return Approval(ExitCode.OUT_OF_SCOPE if refused else None)

    origin = await serve({"/a": redirect("/b"), "/b": redirect("/c"), "/c": END})
    got = await fetch(origin.url("/a"), approve=approve)
    assert seen == [origin.url(path) for path in ("/a", "/b", "/c")]
    assert got.exit_code is ExitCode.OUT_OF_SCOPE
    assert got.url == origin.url("/c")
    assert len(got.redirects) == 2
    assert origin.paths == ["/a", "/b"]


async def test_a_site_that_tests_for_cookies(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": redirect("/a", Set_Cookie="seen=1; Path=/")})
    jar = CookieJar()
    got = await fetch(origin.url("/a"), cookies=jar)
    # It redirects for ever, but not before the cookie has come back once.
    assert got.exit_code is ExitCode.REDIRECT_LOOP
    assert [origin.sent("Cookie", at) for at in range(2)] == [None, "seen=1"]
    assert len(origin.asked) == 2


async def test_secrets_do_not_cross_to_another_origin(serve: Serve) -> None:
    other = await serve({"/end": END})
    origin = await serve({"/a": redirect(other.url("/end")), "/b": redirect("/a")})
    async with client() as fetch:
        await fetch(
            origin.url("/b"), headers={"Authorization": "Bearer x", "Cookie": "a=1", "X-Own": "1"}
        )
    assert [origin.sent("Authorization", at) for at in range(2)] == ["Bearer x"] * 2
    assert other.sent("Authorization") is None
    assert other.sent("Cookie") is None
    assert other.sent("X-Own") == "1"


async def test_validators_go_to_the_url_that_gave_them(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": redirect("/end"), "/end": page(b"", "304 Not Modified")})
    known = Conditional(url=origin.url("/end"), etag='"v1"')
    got = await fetch(origin.url("/a"), conditional=known)
    assert got.exit_code is ExitCode.NOT_MODIFIED
    assert [origin.sent("If-None-Match", at) for at in range(2)] == [None, '"v1"']


async def test_a_long_body_of_a_redirect_is_not_read(serve: Serve, fetch: Client) -> None:
    long = b"x" * 5_000_000
    origin = await serve({"/a": page(long, "302 Found", Location="/end"), "/end": END})
    got = await fetch(origin.url("/a"))
    assert got.exit_code is ExitCode.CONTENT
    assert origin.connections == 2
