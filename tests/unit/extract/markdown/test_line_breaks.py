"""Line breaks in links, definitions and cells, and what stands after them."""

import pytest

from trapline.extract import extract
from trapline.model import ExtractOptions

ALL = ExtractOptions(only_main_content=False)


def markdown(body: str) -> str:
    page = f"<html><body>{body}</body></html>".encode()
    return extract(page, "text/html; charset=utf-8", "http://site.test/", ALL).markdown


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("<p><a href=/x>one<br>two</a></p>", "[one](http://site.test/x)  \ntwo\n"),
        ("<p><a href=/x>one<br></a>two</p>", "[one](http://site.test/x)  \ntwo\n"),
        ("<p>one<a href=/x><br>two</a></p>", "one  \n[two](http://site.test/x)\n"),
        ("<h2><a href=/x>one <br> two</a></h2>", "## [one two](http://site.test/x)\n"),
        ("<a href=/x><h2>one<br></h2></a>", "## [one](http://site.test/x)\n"),
        ("<p>one<br>two</p>", "one  \ntwo\n"),
        ("<dl><dt>word<dd>one<br>two<br></dl>", "word\n\n: one  \n  two\n"),
    ],
)
def test_breaks(body: str, written: str) -> None:
    assert markdown(body) == written


def test_cells_are_one_line() -> None:
    row = "<tr><td><a href=/x>one<br>two</a></td><td>three</td></tr>"
    assert "[one<br>two](http://site.test/x)" in markdown(f"<table>{row * 3}</table>")


def test_no_link_loses_letters_to_an_earlier_break() -> None:
    """The renderer did so where a link was as long as an earlier one was at its break."""
    between = "words " * 50
    for size in range(1, 30):
        later = "b" * (size + 3)
        found = markdown(f"<p><a href=/x>{'a' * size}<br></a> {between} <a href=/y>{later}</a></p>")
        assert f"[{later}](http://site.test/y)" in found
