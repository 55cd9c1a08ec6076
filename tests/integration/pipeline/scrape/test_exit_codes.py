"""Every bad input and fault, from the option to the job: its exit code, a sentence, no harm to others."""

import socket

import pytest

from tests.site.rules import Group, Rules
from tests.site.site import Site
from tests.support.cli import Trapline
from tests.support.scraper import Scrape
from trapline.db.pool import Database
from trapline.errors import OUTCOMES, InvalidInput
from trapline.errors import ExitCode as E
from trapline.pipeline.options import PageOptions

HOSTILE = {
    "redirect/loop/2a": E.REDIRECT_LOOP,
    "redirect/unsafe/private-10": E.UNSAFE_ADDRESS,
    "redirect/unsafe/metadata": E.UNSAFE_ADDRESS,
    "redirect/unsafe/file": E.UNSUPPORTED_SCHEME,
    "time/close": E.CONNECTION_RESET,
    "time/reset": E.CONNECTION_RESET,
    "time/slow-head": E.TOTAL_TIMEOUT,
    "time/slow-body?seconds=20": E.TOTAL_TIMEOUT,
    "body/huge": E.BODY_TOO_LARGE,
    "body/gzip-cut": E.TRUNCATED,
    "body/gzip-bomb?mb=100": E.DECOMPRESSED_TOO_LARGE,
    "frame/length-too-large": E.TRUNCATED,
    "head/many?n=1000000": E.HEADERS_TOO_LARGE,
    "status/503": E.SERVICE_UNAVAILABLE,
    "status/404": E.NOT_FOUND,
    "status/410": E.GONE,
    "status/soft-404": E.SOFT_NOT_FOUND,
}
TLS = ("self-signed", "expired", "not-yet-valid", "wrong-host")


async def _reason(database: Database) -> str:
    async with database.system_tx() as conn:
        return str(await conn.fetchval("SELECT error FROM queue.done"))


@pytest.mark.parametrize(("name", "code"), HOSTILE.items())
async def test_faults(scrape: Scrape, site: Site, database: Database, name: str, code: E) -> None:
    url = site.at(f"/hostile/{name}", "hostile.test")
    answer = await scrape(url, timeout=3 if code is E.TOTAL_TIMEOUT else 60)
    assert answer.code is code
    assert OUTCOMES[code].sentence.rstrip(".") in (answer.error or "")
    assert OUTCOMES[code].sentence.rstrip(".") in await _reason(database)
    # The host may be left alone for a while; others are not harmed.
    assert (await scrape(site.at("/about/"))).ok


@pytest.mark.parametrize("kind", TLS)
async def test_certificates(scrape: Scrape, site: Site, kind: str) -> None:
    answer = await scrape(site.tls(kind, host="127.0.0.1", target="/about/"))
    assert answer.code is E.TLS_FAILURE
    assert (await scrape(site.tls(kind, host="127.0.0.1", target="/about/"), verify_tls=False)).ok


async def test_names_and_ports(scrape: Scrape) -> None:
    unknown = await scrape("http://no-such-name.invalid/", timeout=20)
    assert unknown.code is E.DNS_FAILURE
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused = await scrape(f"http://127.0.0.1:{port}/")
    assert refused.code is E.CONNECTION_REFUSED


async def test_robots_that_forbid_all(scrape: Scrape, site: Site) -> None:
    site.set_rules(Rules(groups=(Group(agents=("*",), lines=(("disallow", "/"),)),)))
    answer = await scrape(site.at("/about/"))
    assert answer.code is E.ROBOTS_DISALLOWED
    assert site.log.pages() == {}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "not a url",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://user:secret@example.com/",
        "https://example.com/" + "a" * 65_536,
        "http://exa mple.com/",
        "http://example.com/\x00a",
        "http://",
    ],
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(InvalidInput):
        PageOptions.parse(url=url)


def test_a_name_in_any_script_is_a_url() -> None:
    assert PageOptions.parse(url="http://bücher.example/ä").url == (
        "http://xn--bcher-kva.example/%C3%A4"
    )


async def test_the_reason_is_shown_with_the_job(trapline: Trapline, site: Site) -> None:
    crawler = Trapline(trapline.environment | site.env(), trapline.directory)
    done = await crawler("crawl", site.at("/hostile/body/gzip-cut", "hostile.test"), "--json")
    shown = await crawler("jobs", "show", done.json["job"]["id"])
    assert OUTCOMES[E.TRUNCATED].sentence.rstrip(".") in shown.out
    assert "Failed: " in shown.out
