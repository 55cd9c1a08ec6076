"""Links are read and resolved alike by the compiled code and by Python."""

from typing import Any

import numpy as np
import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pure_python import needs_native, pure_python
from trapline.extract.html import links
from trapline.extract.html.outline import read_outline
from trapline.extract.html.url_resolution import (
    PythonReferences,
    References,
    Resolver,
    make_references,
)
from trapline.extract.markdown.link_targets import LinkTargets
from trapline.extract.markdown.renderer import Links, link_writer
from trapline.model import Region

pytestmark = needs_native

PAGE = "https://docs.example.com/a/b/page.html?q=1"
python_links = pure_python("trapline.extract.html.links")

ABOVE = [f"https://docs.example.com/{'x/' * (9 - up)}" for up in range(10)]
ODD = (
    "", "#", "#top", "a", "a#b", "/", "//host/x", "/a/./b", "/a/../b", "../", "../../c.html?x=1&y=2",
    "../" * 9 + "z", "../" * 10 + "z", "a/.hidden", "http://example.com/", "http://example.com",
    "https://a-b.example.co.uk/x?y=z+1", "http://example.com//x", "http://.com/", "http://a..com/x",
    "http://EXAMPLE.com/", "http://localhost/x", "http://a.b/x", "http://a.b2/x", "https://xn--a.com/x",
    "mailto:a@example.com", "tel:1", "javascript:void(0)", "a b", "ä/ö", "?a=b", "a?b?c", "x" * 4001,
    "x" * 4002, "/" + "x" * 4000, "/" + "x" * 4001, "?" + "x" * 4001, "\ud800", "\x00", " a ", "a:b",
    "-", "~u/", "_", ".", "..", "./a", "a(b)", "a#b c", "HTTP://example.com/",
)  # fmt: skip
ADDRESSES = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=20),
    st.text("abz09./?#:;@,!$*-_~=&+ %()'h", max_size=30),
    st.builds(
        "http{}://{}{}".format, st.sampled_from(["", "s"]), st.text("ab.-9C", max_size=9),
        st.text("/.ab?#", max_size=9),
    ),
)  # fmt: skip


def both(origin: str) -> tuple[References, References]:
    """References that answer alike; what needs a parser is told by a mark."""
    given = (origin, ABOVE if origin else [], lambda address: f"parsed {address}")
    return PythonReferences(*given), make_references(*given)


@pytest.mark.parametrize("origin", ["https://docs.example.com", ""])
@pytest.mark.parametrize("reference", ODD)
def test_odd_references(origin: str, reference: str) -> None:
    plain, fast = both(origin)
    assert fast.absolute(reference) == plain.absolute(reference)


@settings(max_examples=600, deadline=None)
@given(ADDRESSES)
def test_any_reference(reference: str) -> None:
    plain, fast = both("https://docs.example.com")
    assert fast.absolute(reference) == plain.absolute(reference)
    assert fast.absolute(reference) == plain.absolute(reference)


ANCHORS = st.builds(
    lambda href, rel, text: (
        f'<a href="{href}"{rel}>{text}</a>'
        if "\ud800" not in href + text
        else "<a>none</a>"
    ),
    ADDRESSES.map(lambda text: text.replace('"', "")),
    st.sampled_from(["", " rel", " rel='No Follow'", " title=t", " aria-label='a  b'"]),
    st.sampled_from(
        ["", " ", "one", " one  two ", "a\nb", "<b>x</b>", "<img alt='p  q'>", "¶", "#", "Link", "3. x",
         "- x", "[x]", "a\\|b", "long " * 200, "\u2003wide\u2003", "<h2>head</h2>", "\U0001f600 é"]
    ),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(ANCHORS, max_size=12))
def test_any_links(anchors: list[str]) -> None:
    body = "<div>" + " ".join(anchors) + "</div>"
    page = read_outline(turbohtml.parse(body))
    rows = page.rows_of("a")
    regions = [(row, Region.NAV) for row in range(1, len(page.nodes)) if row % 3]
    hidden = np.arange(4, len(page.nodes), 4)
    plain, fast = both("https://docs.example.com")
    others: tuple[dict[str, None], dict[str, None]] = ({}, {})
    places = ([], links.NO_ROWS) if len(rows) % 3 else (regions, hidden)
    found = links.Anchors(page, rows, *places)
    expected = python_links.read_anchors(found, plain, others[0])
    read = links.read_anchors(found, fast, others[1])
    assert list(read.items()) == list(expected.items())
    assert others[0] == others[1]
    equally_written(body)


def equally_written(body: str) -> None:
    targets = LinkTargets(Resolver(turbohtml.parse(body), PAGE))
    slow, fast = Links(targets), link_writer(targets)
    for link in turbohtml.parse(body).find_all("a"):
        for rendered in (link.text, link.text.strip(), link.to_markdown()):
            assert fast(link, rendered) == slow(link, rendered)


def test_what_is_no_text_is_refused() -> None:
    _, fast = both("https://docs.example.com")
    with pytest.raises(TypeError):
        fast.absolute(None)
    with pytest.raises(ValueError, match="directories"):
        make_references("https://a.example", [], str).absolute("name")


@pytest.mark.parametrize(
    ("rows", "placed", "hidden"),
    [
        ([99], [], []),
        ([-1], [], []),
        ([], [], [99]),
        ([4], [(99, Region.NAV)], []),
        ([4], [(-1, Region.NAV)], []),
        ([4], [("row", Region.NAV)], []),
        ([4], [Region.NAV], []),
    ],
)
def test_places_of_another_page(rows: list[int], placed: list[Any], hidden: list[int]) -> None:
    page = read_outline(turbohtml.parse("<p><a href=x>y</a>"))
    _, fast = both("https://docs.example.com")
    found = links.Anchors(page, np.array(rows, np.intp), placed, np.array(hidden, np.intp))
    with pytest.raises((ValueError, TypeError)):
        links.read_anchors(found, fast, {})
