"""What a page says of its own type."""

from urllib.parse import urlsplit

import pytest
import turbohtml
from hypothesis import given
from hypothesis import strategies as st

from trapline.extract import hints

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
    assert hints._parts(scheme + rest) == split(scheme + rest)


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
    read = hints.read_hints(turbohtml.parse("<p>a"), f"https://example.com/{path}")
    assert bool(read[3]) is said
