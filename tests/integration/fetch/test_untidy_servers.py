"""Servers as untidy as the web's: what browsers read is read, the rest ends with a clear message."""

import asyncio
import gzip

import pytest

from tests.support.origin_server import Client, Serve, page, redirect
from trapline.errors import ExitCode
from trapline.fetch import CookieJar

BODY = b"<!doctype html><title>Hello</title><p>Words.</p>"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)


def raw(head: bytes, body: bytes = BODY, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return status + b"\r\n" + head + b"\r\n" + body


CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
READABLE = {
    "repeated": raw(LENGTH + b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nVary: A\r\nVary: B\r\n"),
    "lower-case": raw(b"content-type: text/html\r\ncontent-length: %d\r\n" % len(BODY)),
    "upper-case": raw(b"CONTENT-TYPE: TEXT/HTML\r\nCONTENT-LENGTH: %d\r\n" % len(BODY)),
    "empty values": raw(LENGTH + b"P3P:\r\nX-Empty: \r\nContent-Language:\r\n"),
    "non-ASCII values": raw(LENGTH + b"X-Latin: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\n"),
    "long value": raw(LENGTH + b"Content-Security-Policy: " + b"a" * 8_000 + b"\r\n"),
    "dozens of cookies": raw(
        LENGTH + b"".join(b"Set-Cookie: c%d=%d; Path=/\r\n" % (n, n) for n in range(60))
    ),
    "chunked": raw(b"Transfer-Encoding: chunked\r\n", CHUNKED),
    "chunked and a length": raw(b"Transfer-Encoding: chunked\r\nContent-Length: 7\r\n", CHUNKED),
    "a length and chunked": raw(b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", CHUNKED),
    "chunk extension": raw(
        b"Transfer-Encoding: chunked\r\n", b"%x;a=b\r\n%s\r\n0\r\nX: y\r\n\r\n" % (len(BODY), BODY)
    ),
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    + raw(LENGTH),
    "HTTP/1.0 keep-alive": raw(LENGTH + b"Connection: keep-alive\r\n", status=b"HTTP/1.0 200 OK"),
    "no reason": raw(LENGTH, status=b"HTTP/1.1 200"),
    "long reason": raw(LENGTH, status=b"HTTP/1.1 200 " + b"Fine " * 50),
    "double content type": raw(
        LENGTH + b"Content-Type: text/html\r\nContent-Type: text/html; charset=utf-8\r\n"
    ),
    "wrong content type": raw(LENGTH + b"Content-Type: html\r\n"),
    "wrong charset": raw(LENGTH + b"Content-Type: text/html; charset=nonsense; charset=utf8\r\n"),
    "same length twice": raw(LENGTH + LENGTH),
    "folded": raw(LENGTH + b"X-Folded: one\r\n two\r\n\tthree\r\n"),
    "bare newlines": raw(LENGTH).replace(b"\r\n", b"\n"),
    "space before colon": raw(LENGTH + b"X-Odd : value\r\n"),
    "identity coding": raw(LENGTH + b"Content-Encoding: identity\r\n"),
    "unknown coding": raw(LENGTH + b"Content-Encoding: utf-8\r\n"),
    "empty coding": raw(LENGTH + b"Content-Encoding:\r\n"),
    "refresh": raw(LENGTH + b"Refresh: 5; url=/other\r\n"),
}


@pytest.mark.parametrize("name", READABLE)
async def test_what_browsers_read_is_read(name: str, serve: Serve, fetch: Client) -> None:
    async def perform(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(READABLE[name])
        await writer.drain()

    origin = await serve({"/a": perform})
    got = await fetch(origin.url("/a"), cookies=CookieJar())
    assert (got.exit_code, got.body) == (ExitCode.CONTENT, BODY), got.message


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/b#part", "/b"),
        ("b", "/b"),
        ("//{host}/b", "/b"),
        ("/caf\u00e9", "/caf%C3%A9"),
        ("/a b", "/a%20b"),
        (" /b ", "/b"),
        ("HTTP://{host}/b", "/b"),
    ],
)
async def test_odd_locations(location: str, path: str, serve: Serve, fetch: Client) -> None:
    origin = await serve({})
    to = location.format(host=f"{origin.host}:{origin.port}")
    origin.answers |= {"/a": redirect(to), path.partition("?")[0]: page(BODY)}
    got = await fetch(origin.url("/a"))
    assert (got.exit_code, got.url) == (ExitCode.CONTENT, origin.url(path))


@pytest.mark.parametrize("head", [b"Location:\r\n", b""])
async def test_a_redirect_without_a_target(head: bytes, serve: Serve, fetch: Client) -> None:
    answer = raw(head + LENGTH, status=b"HTTP/1.1 302 Found")
    got = await fetch((await serve({"/a": answer})).url("/a"))
    assert got.exit_code is ExitCode.MALFORMED_RESPONSE
    assert "Location" in got.message


@pytest.mark.parametrize(
    "head",
    [b"Content-Encoding: gzip\r\n" + LENGTH, b"Content-Length: 1\r\nContent-Length: 2\r\n"],
)
async def test_lies_that_browsers_refuse(head: bytes, serve: Serve, fetch: Client) -> None:
    got = await fetch((await serve({"/a": raw(head)})).url("/a"))
    assert got.exit_code is ExitCode.MALFORMED_RESPONSE


async def test_coding_within_a_coding(serve: Serve, fetch: Client) -> None:
    body = gzip.compress(gzip.compress(BODY))
    answer = raw(b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", body)

    async def perform(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    got = await fetch((await serve({"/a": perform})).url("/a"))
    assert got.body == BODY


async def test_a_site_that_needs_its_cookie(serve: Serve, fetch: Client) -> None:
    async def perform(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_known = "pass=1" in (origin.sent("Cookie") or "")
        answer = page(BODY) if is_known else redirect("/a", Set_Cookie="pass=1; Path=/")
        writer.write(answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        await writer.drain()

    origin = await serve({"/a": perform})
    got = await fetch(origin.url("/a"), cookies=CookieJar())
    assert (got.exit_code, got.body) == (ExitCode.CONTENT, BODY)


async def test_a_server_that_answers_one_agent_only(serve: Serve, fetch: Client) -> None:
    async def perform(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_liked = (origin.sent("User-Agent") or "").startswith("Liked")
        writer.write(page(BODY) if is_liked else page(b"no", "403 Forbidden"))
        await writer.drain()

    origin = await serve({"/a": perform})
    assert (await fetch(origin.url("/a"))).exit_code is ExitCode.ACCESS_DENIED
    got = await fetch(origin.url("/a"), user_agent="Liked/1.0")
    assert got.exit_code is ExitCode.CONTENT
