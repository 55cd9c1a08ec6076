"""Links are read, resolved and written alike by the compiled code and by Python."""

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.extract import compiled, links, markdown
from trapline.extract.resolve import CompiledReferences, PlainReferences, Resolver
from trapline.extract.targets import Targets
from trapline.model import Region

PAGE = "https://docs.example.com/a/b/page.html?q=1"
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


def both(origin: str) -> tuple[PlainReferences, object]:
    """References that answer alike; what needs a parser is told by a mark."""
    given = (origin, ABOVE if origin else [], lambda address: f"parsed {address}")
    return PlainReferences(*given), CompiledReferences(*given)


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
    tree = turbohtml.parse(body)
    found = tree.find_all("a")
    regions = [Region.NAV if number % 3 else Region.BODY for number in range(len(found))]
    hidden = [number % 4 == 0 for number in range(len(found))]
    plain, fast = both("https://docs.example.com")
    others: tuple[dict[str, None], dict[str, None]] = ({}, {})
    expected = links.read_anchors(found, regions, hidden, plain, others[0])
    read = links.read_anchors_compiled(found, regions, hidden, fast, others[1])
    assert list(read.items()) == list(expected.items())
    assert others[0] == others[1]
    equally_written(body)


def equally_written(body: str) -> None:
    targets = Targets(Resolver(turbohtml.parse(body), PAGE))
    slow, fast = markdown.Links(targets), markdown.link_writer(targets)
    for link in turbohtml.parse(body).find_all("a"):
        for rendered in (link.text, link.text.strip(), link.to_markdown()):
            assert fast(link, rendered) == slow(link, rendered)


def test_what_is_no_text_is_refused() -> None:
    _, fast = both("https://docs.example.com")
    with pytest.raises(TypeError):
        fast.absolute(None)
    with pytest.raises(ValueError, match="directories"):
        CompiledReferences("https://a.example", [], str).absolute("name")
    with pytest.raises(ValueError, match="different pages"):
        links.read_anchors_compiled([turbohtml.Element("a")], [], [], fast, {})
    with pytest.raises(TypeError):
        compiled.link_writer(fast, PAGE, frozenset(), str)(turbohtml.Element("a"))
