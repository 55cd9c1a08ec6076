"""The test site's hostile part, seen through raw sockets: each harm is as harmful as it says."""

import contextlib
import gzip
import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import Iterator

import kreuzberg
import pypdfium2
import pytest
import zstandard

from tests.site import files, statuses
from tests.site.certificates import KINDS
from tests.site.hostile.documents import NEEDLE
from tests.site.hostile.framing import ANSWERS
from tests.site.hostile.spellings import NONSENSE
from tests.site.redirects import CODES, LONG_CHAIN, UNSAFE
from tests.site.site import Site

SIZE_OF_A_LOT = 5_000_000


@contextlib.contextmanager
def asked(
    site: Site, target: str, *headers: str, host: str = "hostile.test"
) -> Iterator[socket.socket]:
    """Send one request by hand and hand over the socket."""
    lines = (f"GET {target} HTTP/1.1", f"Host: {host}:{site.port}", "Connection: close", *headers)
    with socket.create_connection((site.address, site.port), timeout=30) as client:
        client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        yield client


def read(client: socket.socket, most: int = 100_000_000) -> bytes:
    """Return what comes until the server ends, or enough has come."""
    data = bytearray()
    while len(data) < most and (piece := client.recv(1 << 18)):
        data += piece
    return bytes(data)


def read_into(data: bytearray, client: socket.socket) -> None:
    while piece := client.recv(1 << 16):
        data += piece


def fetch(site: Site, target: str, *headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of a well-formed answer."""
    with asked(site, target, *headers) as client:
        head, _, body = read(client).partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in rest)
    return int(first.split(" ")[1]), {name.lower(): value for name, _, value in pairs}, body


def location(site: Site, target: str) -> str:
    status, headers, _ = fetch(site, target)
    assert status in CODES, target
    return headers["location"]


@pytest.mark.parametrize("code", CODES)
def test_redirect_by_status(site: Site, code: int) -> None:
    status, headers, _ = fetch(site, f"/hostile/redirect/{code}")
    assert (status, headers["location"]) == (code, "/hostile/redirect/end")


def test_redirect_chains_end_and_circles_do_not(site: Site) -> None:
    at, hops = "/hostile/redirect/chain/0", 0
    while at != "/hostile/redirect/end":
        at, hops = location(site, at), hops + 1
    assert hops == LONG_CHAIN
    assert location(site, "/hostile/redirect/loop/1") == "/hostile/redirect/loop/1"
    there = location(site, "/hostile/redirect/loop/2a")
    assert location(site, there) == "/hostile/redirect/loop/2a"
    assert location(site, "/hostile/redirect/endless/41") == "/hostile/redirect/endless/42"


@pytest.mark.parametrize("name", sorted(UNSAFE))
def test_redirect_to_where_nobody_should_go(site: Site, name: str) -> None:
    assert location(site, f"/hostile/redirect/unsafe/{name}") == UNSAFE[name]


def test_redirects_in_the_document_and_in_other_headers(site: Site) -> None:
    end = "/hostile/redirect/end"
    assert f'content="0; url={end}"'.encode() in fetch(site, "/hostile/redirect/meta")[2]
    assert f'rel="canonical" href="{end}"'.encode() in fetch(site, "/hostile/redirect/canonical")[2]
    assert fetch(site, "/hostile/redirect/refresh-header")[1]["refresh"] == f"0; url={end}"
    assert fetch(site, "/hostile/redirect/canonical-header")[1]["link"].startswith(f"<{end}>")
    assert "location" not in fetch(site, "/hostile/redirect/no-location")[1]


def test_redirect_across_hosts(site: Site) -> None:
    to = location(site, "/hostile/redirect/other-host")
    assert to == f"http://other.test:{site.port}/"


def test_redirect_that_wants_its_cookie_back(site: Site) -> None:
    status, headers, _ = fetch(site, "/hostile/redirect/cookie")
    assert status == 302
    cookie = headers["set-cookie"].partition(";")[0]
    assert fetch(site, "/hostile/redirect/cookie", f"Cookie: {cookie}")[0] == 200


@pytest.mark.parametrize("code", [204, 400, 401, 403, 404, 410, 418, 451, 500, 502, 503, 504])
def test_any_status_can_be_had(site: Site, code: int) -> None:
    assert fetch(site, f"/hostile/status/{code}")[0] == code


def test_failures_come_in_a_fixed_order(site: Site) -> None:
    def seen(target: str, times: int) -> list[int]:
        return [fetch(site, target)[0] for _ in range(times)]

    assert seen("/hostile/status/now-and-then", 7) == [200, 200, 500, 200, 200, 500, 200]
    assert seen("/hostile/status/limited?n=2", 3) == [429, 429, 200]
    assert seen("/hostile/status/unavailable", 2) == [503, 200]
    assert seen("/hostile/status/first-fails?status=502", 2) == [502, 200]
    site.reset()
    assert seen("/hostile/status/limited?n=2", 1) == [429]


def test_retry_after_in_both_forms(site: Site) -> None:
    assert fetch(site, "/hostile/status/limited?after=5")[1]["retry-after"] == "5"
    assert fetch(site, "/hostile/status/limited-until")[1]["retry-after"].endswith("GMT")
    assert "retry-after" not in fetch(site, "/hostile/status/limited-silent")[1]


def test_password_opens(site: Site) -> None:
    status, headers, _ = fetch(site, "/hostile/status/password")
    assert (status, headers["www-authenticate"]) == (401, 'Basic realm="hut"')
    secret = b64encode(f"{statuses.USER}:{statuses.PASSWORD}".encode()).decode()
    assert fetch(site, "/hostile/status/password", f"Authorization: Basic {secret}")[0] == 200


def test_slow_answers_take_their_time(site: Site) -> None:
    for target in ("slow-first-byte", "slow-body"):
        status, _, body = fetch(site, f"/hostile/time/{target}?seconds=0.2")
        assert (status, body[-8:]) == (200, b"</html>\n")
    for entry in site.log:
        assert entry.finished is not None
        assert entry.finished - entry.started >= 0.2


@pytest.mark.parametrize(
    ("target", "said"),
    [("hang", b""), ("hang-after-head", b"\r\n\r\n"), ("hang-in-body", b"<main>")],
)
def test_silence_lasts(site: Site, target: str, said: bytes) -> None:
    with asked(site, f"/hostile/time/{target}") as client:
        data = bytearray()
        while said not in data:
            data += client.recv(1 << 16)
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            read_into(data, client)


def test_head_that_never_ends(site: Site) -> None:
    with asked(site, "/hostile/time/slow-head?seconds=0.01") as client:
        assert b"\r\n\r\n" not in read(client, most=200)


def test_connections_are_closed_and_reset(site: Site) -> None:
    with asked(site, "/hostile/time/close") as client:
        assert read(client) == b""
    with asked(site, "/hostile/time/reset") as client, pytest.raises(ConnectionResetError):
        read(client)
    with asked(site, "/hostile/time/reset-in-body") as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        with pytest.raises(ConnectionResetError):
            read(client)
    with asked(site, "/hostile/time/close-once") as client:
        assert read(client) == b""
    assert fetch(site, "/hostile/time/close-once")[0] == 200


@pytest.mark.parametrize("target", ["endless", "endless-chunks", "endless-line"])
def test_endless_bodies_stop_only_with_their_reader(site: Site, target: str) -> None:
    with asked(site, f"/hostile/body/{target}") as client:
        assert len(read(client, most=SIZE_OF_A_LOT)) >= SIZE_OF_A_LOT
    site.log.wait(lambda log: all(entry.aborted for entry in log))


def test_endless_headers(site: Site) -> None:
    with asked(site, "/hostile/head/endless") as client:
        assert b"\r\n\r\n" not in read(client, most=SIZE_OF_A_LOT)


def test_huge_body_has_its_announced_length(site: Site) -> None:
    _, headers, body = fetch(site, "/hostile/body/huge?mb=3")
    assert int(headers["content-length"]) == len(body) == 3_000_000


def test_ten_gigabytes_are_announced_and_cost_nothing(site: Site) -> None:
    with asked(site, "/hostile/body/huge?mb=10000") as client:
        assert b"Content-Length: 10000000000\r\n" in client.recv(200)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_bombs_swell(site: Site, coding: str) -> None:
    _, headers, body = fetch(site, f"/hostile/body/{coding}-bomb?mb=30")
    assert headers["content-encoding"] == coding
    if coding == "zstd":
        size = sum(map(len, zstandard.ZstdDecompressor().read_to_iter(body)))
    else:
        size = len(zlib.decompress(body, wbits=47))
    assert size == 30_000_000
    assert len(body) < size / 500


def test_packed_bodies_that_cannot_be_unpacked(site: Site) -> None:
    for target in ("gzip-cut", "gzip-no-trailer"):
        with pytest.raises(EOFError):
            gzip.decompress(fetch(site, f"/hostile/body/{target}")[2])
    for target in ("gzip-wrong-sum", "gzip-trailing-garbage", "gzip-is-plain"):
        with pytest.raises(gzip.BadGzipFile):
            gzip.decompress(fetch(site, f"/hostile/body/{target}")[2])
    twice = fetch(site, "/hostile/body/gzip-twice")[2]
    assert gzip.decompress(gzip.decompress(twice)).startswith(b"<!doctype html>")


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_frames_are_sent_byte_for_byte(site: Site, name: str) -> None:
    with asked(site, f"/hostile/frame/{name}") as client:
        assert read(client) == ANSWERS[name]


def test_many_and_long_headers(site: Site) -> None:
    with asked(site, "/hostile/head/many?n=20000") as client:
        assert read(client).count(b"\r\nX-Header-") == 20_000
    assert len(fetch(site, "/hostile/head/long?kb=300")[1]["x-long"]) == 300_000
    with asked(site, "/hostile/head/cookies?n=40") as client:
        assert read(client).count(b"Set-Cookie: ") == 40


@pytest.mark.parametrize(
    "name", ["deep", "deep-tables", "unclosed", "frames", "nul", "bad-bytes", "plaintext", "wide"]
)
def test_documents_hold_their_needle(site: Site, name: str) -> None:
    assert fetch(site, f"/hostile/html/{name}")[2].count(NEEDLE.encode()) == 1


def test_documents_are_as_large_as_they_say(site: Site) -> None:
    assert fetch(site, "/hostile/html/deep")[2].count(b"<div>") == 10_000
    assert fetch(site, "/hostile/html/many-links")[2].count(b"<a ") == 100_000
    assert len(fetch(site, "/hostile/html/fifty-megabytes")[2]) > 49_000_000


def test_traps_lead_ever_on(site: Site) -> None:
    june = site.page(site.at("/hostile/trap/calendar/2024/06", "hostile.test"))
    assert [link.href for link in june.links] == [
        "/hostile/trap/calendar/2024/05",
        "/hostile/trap/calendar/2024/07",
    ]
    first = site.page(site.at("/hostile/trap/session/", "hostile.test"))
    again = site.page(site.at(first.links[0].href, "hostile.test"))
    assert not {link.href for link in first.links} & {link.href for link in again.links}
    assert fetch(site, "/hostile/trap/deeper/deeper/deeper/")[0] == 200
    assert fetch(site, "/hostile/trap/calendar/2024/13")[0] == 404


def test_addresses_that_are_none_are_on_the_page(site: Site) -> None:
    page = site.page("/hostile/url/nonsense")
    assert [link.href for link in page.links] == list(NONSENSE)
    assert len(fetch(site, "/hostile/url/long")[2]) > 2 * 65_536


def test_hostile_host_lets_robots_in(site: Site) -> None:
    with asked(site, "/robots.txt") as client:
        assert read(client).endswith(b"User-agent: *\nDisallow: \n")
    assert not site.allows("trapline", "/hostile/redirect/301")
    assert site.allows("trapline", "/hostile/redirect/301", host="hostile.test")


def test_every_hostile_page_is_linked_from_the_opt_in_page(site: Site) -> None:
    linked = {link.href for link in site.page("/hostile/").links}
    there = {page.target for page in site.pages() if page.target.startswith("/hostile/")}
    assert linked | {"/hostile/"} == there


@pytest.mark.parametrize("kind", ["docx", "pptx", "odt", "epub", "rtf", "pdf"])
def test_documents_can_be_read_by_others(site: Site, kind: str) -> None:
    _, headers, body = fetch(site, f"/hostile/files/good.{kind}")
    text = kreuzberg.extract_bytes_sync(body, headers["content-type"]).content
    assert files.TITLE in text
    assert all(line in text for line in files.LINES)


def test_workbook_can_be_read_by_others(site: Site) -> None:
    _, headers, body = fetch(site, "/hostile/files/good.xlsx")
    text = kreuzberg.extract_bytes_sync(body, headers["content-type"]).content
    assert "Cleaning" in text
    assert "Hours" in text


def test_difficult_documents(site: Site) -> None:
    locked = fetch(site, "/hostile/files/locked.pdf")[2]
    with pytest.raises(pypdfium2.PdfiumError, match="password"):
        pypdfium2.PdfDocument(locked)
    assert "Cleaning" in text_of_pdf(locked, files.PASSWORD)
    assert text_of_pdf(fetch(site, "/hostile/files/scanned.pdf")[2]) == ""
    with contextlib.closing(
        pypdfium2.PdfDocument(fetch(site, "/hostile/files/thousand-pages.pdf")[2])
    ) as document:
        assert len(document) == 1000
    assert fetch(site, "/hostile/files/empty.pdf")[2] == b""
    assert len(fetch(site, "/hostile/files/bomb.docx")[2]) < 1_000_000


def text_of_pdf(data: bytes, password: str | None = None) -> str:
    with contextlib.closing(pypdfium2.PdfDocument(data, password)) as document:
        return "".join(page.get_textpage().get_text_range() for page in document)


def test_mislabelled_files(site: Site) -> None:
    assert fetch(site, "/hostile/files/html-as-pdf.pdf")[1]["content-type"] == "application/pdf"
    assert fetch(site, "/hostile/files/pdf-as-html")[2].startswith(b"%PDF")
    assert "content-type" not in fetch(site, "/hostile/files/html-without-type")[1]
    assert fetch(site, "/hostile/files/png-as-jpeg.jpg")[2].startswith(b"\x89PNG")


def handshake(site: Site, url: str, context: ssl.SSLContext) -> bytes:
    """Open TLS to the port of a URL under the main host's name and fetch the robots.txt."""
    port = int(url.split(":")[2].partition("/")[0])
    with (
        socket.create_connection((site.address, port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="trapline.test") as client,
    ):
        client.sendall(b"GET /robots.txt HTTP/1.0\r\nHost: trapline.test\r\n\r\n")
        return read_tls(client)


def read_tls(client: ssl.SSLSocket) -> bytes:
    data = b""
    while piece := client.recv(1 << 16):
        data += piece
    return data


def test_good_certificate_verifies_for_those_who_trust_its_authority(site: Site) -> None:
    answer = handshake(site, site.tls("good"), site.authority.client_context())
    assert b"Sitemap: https://trapline.test/sitemap.xml" in answer
    assert [entry.scheme for entry in site.log] == ["https"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("self-signed", "self-signed certificate"),
        ("expired", "certificate has expired"),
        ("not-yet-valid", "certificate is not yet valid"),
        ("wrong-host", "Hostname mismatch"),
    ],
)
def test_bad_certificates_are_bad_in_one_way(site: Site, kind: str, reason: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        handshake(site, site.tls(kind), site.authority.client_context())


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_else_trusts_any_certificate(site: Site, kind: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(site, site.tls(kind), ssl.create_default_context())
