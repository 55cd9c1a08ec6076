"""TLS: what is trusted, what is not and why, and hosts that want nothing else."""

import asyncio

import pytest

from tests.site.site import Site
from tests.support.origin_server import Listen, Serve, client
from trapline.errors import ExitCode
from trapline.model import RedirectSource

STRICT = "/hostile/head/strict-transport"


async def test_a_trusted_certificate(site: Site) -> None:
    url = site.tls("good")
    async with client(resolve=site.resolve(), tls=site.authority.client_context()) as fetch:
        got = await fetch(url)
        again = await fetch(url)
    assert got.exit_code is ExitCode.CONTENT
    [trace] = got.requests
    assert trace.tls_ms is not None
    assert trace.connect_ms is not None
    assert 0 < trace.tls_ms < trace.total_ms
    assert again.requests[0].tls_ms is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("good", "issuer is not known"),
        ("self-signed", "signed by itself"),
        ("expired", "has expired"),
        ("not-yet-valid", "not valid yet"),
        ("wrong-host", "another host name"),
    ],
)
async def test_each_reason_not_to_trust(site: Site, kind: str, words: str) -> None:
    url = site.tls(kind)
    trusting = None if kind == "good" else site.authority.client_context()
    async with client(resolve=site.resolve(), tls=trusting) as fetch:
        got = await fetch(url)
        assert got.exit_code is ExitCode.TLS_FAILURE
        assert words in got.message
        assert got.requests[0].exit_code is ExitCode.TLS_FAILURE
        unverified = await fetch(url, verify_tls=False)
        assert unverified.exit_code is ExitCode.CONTENT
        # A connection that was not verified is not lent to a request that wants it verified.
        assert (await fetch(url)).exit_code is ExitCode.TLS_FAILURE
    assert len(site.log) == 1


def alert(number: int) -> bytes:
    """Return a fatal alert of TLS."""
    return bytes([0x15, 3, 1, 0, 2, 2, number])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS"),
        (alert(70), "versions of TLS"),
        (alert(40), "no way to encrypt"),
        (alert(112), "no certificate for this host"),
        (b"", "ended the handshake"),
    ],
)
async def test_handshakes_that_fail(listen: Listen, answer: bytes, words: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)

    async with client() as fetch:
        got = await fetch(f"https://127.0.0.1:{await listen(refuse)}/")
    if answer:
        assert got.exit_code is ExitCode.TLS_FAILURE
        assert words in got.message
    else:
        assert got.exit_code in {ExitCode.TLS_FAILURE, ExitCode.CONNECTION_RESET}


async def test_http_to_a_tls_port(site: Site) -> None:
    url = site.tls("good").replace("https:", "http:")
    async with client(resolve=site.resolve()) as fetch:
        got = await fetch(url)
    assert got.exit_code in {ExitCode.CONNECTION_RESET, ExitCode.MALFORMED_RESPONSE}


async def test_a_handshake_that_never_comes(listen: Listen) -> None:
    async def say_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with client(fetch_connect_timeout=0.3) as fetch:
        got = await fetch(f"https://127.0.0.1:{await listen(say_nothing)}/")
    assert got.exit_code is ExitCode.CONNECT_TIMEOUT


async def test_strict_hosts_are_upgraded(site: Site) -> None:
    secure = site.tls("good", target=STRICT)
    plain = site.tls("good").replace("https:", "http:")
    async with client(resolve=site.resolve(), tls=site.authority.client_context()) as fetch:
        await fetch(secure)
        got = await fetch(plain)
    assert got.exit_code is ExitCode.CONTENT
    assert got.url == site.tls("good")
    [hop] = got.redirects
    assert hop.source is RedirectSource.HSTS
    assert hop.permanent
    assert hop.request is None
    assert len(got.requests) == 1


async def test_what_was_not_verified_makes_no_host_strict(site: Site) -> None:
    secure = site.tls("good", target=STRICT)
    plain = site.tls("good").replace("https:", "http:")
    async with client(resolve=site.resolve()) as fetch:
        await fetch(secure, verify_tls=False)
        await fetch(site.at(STRICT, "trapline.test"))
        got = await fetch(plain)
    assert got.redirects == ()


async def test_downgrade(site: Site) -> None:
    secure = site.tls("good", target="/down")
    there = site.at("/", "trapline.test")
    site.change("/down", status=302, headers=(("Location", there),), body=b"")
    async with client(resolve=site.resolve(), tls=site.authority.client_context()) as fetch:
        got = await fetch(secure, headers={"Authorization": "Bearer x"})
    assert got.exit_code is ExitCode.CONTENT
    assert [(r.from_url, r.to_url) for r in got.redirects] == [(secure, there)]
    sent = [entry.headers.get("authorization") for entry in site.log]
    assert sent == ["Bearer x", None]


async def test_https_through_a_proxy(site: Site, serve: Serve) -> None:
    """The tunnel is opened by CONNECT; the certificate is that of the target, not of the proxy."""
    proxy = await serve({})
    url = site.tls("good")
    port = int(url.rsplit(":", 1)[1].rstrip("/"))

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        copies = [copy(reader, far_writer), copy(far_reader, writer)]
        await asyncio.gather(*copies, return_exceptions=True)
        far_writer.close()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    proxy.answers[f"trapline.test:{port}"] = tunnel
    trusting = site.authority.client_context()
    async with client(resolve=site.resolve(), tls=trusting) as fetch:
        got = await fetch(url, proxy=f"http://127.0.0.1:{proxy.port}")
    assert got.exit_code is ExitCode.CONTENT
    assert proxy.asked[0].startswith(f"CONNECT trapline.test:{port} HTTP/1.1")
    assert got.proxy == f"http://127.0.0.1:{proxy.port}"
