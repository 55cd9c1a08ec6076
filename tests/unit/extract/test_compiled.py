"""The compiled reader and the one in Python read every page alike."""

from pathlib import Path

import numpy as np
import pytest
import turbohtml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trapline.cli import doctor
from trapline.extract import blocks, compiled, extract, outline, scorer, selection
from trapline.extract.blocks import Blocks
from trapline.extract.hints import read_said
from trapline.extract.reading import read_page
from trapline.model import ExtractOptions, Format

PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
URL = "https://example.com/blog/2024/page"
CLOSE = 1e-5
# Their nodes are not kept.
TEXT_NODES = (turbohtml.Text, turbohtml.CData)


def equal_reading(body: str) -> None:
    """Read a page both ways, and compare everything that is made of it."""
    tree = turbohtml.parse(body, positions=False, allow_declarative_shadow_roots=False)
    expected, found = outline.read_outline(tree), compiled.read_outline(tree)
    shown = [None if isinstance(node, TEXT_NODES) else node for node in expected.nodes]
    assert found.nodes == shown
    for name in ("code", "parent", "last", "by_code"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for name in ("code_starts", "doublings", "cut"):
        assert getattr(found, name) == getattr(expected, name), name
    elements = [*tree.find_all("p"), *tree.find_all("div"), turbohtml.Element("p")]
    paragraphs = tree.find_all("p")
    for wanted in (elements, paragraphs, paragraphs[::-1], paragraphs * 2, paragraphs + elements):
        assert found.found(wanted) == expected.found(wanted)
    equal_blocks(expected, found)
    equal_features(tree, expected, found)


def equal_blocks(told: outline.Outline, page: outline.Outline) -> None:
    expected, found = blocks.read_blocks(told), compiled.read_blocks(page)
    assert compiled.read_blocks(told).texts == found.texts
    assert found.texts == expected.texts
    assert found.shown == expected.shown
    for name in ("words", "owner", "first", "piece_row", "piece_block", "piece_size"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def equal_features(tree: turbohtml.Document, told: outline.Outline, page: outline.Outline) -> None:
    model = scorer.shipped_scorer()
    reading = read_page(told, read_said(tree, URL))
    if not len(reading.blocks):
        return
    expected, found = reading.features(model.vocabulary), model.features(page, read_said(tree, URL))
    assert np.array_equal(found.keys, expected.keys)
    names = [*reading.columns, *reading.word_columns(model.vocabulary)]
    differing = np.abs(found.matrix - expected.matrix).max(axis=0) > CLOSE
    assert [name for name, wrong in zip(names, differing, strict=True) if wrong] == []
    assert np.allclose(found.page, expected.page, atol=CLOSE)
    judged, odds = model.judge(found), model.odds(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "AVAILABLE", False)
        told = model.judge(found)
        assert model.odds(found) == pytest.approx(odds, abs=CLOSE)
    assert np.allclose(judged.scores, told.scores, atol=CLOSE)
    assert judged.recall == pytest.approx(told.recall, abs=CLOSE)


def test_there_is_a_compiled_reader() -> None:
    """Everything below needs it: install a C compiler, then `make setup`."""
    assert compiled.AVAILABLE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
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


TAGS = "div p span a b h1 h2 h3 ul li table tr td br pre code nav main article section x-y form img"
NAMES = st.sampled_from(["", " class=c", " class='nav menu' id=top", " id=content", " class=''"])
TEXTS = st.one_of(
    st.sampled_from(
        [" ", "\n", "Read more", "Sign up!", "A longer text, with commas. And an end."]
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
    """What is chosen, cut and written is the same, with every format that there is."""
    options = ExtractOptions(formats=frozenset(Format))
    found = extract(body, "text/html", URL, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "AVAILABLE", False)
        assert extract(body, "text/html", URL, options) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documents_of_our_own_pages(page: Path) -> None:
    equal_documents(page.read_bytes())


PICTURES = st.sampled_from(
    ["<img src=a.png>", "<video src=b></video>", '{"a": "b", "c": "d", "e": "f"}']
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(MARKUP, PICTURES), max_size=6).map("".join))
def test_documents_of_any_page(body: str) -> None:
    equal_documents(body.encode("utf-8", "surrogatepass"))


def test_choices_are_alike() -> None:
    random = np.random.default_rng(1)
    texts = ["a b c", "d", '{"a": "b", "c": "d", "e": "f"}', "a b c", "e f", "long " * 30]
    for _ in range(200):
        picked = random.integers(0, len(texts), random.integers(1, 12))
        chosen = [texts[number] for number in picked]
        words = np.array([len(text.split()) for text in chosen])
        none = np.zeros(len(chosen), dtype=np.intp)
        page = Blocks(chosen, chosen, words, none, none, none, none, none)
        scores = random.random(len(chosen)).astype(np.float32).round(1)
        for recall in (1.0, 0.8, 0.0):
            mine, theirs = (
                way(scores, page, recall) for way in (selection.choose, compiled.choose)
            )
            assert np.array_equal(mine.flags, theirs.flags)
            assert mine[1:] == theirs[1:] == (words[mine.flags].sum(), scores.max())


def test_scores_of_any_size_and_sign_are_put_in_the_same_order() -> None:
    random = np.random.default_rng(2)
    for count in (2, 3, 60, 500):
        none = np.zeros(count, dtype=np.intp)
        texts = ["a b"] * count
        page = Blocks(texts, texts, np.full(count, 2), none, none, none, none, none)
        scores = random.normal(size=count) * 10.0 ** random.integers(-30, 1, count)
        scores[random.random(count) < 0.2] = -0.0
        scores[random.random(count) < 0.2] = 0.0
        for some in (scores.astype(np.float32), np.abs(scores).astype(np.float32)):
            mine, theirs = selection.choose(some, page, 0.1), compiled.choose(some, page, 0.1)
            assert np.array_equal(mine.flags, theirs.flags)
            assert mine[1:] == theirs[1:]


def test_the_less_recall_counts_the_less_is_taken() -> None:
    words = np.full(10, 20)
    none = np.zeros(10, dtype=np.intp)
    texts = [f"text {n}" for n in range(10)]
    page = Blocks(texts, texts, words, none, none, none, none, none)
    scores = np.linspace(0.95, 0.25, 10, dtype=np.float32)
    taken = [selection.choose(scores, page, recall).words for recall in (2.0, 1.0, 0.8, 0.3)]
    assert taken == sorted(taken, reverse=True)
    assert taken[0] > taken[1] > taken[3]


def test_the_doctor_says_whether_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (doctor._reader().state, doctor._reader().found) == ("ok", "compiled")
    monkeypatch.setattr(compiled, "AVAILABLE", False)
    assert doctor._reader().state == "warning"
    assert "C compiler" in doctor._reader().remedy
