"""The gate: main content of pages of each type, and of a fixed sample of WCXB where it is.

A floor may be raised. To lower one, change it here, and say why in docs/extraction.md.
"""

import hashlib
from pathlib import Path

import pytest

from benchmarks.extractor.scoring import word_f1, words_of
from benchmarks.extractor.wcxb import load_pages, wcxb_root
from tests.support.paths import PAGES
from trapline.extract import extract
from trapline.model import Document, ExtractOptions, Format, PageType

OWN_FLOORS = {
    "article": 0.97,
    "documentation": 0.98,
    "service": 0.98,
    "forum": 0.91,
    "product": 0.95,
    "collection": 0.92,
    "listing": 0.97,
}
SAMPLE_EVERY = 12
SAMPLE_DIGEST = "1be0ebdb3fd8a3669e8307eda15741a38492963fae5ed379b98211049e0ae2bb"
SAMPLE_FLOORS = {
    "all": 0.91,
    "article": 0.965,
    "documentation": 0.86,
    "service": 0.85,
    "forum": 0.87,
    "product": 0.705,
    "collection": 0.92,
    "listing": 0.86,
}


@pytest.mark.parametrize(("name", "floor"), OWN_FLOORS.items())
def test_page_of_our_own(name: str, floor: float) -> None:
    body = (PAGES / f"{name}.html").read_bytes()
    found = extract(body, "text/html", f"https://example.com/{name}")
    truth = words_of((PAGES / f"{name}.txt").read_text())
    assert word_f1(words_of(found.text), truth) >= floor
    assert found.warning is None


def test_markdown_has_the_words_of_the_text() -> None:
    body = (PAGES / "article.html").read_bytes()
    found = extract(body, "text/html", "https://example.com/article")
    assert set(words_of(found.text)) <= set(words_of(found.markdown))


def test_the_type_of_plain_cases() -> None:
    for name in ("article", "documentation", "forum", "product"):
        body = (PAGES / f"{name}.html").read_bytes()
        assert extract(body, "text/html", f"https://example.com/{name}").page_type is PageType(name)


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.html")), ids=lambda path: path.stem)
def test_boilerplate_stays_out(path: Path) -> None:
    text = extract(path.read_bytes(), "text/html", "https://example.com/x").text
    assert "cookie" not in text.lower()
    assert "All rights reserved" not in text


def test_code_keeps_its_lines_and_spaces() -> None:
    body = b"<pre><span>def</span> <span>f</span>():<br>    <b>return</b> <i>1</i>\n</pre>"
    assert extract(body, "text/html", "https://example.com/").text == "def f():\n    return 1"


def test_data_for_scripts_is_not_text() -> None:
    words = "Foxes are back in the city, and they like it there more than anywhere else."
    data = '[["Easy to understand","easy","thumb"],["Solved my problem","solved","thumb"]]'
    body = f"<article><h1>Foxes</h1><p>{words}</p><div>{data}</div><p>{words[:40]}.</p></article>"
    found = extract(body.encode(), "text/html", "https://example.com/")
    assert words in found.text
    assert "thumb" not in found.text
    assert extract(f"<p>{data}</p>".encode(), "text/html", "https://example.com/").text == data


def test_the_same_bytes_give_the_same_document() -> None:
    body = (PAGES / "forum.html").read_bytes()
    first, second = (extract(body, "text/html", "https://example.com/f") for _ in range(2))
    assert first == second


# The data is not in the repository: a clone without it has no such test, rather than a skipped one.
if wcxb_root().is_dir():

    def test_wcxb_sample() -> None:
        sample = load_pages()[::SAMPLE_EVERY]
        digest = hashlib.sha256()
        scores: dict[str, list[float]] = {"all": []}
        for page in sample:
            digest.update(page.body + page.truth.encode())
            found = extract(page.body, "text/html", page.url)
            score = word_f1(words_of(found.text), words_of(page.truth))
            scores["all"].append(score)
            scores.setdefault(page.page_type, []).append(score)
        assert digest.hexdigest() == SAMPLE_DIGEST
        for kind, floor in SAMPLE_FLOORS.items():
            assert sum(scores[kind]) / len(scores[kind]) >= floor, kind


def test_a_page_is_shown_under_its_headline() -> None:
    """Whatever the scorer makes of the headline, what is read begins with it."""
    story = "<p>" + "The keeper wrote every visit down, and so did his daughter. " * 12 + "</p>"
    body = (
        "<header><nav><a href='/'>Home</a> <a href='/all'>All</a></nav></header>"
        f"<article><div class='hero'><h1>Appointments</h1></div>{story * 3}</article>"
    )
    document = extract(f"<body>{body}</body>".encode(), "text/html", "https://example.com/a")
    assert document.markdown.startswith("# Appointments\n")


DESCRIPTION = (
    "Soft socks of combed cotton with a seamless toe, a honeycomb arch and a stay-up cuff. " * 3
)
SHELL = """<title>Socks</title><script type="application/ld+json">{"@context": "https://schema.org",
"@type": "%s", "name": "Socks", "description": "<p>%s</p>"}</script><h1>Socks</h1><p>Pick a size%s"""


def shop(kind: str = "Product", shown: str = "") -> Document:
    body = SHELL % (kind, DESCRIPTION, f"<p>{shown}")
    options = ExtractOptions(formats=frozenset({Format.MARKDOWN, Format.HTML}))
    return extract(body.encode(), "text/html", "https://example.com/products/socks", options)


def test_a_description_that_a_product_does_not_show_is_added() -> None:
    found = shop()
    for text in (found.text, found.markdown, found.html):
        assert text is not None
        assert text.count("combed cotton") == 3
    assert found.warning
    assert "structured data" in found.warning
    assert found.metadata.words == len(found.text.split())


@pytest.mark.parametrize(
    "found", [shop("Organization"), shop(shown=DESCRIPTION), shop(shown="Other words. " * 60)]
)
def test_nothing_is_added_to_what_a_page_shows(found: Document) -> None:
    assert found.text.count("combed cotton") in (0, 3)
    assert "structured data" not in (found.warning or "")
