import ada_url
import pytest
import turbohtml
from hypothesis import given
from hypothesis import strategies as st

from trapline.extract.html.url_resolution import Resolver

PAGE = "https://example.org/docs/guide?x=1#top"


def resolver(markup: str = "", url: str = PAGE) -> Resolver:
    return Resolver(turbohtml.parse(markup), url)


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("/a/b", "https://example.org/a/b"),
        ("c", "https://example.org/docs/c"),
        ("../up", "https://example.org/up"),
        ("?page=2", "https://example.org/docs/guide?page=2"),
        ("//cdn.example.net/x", "https://cdn.example.net/x"),
        (" \n/spaced\t", "https://example.org/spaced"),
        ("/a#part", "https://example.org/a"),
        ("HTTPS://EXAMPLE.org/%7Ea", "https://example.org/%7Ea"),
        ("/a/./b/../c", "https://example.org/a/c"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
    ],
)
def test_a_reference_becomes_absolute(reference: str, url: str) -> None:
    assert resolver().absolute(reference) == url


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "#top",
        "javascript:void(0)",
        "mailto:a@b.c",
        "data:text/plain,x",
        "file:///docs/x",
        " FTP://example.org/x",
        "web+a.b-c:x",
        "http://[",
        "https://",
        "/" * 9000,
    ],
)
def test_what_leads_nowhere_is_none(reference: str) -> None:
    assert resolver().absolute(reference) is None


def test_base_href_is_honoured() -> None:
    assert resolver("<base href='/v2/'>").absolute("x") == "https://example.org/v2/x"
    assert (
        resolver("<base href='https://cdn.example.net'>").absolute("/x")
        == "https://cdn.example.net/x"
    )


def test_a_base_that_is_no_web_address_is_ignored() -> None:
    assert resolver("<base href='javascript:1'>").absolute("x") == "https://example.org/docs/x"


def test_a_page_without_an_address_keeps_absolute_links_only() -> None:
    assert resolver(url="").absolute("/x") is None
    assert resolver(url="").absolute("https://a.example/x") == "https://a.example/x"


@given(
    st.text(alphabet="abzAZ019/.-_~?=&%+:@;,!$*'()\\ #é", max_size=40)
    | st.from_regex(r"https?://[a-z0-9.-]{1,20}/[a-zA-Z0-9/._~?=&-]{0,20}", fullmatch=True)
)
def test_the_short_way_agrees_with_the_whatwg_parser(reference: str) -> None:
    cut = reference.strip().partition("#")[0].rstrip()
    try:
        expected = ada_url.join_url("https://example.org/docs/guide?x=1", cut) if cut else None
    except ValueError:
        expected = None
    if expected is not None and not expected.startswith(("http://", "https://")):
        expected = None
    assert resolver().absolute(reference) == expected


@given(
    base=st.sampled_from(
        (
            "http://a.example/",
            "https://a.example/x/y/z.html?q=1/2",
            "http://a.example:8080/a//b/",
            "http://a.example/1/2/3/4/5/6/7/8/9/10/11/12",
            "http://[::1]/a/b%20c/d;e",
        )
    ),
    reference=st.from_regex(
        r"(\.\./){0,12}[a-z~_-][a-zA-Z0-9/._~-]{0,12}(\?[a-z=&@:;,/?!$*()%.]{0,6})?", fullmatch=True
    ),
)
def test_relative_names_agree_with_the_whatwg_parser(base: str, reference: str) -> None:
    assert resolver(url=base).absolute(reference + "#part") == ada_url.join_url(base, reference)


HOSTS = st.sampled_from(["example.org", "localhost", "127.0.0.1", "a-b.example.co.uk", "1.2.3.4"])
PORTS = st.sampled_from(
    ["", ":80", ":443", ":8080", ":12345", ":40291", ":60001", ":65535", ":0080", ":99999"]
)
PATHS = st.text(alphabet="ab/.~-_?=&%#é ", max_size=12)


@given(st.sampled_from(["http://", "https://"]), HOSTS, PORTS, PATHS)
def test_a_plain_page_is_read_as_by_the_parser(
    scheme: str, host: str, port: str, path: str
) -> None:
    url = f"{scheme}{host}{port}/{path}"
    found = resolver(url=url)
    try:
        parsed = ada_url.URL(url)
    except ValueError:
        assert not found.page
        return
    assert found.page == parsed.href
    assert found.absolute("/x") == f"{parsed.origin}/x"
