"""Where a page is extracted, by its cost."""

import asyncio
from time import thread_time

import pytest

from trapline.errors import InvalidInput, VisitFailed
from trapline.extract.cost import Place, SiteCosts, count_tags, place_for
from trapline.extract.files.reader_result import Limits
from trapline.extract.files.sandbox import pool
from trapline.extract.html.selectors import check_selectors
from trapline.extract.page import extract
from trapline.model import ExtractOptions, Format
from trapline.pipeline import document_formats

URL = "https://site.test/page"
PLAIN = ExtractOptions()
PSEUDO = ExtractOptions(exclude_tags=("*:nth-last-of-type(n)",))


def test_small_pages_stay_on_the_loop() -> None:
    assert place_for(b"<p>" * 10_000, PLAIN, cheap_site=False) is Place.LOOP
    assert place_for(b"<p>some words</p>" * 3_000, PLAIN, cheap_site=False) is Place.LOOP
    assert place_for(b"words " * 100_000, PLAIN, cheap_site=False) is Place.LOOP


def test_pages_of_many_elements_do_not() -> None:
    body = b"<p>words</p>" * 25_000
    assert count_tags(body) == 50_000
    assert place_for(body, PLAIN, cheap_site=False) is Place.SANDBOX
    assert place_for(body, PLAIN, cheap_site=True) is Place.THREAD
    assert place_for(body * 3, PLAIN, cheap_site=True) is Place.SANDBOX
    assert place_for(body[:100_000], PLAIN, cheap_site=False) is Place.THREAD


def test_costly_selectors_make_small_pages_costly() -> None:
    assert place_for(b"<p>" * 1_000, PSEUDO, cheap_site=True) is Place.LOOP
    assert place_for(b"<p>" * 6_000, PSEUDO, cheap_site=True) is Place.SANDBOX


def test_a_site_is_cheap_after_some_cheap_pages_and_never_again_after_a_costly_one() -> None:
    costs, body = SiteCosts(), b"<p>words</p>" * 5_000
    for _ in range(3):
        assert not costs.are_cheap("https://site.test")
        costs.record("https://site.test", body, seconds=0.01)
    assert costs.are_cheap("https://site.test")
    costs.record("https://site.test", body, seconds=0.1)
    for _ in range(10):
        costs.record("https://site.test", body, seconds=0.01)
    assert not costs.are_cheap("https://site.test")


def test_the_sandbox_gives_the_same_document() -> None:
    body = b"<title>T</title><h1>Head</h1>" + b"<p>Some words of a <a href=/x>text</a>.</p>" * 50
    body += b'<script type="application/ld+json">{"@type": "Article", "author": "A B"}</script>'
    options = ExtractOptions(formats=frozenset(Format))
    there = pool.extract_in_sandbox(body, "text/html", URL, options)
    assert there == extract(body, "text/html", URL, options)
    assert pool.attributes_in_sandbox(body, None, (("a", "href"),))[0].values == ("/x",) * 50


def test_a_page_that_takes_too_long_or_too_much_is_an_error() -> None:
    body = b"<div><p></p>" * 60_000
    options = ExtractOptions(exclude_tags=("div:has(div ~ x)", "*:nth-last-of-type(n)"))
    with pytest.raises(VisitFailed, match="took more than 3 seconds"):
        pool.extract_in_sandbox(body, None, URL, options, Limits(seconds=3.0))
    with pytest.raises(VisitFailed, match="memory"):
        pool.extract_in_sandbox(
            b"<p>" * 2_000_000, None, URL, PLAIN, Limits(memory_bytes=400 << 20)
        )


@pytest.mark.parametrize(
    "selector", [":is(p)" * 11, "div:has(p:has(a))", "p:HAS(a) b:has(c)", "p" * 1001]
)
def test_selectors_without_a_bound_are_refused(selector: str) -> None:
    with pytest.raises(InvalidInput):
        check_selectors([selector])


def test_usual_selectors_are_not() -> None:
    check_selectors(["nav", "p:first-child", "div:has(> p)", "a:not([href]):nth-child(2n+1)"])


HOSTILE = {
    "elements": b"<p>a " * 100_000,
    "angle brackets": b"<" * 5_000_000,
    "inline elements": b"<time>2020</time>" * 30_000,
    "code blocks": b"<pre>a\n" * 60_000,
    "depth": b"<div>" * 200_000,
    "tables": b"<table><tr><td>" * 40_000,
    "text": b"words " * 800_000,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_pages_do_not_hold_the_loop(name: str) -> None:
    """Processor time of the loop's thread between two turns: other processes do not count in it."""
    fetched = document_formats.as_fetched(URL, 200, "text/html", HOSTILE[name])
    work = asyncio.create_task(document_formats.extract_document(fetched, PLAIN))
    longest, before = 0.0, thread_time()
    while not work.done():
        await asyncio.sleep(0.005)
        now = thread_time()
        longest, before = max(longest, now - before), now
    assert work.exception() is None or isinstance(work.exception(), VisitFailed)
    assert longest < 0.1
