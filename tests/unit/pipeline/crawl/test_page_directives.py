"""What a page says of its place and of robots, in meta tags and headers."""

import pytest

from trapline.errors import ExitCode
from trapline.extract import extract
from trapline.model import Fetched
from trapline.pipeline.crawl import page_directives

URL = "https://example.com/a/page"


def _fetched(*headers: tuple[str, str]) -> Fetched:
    return Fetched(exit_code=ExitCode.CONTENT, message="", url=URL, status=200, headers=headers)


def _page(head: str) -> bytes:
    return f"<html><head>{head}</head><body><p>Hello.</p></body></html>".encode()


@pytest.mark.parametrize(
    ("content", "url", "seconds"),
    [
        ("0; url=/b", "https://example.com/b", 0),
        ("0;URL='/b'", "https://example.com/b", 0),
        ('5, url="https://other.example/"', "https://other.example/", 5),
        ("30; url=next", "https://example.com/a/next", 30),
        ("; url=/b", "https://example.com/b", 0),
        ("1.5;/b", "https://example.com/b", 1.5),
    ],
)
def test_a_refresh_leads_elsewhere(content: str, url: str, seconds: float) -> None:
    quoted = content.replace('"', "&quot;")
    page = _page(f'<meta http-equiv="Refresh" content="{quoted}">')
    refresh = page_directives.read_refresh(_fetched(), extract(page, "text/html", URL))
    assert refresh is not None
    assert (refresh.url, refresh.seconds) == (url, seconds)
    assert refresh.is_immediate == (seconds <= page_directives.IMMEDIATE_REFRESH_SECONDS)


@pytest.mark.parametrize(
    "content", ["300", "", "0; url=", "0; url=/a/page", "0; url=javascript:x()"]
)
def test_a_refresh_that_leads_nowhere_is_none(content: str) -> None:
    page = _page(f'<meta http-equiv="refresh" content="{content}">')
    assert page_directives.read_refresh(_fetched(), extract(page, "text/html", URL)) is None


def test_the_refresh_header_counts_too() -> None:
    refresh = page_directives.read_refresh(_fetched(("Refresh", "0; url=/b")), None)
    assert refresh == page_directives.Refresh("https://example.com/b", 0.0)


def test_a_canonical_url_is_read_from_the_page_and_from_its_header() -> None:
    named = extract(_page("<link rel=canonical href=/b>"), "text/html", URL)
    assert page_directives.read_canonical(_fetched(), named) == "https://example.com/b"
    own = extract(_page("<link rel=canonical href=/a/page>"), "text/html", URL)
    assert page_directives.read_canonical(_fetched(), own) is None
    header = _fetched(("Link", '</x>; rel="next", </c>; rel="canonical"'))
    assert page_directives.read_canonical(header, None) == "https://example.com/c"


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ("noindex", {"noindex"}),
        ("none", {"none", "noindex", "nofollow"}),
        ("otherbot: noindex", set()),
        ("trapline: noindex, nofollow", {"noindex", "nofollow"}),
        (
            "unavailable_after: 25 Jun 2030 15:00:00 GMT",
            {"unavailable_after: 25 jun 2030 15:00:00 gmt"},
        ),
    ],
)
def test_the_robots_header_is_for_all_or_for_one(header: str, asked: set[str]) -> None:
    agent = "Mozilla/5.0 (compatible; Trapline/0.1)"
    assert page_directives.read_robots(_fetched(("X-Robots-Tag", header)), None, agent) == asked


def test_the_robots_tag_and_header_are_joined() -> None:
    page = extract(_page('<meta name="robots" content="NoFollow">'), "text/html", URL)
    fetched = _fetched(("x-robots-tag", "noindex"))
    assert page_directives.read_robots(fetched, page, "Trapline") == {"nofollow", "noindex"}
