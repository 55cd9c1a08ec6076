"""HTML as found in the wild: no input crashes, hangs or is answered with nothing."""

import resource

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trapline.extract import extract
from trapline.model import Document, ExtractOptions, Format

URL = "https://example.com/"
EVERYTHING = ExtractOptions(formats=frozenset(Format))
WORDS = "These are words that somebody wrote and that must not be lost."


def read(body: str | bytes, options: ExtractOptions = EVERYTHING) -> Document:
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return extract(data, "text/html", URL, options)


KEPT = {
    "no markup": WORDS,
    "no body": f"<html><head><title>x</title></head>{WORDS}",
    "text in head": f"<head>{WORDS}</head>",
    "broken nesting": f"<p><b><div></p><table><b>{WORDS}</i></div>",
    "unclosed everything": f"<div><ul><li><a href=x><b>{WORDS}",
    "unclosed svg": f"<div><svg><path><p>{WORDS}",
    "unclosed math": f"<math><mi><p>{WORDS}",
    "noscript": f"<noscript><div><p>{WORDS}</p></div></noscript>",
    "template": f"<template><p>{WORDS}</p></template>",
    "shadow root": f"<div><template shadowrootmode=open><p>{WORDS}</p></template></div>",
    "frames": f"<frameset><frame src=a></frameset><noframes><p>{WORDS}</p></noframes>",
    "nested document": f"<html><body><html><body><p>{WORDS}</p></body></html></body></html>",
    "null bytes": f"<p>\x00{WORDS}\x00</p>\x00",
    "a form": f"<form><table><tr><td>{WORDS}</td></tr></table></form>",
    "a link alone": f"<a href=/x>{WORDS}</a>",
    "a navigation alone": f"<nav><ul><li>{WORDS}</li></ul></nav>",
    "a footer alone": f"<footer>{WORDS}</footer>",
    "a button": f"<button>{WORDS}</button>",
    "hidden": f"<div style='display:none'><p>{WORDS}</p></div>",
    "custom element": f"<x-app><x-text>{WORDS}</x-text></x-app>",
    "amp": f"<html amp><body><amp-story><p>{WORDS}</p></amp-story></body></html>",
    "plaintext": f"<plaintext>{WORDS}",
    "only iframe text": f"<iframe>&lt;p>{WORDS}&lt;/p></iframe>",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_words_are_kept(body: str) -> None:
    found = read(body)
    assert "somebody wrote" in found.text
    assert "somebody wrote" in found.markdown


@pytest.mark.parametrize("name", ["frames", "template", "only iframe text"])
def test_a_fallback_says_so(name: str) -> None:
    assert read(KEPT[name]).warning


def test_a_shell_that_scripts_fill_is_told_from_an_empty_page() -> None:
    found = read(
        "<title>t</title><meta name=description content=d><div id=app></div><script></script>"
    )
    assert found.text == ""
    assert found.warning
    assert "scripts" in found.warning
    assert (found.metadata.title, found.metadata.description) == ("t", "d")


def test_a_notice_that_asks_for_scripts_is_not_the_text() -> None:
    notice = "You need to enable JavaScript to run this app."
    shell = f"<body><noscript>{notice}</noscript><div id=root></div><script></script>"
    found = extract(shell.encode(), "text/html", URL)
    assert found.text == ""
    assert found.warning
    assert "scripts" in found.warning
    assert extract(f"<p>{notice}</p>".encode(), "text/html", URL).text == notice


@pytest.mark.parametrize("body", ["", " \n", "<html></html>", "<div><span></span></div>", "\x00"])
def test_an_empty_page_says_so(body: str) -> None:
    found = read(body)
    assert found.text == ""
    assert found.warning


def test_depth_of_ten_thousand() -> None:
    found = read("<div>" * 10_000 + WORDS + "</div>" * 10_000)
    assert "somebody wrote" in found.text
    assert "somebody wrote" in read("<ul><li>" * 10_000 + WORDS).text
    assert "somebody wrote" in read("<blockquote>" * 3_000 + f"<p>{WORDS}").markdown
    assert "somebody wrote" in read("<table><tr><td>" * 2_000 + WORDS).text


def test_many_siblings_and_attributes() -> None:
    assert read(f"<p>{WORDS}</p>" + "<i></i>" * 50_000).text == WORDS
    attributes = " ".join(f"a{number}=x" for number in range(20_000))
    assert "somebody wrote" in read(f"<div {attributes}><p>{WORDS}</p></div>").text
    assert "somebody wrote" in read(f"<p class='{'c ' * 100_000}'>{WORDS}</p>").text


def test_spans_that_promise_a_huge_table() -> None:
    cell = '<td colspan="1000000000" rowspan="1000000000">x</td>'
    body = f"<table>{f'<tr>{cell * 20}</tr>' * 50}</table><p>{WORDS}</p>"
    assert len(read(body, ExtractOptions(only_main_content=False)).markdown) < 2_000_000


def test_fifty_megabytes() -> None:
    paragraph = f"<div class='x'><p>{WORDS}</p><a href='/y'>more</a></div>\n"
    body = (paragraph * (50_000_000 // len(paragraph))).encode()
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = extract(body, "text/html", URL)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert "somebody wrote" in found.text
    assert found.warning
    assert "first part" in found.warning
    # Bounds that a quadratic step or a copy of the page for each node would break by far.
    assert after.ru_utime - before.ru_utime < 120
    assert (after.ru_maxrss - before.ru_maxrss) * 1024 < 2_500_000_000


TAGS = st.sampled_from(
    [
        "div",
        "p",
        "a",
        "b",
        "ul",
        "li",
        "table",
        "tr",
        "td",
        "th",
        "pre",
        "code",
        "h1",
        "h2",
        "dl",
        "dt",
        "dd",
        "svg",
        "math",
        "template",
        "noscript",
        "form",
        "select",
        "option",
        "button",
        "iframe",
        "title",
        "style",
        "script",
        "details",
        "summary",
        "sup",
        "frameset",
        "article",
    ]
)
ATTRIBUTES = st.sampled_from(
    ["", " class=nav", " id=fn1", " href=#fn1", " href='/x y'", " colspan=3 rowspan=9", " hidden"]
)
TEXTS = st.text(max_size=20) | st.sampled_from([" ", "\n", "<", "&#0;", "&amp", "\x00", "]]>"])
PIECES = st.one_of(
    st.builds("<{}{}>".format, TAGS, ATTRIBUTES), st.builds("</{}>".format, TAGS), TEXTS
)
BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@BOUNDED
@given(st.lists(PIECES, max_size=60).map("".join))
def test_any_tag_soup_gives_a_document(body: str) -> None:
    found = read(body)
    assert found == read(body)
    assert found.text or found.warning


@BOUNDED
@given(st.binary(max_size=400))
def test_any_bytes_as_html_give_a_document(body: bytes) -> None:
    found = extract(b"<p>" + body, "text/html; charset=utf-8", URL, EVERYTHING)
    assert found.text or found.warning


@BOUNDED
@given(st.lists(PIECES, max_size=40).map("".join))
def test_whole_pages_keep_every_word(body: str) -> None:
    whole = read(f"<p>{WORDS}</p><div>{body}", ExtractOptions(only_main_content=False))
    assert "somebody wrote" in whole.markdown
