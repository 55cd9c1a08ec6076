"""What the model is told of a page beyond its blocks."""

import numpy as np
import pytest
import turbohtml

from trapline.extract.html.outline import read_outline
from trapline.extract.main_content import vocabulary
from trapline.extract.main_content.model_input import PageReading, read_page
from trapline.extract.main_content.scorer import running_means
from trapline.extract.main_content.vocabulary import Vocabulary
from trapline.extract.metadata.page_type_hints import read_hints


def reading(body: str) -> PageReading:
    tree = turbohtml.parse(body)
    return read_page(read_outline(tree), read_hints(tree, "https://example.com/"))


def test_a_section_knows_the_heading_that_it_stands_under() -> None:
    page = reading("<h1>A</h1><p>x<h2>B</h2><h3>C</h3><p>x<h3>D</h3><h2>E</h2><h4>F</h4><h1>G</h1>")
    sections = page.sections
    above = {sections.headings[n]: sections.headings[sections.above[n]] for n in range(1, 8)}
    assert above == {"A": "", "B": "A", "C": "B", "D": "B", "E": "A", "F": "E", "G": ""}


def test_copies_of_a_text_are_counted() -> None:
    page = reading("<p>one<p>two<p>one<p>one<p>three")
    assert page.columns["first_copy"].tolist() == [True, True, False, False, True]
    assert np.expm1(page.columns["copies"]).round().tolist() == [2, 0, 2, 2, 0]


def test_the_first_words_of_long_blocks_are_scored() -> None:
    long = "Cookies help us " + "to do this and that " * 4
    page = reading(f"<p>{long}<p>Cookies help us<p>{long.replace('Cookies', 'Foxes')}")
    scores = page.word_columns(Vocabulary.of({}, {}, {}, {"cookies": -2.0, "help": 1.0}))
    assert scores["prose_mean"].tolist() == [-0.5, 0.0, 1.0]
    assert scores["prose_low"].tolist() == [-2.0, 0.0, 1.0]


def test_running_means_weigh_what_is_before_and_after() -> None:
    random = np.random.default_rng(0)
    values = random.random((6, 3)).astype(np.float32)
    weights = random.random(6).astype(np.float32) + 1
    before, after = running_means(values * weights[:, None], weights)
    for place in range(6):
        first, last = slice(place + 1), slice(place, None)
        expected = np.average(values[first], axis=0, weights=weights[first])
        assert np.allclose(before[place], expected, atol=1e-5)
        expected = np.average(values[last], axis=0, weights=weights[last])
        assert np.allclose(after[place], expected, atol=1e-5)


def test_a_page_without_blocks_can_be_read() -> None:
    assert len(reading("<div></div>").blocks) == 0


def test_a_lexicon_that_forgets_knows_what_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_REMEMBERED", 0)
    texts = Vocabulary.of({}, {"one": 1.0, "two": 2.0}, {}, {}).texts
    first = texts.summaries(["one"]).tolist()
    assert texts.summaries(["one", "two"]).tolist()[:1] == first
    assert first[0][0] == 1.0
