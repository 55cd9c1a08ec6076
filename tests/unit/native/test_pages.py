"""Both readers, compiled and in Python, give the same of every page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import turbohtml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.paths import PAGES
from tests.support.pure_python import needs_native, pure_python
from trapline import native
from trapline.cli.admin import doctor
from trapline.extract import extract
from trapline.extract.html import outline
from trapline.extract.main_content import blocks, scorer
from trapline.extract.metadata.page_type_hints import read_hints
from trapline.model import ExtractOptions, Format

pytestmark = needs_native

URL = "https://example.com/blog/2024/page"
CLOSE = 1e-5
# The compiled reader keeps no nodes of texts.
TEXT_NODES = (turbohtml.Text, turbohtml.CData)

python_extract = pure_python("trapline.extract").extract
python_outline = pure_python("trapline.extract.html.outline")
python_blocks = pure_python("trapline.extract.main_content.blocks")
python_input = pure_python("trapline.extract.main_content.model_input")
python_scorer = pure_python("trapline.extract.main_content.scorer")


def equal_reading(body: str) -> None:
    """Read a page with both readers, and compare everything that is made of it."""
    tree = turbohtml.parse(body, positions=False, allow_declarative_shadow_roots=False)
    expected, found = python_outline.read_outline(tree), outline.read_outline(tree)
    shown = [None if isinstance(node, TEXT_NODES) else node for node in expected.nodes]
    assert found.nodes == shown
    for name in ("code", "parent", "last", "by_code"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for name in ("code_starts", "doublings", "cut"):
        assert getattr(found, name) == getattr(expected, name), name
    elements = [*tree.find_all("p"), *tree.find_all("div"), turbohtml.Element("p")]
    paragraphs = tree.find_all("p")
    for wanted in (elements, paragraphs, paragraphs[::-1], paragraphs * 2, paragraphs + elements):
        rows = outline.find_rows(found.nodes, wanted)
        assert rows == python_outline.find_rows(expected.nodes, wanted)
    equal_blocks(python_blocks.read_blocks(expected), blocks.read_blocks(found))
    equal_features(tree, expected, found)


def equal_blocks(expected: Any, found: blocks.Blocks) -> None:
    assert found.texts == expected.texts
    assert found.shown == expected.shown
    for name in ("words", "owner", "first", "piece_row", "piece_block", "piece_size"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def equal_features(tree: turbohtml.Document, expected: Any, found: outline.Outline) -> None:
    model, python_model = scorer.shipped_scorer(), python_scorer.shipped_scorer()
    said = read_hints(tree, URL)
    page = python_input.read_page(expected, said)
    if not len(page.blocks):
        return
    ours, theirs = model.features(found, said), page.features(python_model.vocabulary)
    assert np.array_equal(ours.keys, theirs.keys)
    names = [*page.columns, *page.word_columns(python_model.vocabulary)]
    differing = np.abs(ours.matrix - theirs.matrix).max(axis=0) > CLOSE
    assert [name for name, wrong in zip(names, differing, strict=True) if wrong] == []
    assert np.allclose(ours.page, theirs.page, atol=CLOSE)
    scores, python_scores = model.judge(ours), python_model.judge(theirs)
    assert np.allclose(scores.scores, python_scores.scores, atol=CLOSE)
    assert scores.recall == pytest.approx(python_scores.recall, abs=CLOSE)


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.html")), ids=lambda page: page.stem)
def test_pages_of_our_own(page: Path) -> None:
    equal_reading(page.read_text())


@pytest.mark.parametrize(
    "body",
    [
        "",
        "words alone",
        "<p>one<p>one<p>two <b>bold</b> three<br>four<br><br>five",
        "<ul><li class=a>x<li class=a>y<li class=a>z<li class=b>x</ul>" * 3,
        "<h1>A</h1><p>x<h2>Related posts</h2><h3>C</h3><p>x<h3>D</h3><h2>E</h2><h4>F</h4>",
        "<div id='main-Content' class='navBar item2 Ünï'><p>ÄÖÜ İstanbul ΟΔΟΣ \U0001f600 ß",
        "<template><p>in a template</template><object><p>a</object>b<svg><p>c</svg>d",
        "<div>" * 300 + "deep" + "</div>" * 300 + "<p>and flat",
        "<p>" + "word " * 5_000 + "<p class='" + "name " * 5_000 + "'>x",
        "<p>\x00a\u00a0b\u2003c\x1cd\ud800e",
        "<!-- c --><table><tr><td>1<td>2<tr><td colspan=2>3</table>",
        "<title>some words of the title</title><p>the title has some words",
    ],
)
def test_plain_and_odd_pages(body: str) -> None:
    equal_reading(body)


TAGS = (
    "div p span a b em strong h1 h2 h3 ul li table tr td br pre code nav main article section x-y form "
    "img"
)
NAMES = st.sampled_from(["", " class=c", " class='nav menu' id=top", " id=content", " class=''"])
TEXTS = st.one_of(
    st.sampled_from(
        [
            " ",
            "\n",
            "Read more",
            "so.",
            "Sign up!",
            "A longer text, with commas. And an end.",
            "<i>",
        ]
    ),
    st.text(max_size=30),
)
OPENINGS = st.builds("<{}{}>".format, st.sampled_from(TAGS.split()), NAMES)
CLOSINGS = st.builds("</{}>".format, st.sampled_from(TAGS.split()))
MARKUP = st.lists(st.one_of(OPENINGS, CLOSINGS, TEXTS), max_size=60).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MARKUP)
def test_any_page(body: str) -> None:
    equal_reading(body)


def equal_documents(body: bytes) -> None:
    """The whole Document is the same, with every format that there is."""
    options = ExtractOptions(formats=frozenset(Format))
    expected = python_extract(body, "text/html", URL, options)
    assert extract(body, "text/html", URL, options) == expected


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.html")), ids=lambda page: page.stem)
def test_documents_of_our_own_pages(page: Path) -> None:
    equal_documents(page.read_bytes())


MARKED_UP = st.sampled_from(
    [
        "<img src=a.png>",
        "<video src=b></video>",
        '{"a": "b", "c": "d", "e": "f"}',
        "<p>It is <em>so.</em> And <strong>so!</strong>, <em>so?</em>",
        "<p>Say <code>&lt;em>so.&lt;/em></code> or &lt;em>so.&lt;/em>",
        "<pre>&lt;strong>so.&lt;/strong>\n``` <em>x.</em></pre>",
    ]
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(MARKUP, MARKED_UP), max_size=6).map("".join))
def test_documents_of_any_page(body: str) -> None:
    equal_documents(body.encode("utf-8", "surrogatepass"))


def test_the_doctor_says_which_reader_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (doctor._reader().state, doctor._reader().found) == ("ok", "compiled")
    monkeypatch.setattr(native, "available", False)
    assert doctor._reader().state == "warning"
    assert "C compiler" in doctor._reader().remedy
