"""What a page says of its own type."""

from urllib.parse import urlsplit

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.extract.metadata import page_type_hints

PIECES = (
    "a.com", "/", "//", "?", "#", "[", "]", "[::1]", ":", "@", " ", "\t", "\n", "\x00", "\x7f", "é",
    "docs", "doc", "adoc", "docx", "-", "_", "/api", "%20", "80", "http", "://",
)  # fmt: skip
URLS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def split(url: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", "", ""
    return parts.netloc, parts.path, parts.query


@given(st.sampled_from(("http://", "https://", "ftp://", "")), URLS)
def test_plain_urls_are_split_as_all_are(scheme: str, rest: str) -> None:
    assert page_type_hints._parts(scheme + rest) == split(scheme + rest)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("docs/a", True),
        ("a/doc", True),
        ("a-docs.html", True),
        ("adoc", False),
        ("docx", False),
        ("a_docs", False),
        ("reference/", True),
        ("my-tutorials", True),
        ("other", False),
    ],
)
def test_urls_of_documentation(path: str, said: bool) -> None:
    read = page_type_hints.read_hints(turbohtml.parse("<p>a"), f"https://example.com/{path}").hints
    assert bool(read[3]) is said


HINTS = (
    "/", "/", "?", "-", ".", "_", "x", "p", "1", "2024", "s", "doc", "docs", "api", "forum", "topic", "t",
    "question", "comments", "product", "item", "shop", "c", "blog", "news", "posts", "about", "services",
    "software", "list", "topics", "best", "search", "index.html",
)  # fmt: skip


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(HINTS), max_size=9).map("".join))
def test_names_that_say_nothing_stand_for_each_other(path: str) -> None:
    host, path, query = page_type_hints._parts(f"https://example.com/{path}")
    target = f"{host}{path}{'?' if query else ''}"
    expected = [float(bool(pattern.search(target))) for pattern in page_type_hints._URL_HINTS]
    assert (
        page_type_hints._from_url(f"https://{host}{path}{'?' + query if query else ''}")[:-2]
        == expected
    )


def hints_of(head: str, attribute_flags: int = 0) -> list[float]:
    return page_type_hints.read_hints(
        turbohtml.parse(head), "https://example.com/a", attribute_flags=attribute_flags
    ).hints


def test_what_the_head_says_of_the_type() -> None:
    graph, schema, generator = len(hints_of("")) - 21, len(hints_of("")) - 16, -5
    named = hints_of(
        "<meta property=og:type content=My.Article><meta property=og:type content=product>"
        "<meta name=generator content='Discourse 3'><meta name=Generator content=Shopify>"
        '<script type=\'Application/LD+JSON\'>{"@type": "Recipe"}</script>'
        '<script type=\'application/ld+json; charset=x\'>{"@type": "Event"}</script>'
    )
    assert named[graph:schema] == [1, 0, 0, 0, 0]
    assert named[schema:generator] == [float(n == 7) for n in range(11)]
    assert named[generator:] == [1, 0, 0, 0, 0]
    assert not any(hints_of("<p>a")[graph:])


def test_the_words_of_title_and_descriptions_are_an_echo() -> None:
    head = (
        "<title>A b</title><title>c</title><meta name=description content='d e'>"
        "<meta property=og:description content=f><meta name=Description content=g>"
        "<meta name=description><meta itemprop=description content=h>"
    )
    assert page_type_hints.read_hints(turbohtml.parse(head), "").echo == frozenset("Abdef")
