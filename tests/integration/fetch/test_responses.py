"""What comes back: bytes, facts and traces."""

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import brotli
import pytest
import zstandard

from tests.support.origin_server import Client, Serve, page
from trapline.errors import OUTCOMES, Category, ExitCode, InvalidInput
from trapline.fetch import CookieJar
from trapline.model import Approval, Conditional

BODY = b"<!doctype html><title>Hello</title><p>Words.</p>"
MODIFIED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def test_a_page(serve: Serve, fetch: Client) -> None:
    when = format_datetime(MODIFIED, usegmt=True)
    answer = page(BODY, ETag='"v1"', Last_Modified=when, CF_Cache_Status="HIT", Age="5")
    origin = await serve({"/a": answer})
    before = datetime.now(UTC)
    got = await fetch(origin.url("/a"))
    assert (got.exit_code, got.status, got.body) == (ExitCode.CONTENT, 200, BODY)
    assert got.message == OUTCOMES[ExitCode.CONTENT].sentence
    assert got.url == origin.url("/a")
    assert (got.content_type, got.sniffed_type, got.media_type) == ("text/html",) * 3
    assert (got.etag, got.last_modified) == ('"v1"', MODIFIED)
    assert (got.header("CF-Cache-Status"), got.header("Age")) == ("HIT", "5")
    assert got.header("x-nothing") is None
    assert got.wire_bytes == len(BODY)
    assert got.remote_address == "127.0.0.1"
    assert (got.redirects, got.retry_after, got.proxy) == ((), None, None)
    [trace] = got.requests
    assert (trace.url, trace.status, trace.etag) == (got.url, 200, '"v1"')
    assert trace.exit_code is ExitCode.CONTENT
    assert trace.robots_approved
    assert before <= trace.sent_at <= datetime.now(UTC)


async def test_interim_responses_are_counted(serve: Serve, fetch: Client) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    origin = await serve({"/few": hints * 16 + page(BODY), "/many": hints * 5_000 + page(BODY)})
    assert (await fetch(origin.url("/few"))).body == BODY
    got = await fetch(origin.url("/many"))
    assert got.exit_code is ExitCode.MALFORMED_RESPONSE
    assert "more than 16 interim responses" in got.message


async def test_repeated_headers(serve: Serve, fetch: Client) -> None:
    repeated = [
        ("Set-Cookie", "a=1"),
        ("Vary", "Accept"),
        ("Set-Cookie", "b=2"),
        ("Link", "</x>; rel=canonical"),
        ("Cache-Control", "public"),
        ("Link", "</y>; rel=next"),
        ("Vary", "Cookie"),
        ("Cache-Control", "max-age=60"),
    ]
    lines = "".join(f"{name}: {value}\r\n" for name, value in repeated).encode()
    whole = page(BODY).replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n", 1)
    origin = await serve({"/a": whole})
    jar = CookieJar()
    got = await fetch(origin.url("/a"), cookies=jar)
    assert (got.exit_code, got.body) == (ExitCode.CONTENT, BODY)
    assert list(got.headers[-len(repeated) :]) == repeated
    assert got.header("Link") == "</x>; rel=canonical, </y>; rel=next"
    assert got.header("Cache-Control") == "public, max-age=60"
    assert jar.header(origin.url("/a")) == "a=1; b=2"


async def test_codings_in_repeated_headers(serve: Serve, fetch: Client) -> None:
    coded = brotli.compress(gzip.compress(BODY))
    twice = page(coded, Content_Encoding="gzip").replace(
        b"Content-Encoding: gzip", b"Content-Encoding: gzip\r\nContent-Encoding: br"
    )
    got = await fetch((await serve({"/a": twice})).url("/a"))
    assert got.body == BODY


async def test_times_of_a_new_and_of_a_reused_connection(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(BODY)})
    [first] = (await fetch(origin.url("/a"))).requests
    [second] = (await fetch(origin.url("/a"))).requests
    assert origin.connections == 1
    assert first.dns_ms is not None
    assert first.connect_ms is not None
    assert first.tls_ms is None
    assert first.first_byte_ms is not None
    steps = first.dns_ms + first.connect_ms
    assert 0 < steps < first.first_byte_ms <= first.total_ms
    assert (second.dns_ms, second.connect_ms) == (None, None)
    assert second.first_byte_ms is not None


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
async def test_compressed(serve: Serve, fetch: Client, coding: str) -> None:
    encode = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstandard.compress}[coding]
    packed = encode(BODY)
    origin = await serve({"/a": page(packed, Content_Encoding=coding)})
    got = await fetch(origin.url("/a"))
    assert got.body == BODY
    assert got.wire_bytes == len(packed)
    assert coding in (origin.sent("Accept-Encoding") or "")


async def test_chunks(serve: Serve, fetch: Client) -> None:
    parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:10], BODY[10:]))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    origin = await serve({"/a": head + parts + b"0\r\n\r\n"})
    got = await fetch(origin.url("/a"))
    assert got.body == BODY
    assert got.media_type == "text/html"
    await fetch(origin.url("/a"))
    assert origin.connections == 1


async def test_conditional_request(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(b"", "304 Not Modified", ETag='"v1"')})
    known = Conditional(url=origin.url("/a"), etag='"v1"', last_modified=MODIFIED)
    got = await fetch(origin.url("/a"), conditional=known)
    assert got.exit_code is ExitCode.NOT_MODIFIED
    assert got.body == b""
    assert origin.sent("If-None-Match") == '"v1"'
    assert origin.sent("If-Modified-Since") == "Fri, 02 Jan 2026 03:04:05 GMT"


async def test_validators_are_not_sent_elsewhere(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(BODY)})
    known = Conditional(url=origin.url("/b"), etag='"v1"')
    got = await fetch(origin.url("/a"), conditional=known)
    assert got.exit_code is ExitCode.CONTENT
    assert origin.sent("If-None-Match") is None


async def test_an_unasked_304_is_no_content(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(b"", "304 Not Modified")})
    assert (await fetch(origin.url("/a"))).exit_code is ExitCode.MALFORMED_RESPONSE


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (404, Category.GONE),
        (410, Category.GONE),
        (401, Category.BLOCKED),
        (403, Category.BLOCKED),
        (451, Category.BLOCKED),
        (429, Category.TRANSIENT),
        (500, Category.TRANSIENT),
        (503, Category.TRANSIENT),
    ],
)
async def test_error_pages_are_kept(
    serve: Serve, fetch: Client, status: int, category: Category
) -> None:
    origin = await serve({"/a": page(BODY, f"{status} No")})
    got = await fetch(origin.url("/a"))
    assert OUTCOMES[got.exit_code].category is category
    assert got.body == BODY
    assert got.requests[0].exit_code is got.exit_code
    assert str(status) in got.message


async def test_retry_after(serve: Serve, fetch: Client) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    origin = await serve(
        {
            "/seconds": page(BODY, "429 Slow", Retry_After="30"),
            "/date": page(BODY, "503 Busy", Retry_After=later),
        }
    )
    assert (await fetch(origin.url("/seconds"))).retry_after == 30
    until = (await fetch(origin.url("/date"))).retry_after
    assert until is not None
    assert 0 < until <= 100


async def test_a_challenge(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(BODY, "403 Forbidden", cf_mitigated="challenge")})
    assert (await fetch(origin.url("/a"))).exit_code is ExitCode.CHALLENGE


async def test_what_is_sent(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(BODY)})
    await fetch(
        origin.url("/a?b=%20c"),
        headers={"X-Own": "1", "Host": "evil.test"},
        mobile=True,
        language="de-DE",
        user_agent="Mozilla/5.0 (compatible; Own/1)",
    )
    assert origin.asked[-1].startswith("GET /a?b=%20c HTTP/1.1\r\n")
    assert origin.sent("Host") == f"127.0.0.1:{origin.port}"
    assert origin.sent("X-Own") == "1"
    assert origin.sent("Accept-Language") == "de-DE"
    agent = origin.sent("User-Agent") or ""
    assert "Mobile" in agent
    assert "Own/1" in agent


async def test_headers_of_the_caller_are_checked(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(BODY)})
    with pytest.raises(InvalidInput):
        await fetch(origin.url("/a"), headers={"X-A": "1\r\nX-B: 2"})
    assert origin.asked == []


async def test_validators_cannot_smuggle(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/a": page(BODY)})
    with pytest.raises(InvalidInput):
        await fetch(
            origin.url("/a"), conditional=Conditional(url=origin.url("/a"), etag='"x"\r\nX-B: 2')
        )
    await origin.until(connected=0)
    assert origin.asked == []


async def test_informational_answers_are_passed_over(serve: Serve, fetch: Client) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    origin = await serve({"/a": hints * 3 + page(BODY)})
    got = await fetch(origin.url("/a"))
    assert (got.status, got.body) == (200, BODY)
    assert got.header("Link") is None


async def test_no_other_protocol_is_switched_to(serve: Serve, fetch: Client) -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
    origin = await serve({"/a": answer})
    got = await fetch(origin.url("/a"))
    assert got.exit_code is ExitCode.MALFORMED_RESPONSE
    await origin.until(connected=0)


async def test_cookies_of_a_job(serve: Serve, fetch: Client) -> None:
    origin = await serve({"/set": page(BODY, Set_Cookie="a=1; Path=/"), "/get": page(BODY)})
    jar = CookieJar()
    await fetch(origin.url("/set"), cookies=jar)
    await fetch(origin.url("/get"), cookies=jar, headers={"cookie": "b=2"})
    assert origin.sent("Cookie") == "b=2; a=1"
    await fetch(origin.url("/get"))
    assert origin.sent("Cookie") is None


async def test_bytes_in_headers(serve: Serve, fetch: Client) -> None:
    answer = b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nETag: \xff\r\nContent-Length: 0\r\n\r\n"
    origin = await serve({"/a": answer})
    got = await fetch(origin.url("/a"))
    assert got.header("X-Name") == "café"
    assert (got.etag or "").encode()


async def test_overruled_robots_are_recorded(serve: Serve, fetch: Client) -> None:
    async def overrule(_url: str) -> Approval:
        return Approval(robots_approved=False)

    origin = await serve({"/a": page(BODY)})
    got = await fetch(origin.url("/a"), approve=overrule)
    assert got.exit_code is ExitCode.CONTENT
    assert not got.requests[0].robots_approved


async def test_refused_before_anything_is_sent(serve: Serve, fetch: Client) -> None:
    async def refuse(_url: str) -> Approval:
        return Approval(ExitCode.ROBOTS_DISALLOWED, "Disallow: /")

    origin = await serve({"/a": page(BODY)})
    got = await fetch(origin.url("/a"), approve=refuse)
    assert got.exit_code is ExitCode.ROBOTS_DISALLOWED
    assert "Disallow: /" in got.message
    assert (got.requests, origin.connections) == ((), 0)


async def test_many_at_once(serve: Serve, fetch: Client) -> None:
    origin = await serve({f"/{n}": page(f"page {n}".encode()) for n in range(200)})
    got = await asyncio.gather(*(fetch(origin.url(f"/{n}")) for n in range(200)))
    assert [one.body.decode() for one in got] == [f"page {n}" for n in range(200)]
