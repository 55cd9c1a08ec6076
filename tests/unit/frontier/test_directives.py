from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.frontier.robots import Directives, page_directives

AGENT = "Fuchs/1.0"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def by_meta(content: str, name: str = "robots") -> Directives:
    return page_directives([(name, content)], [], AGENT)


def by_header(*headers: str) -> Directives:
    return page_directives([], headers, AGENT)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", Directives()),
        ("all", Directives()),
        ("index, follow", Directives()),
        ("noindex", Directives(noindex=True)),
        ("NOINDEX,NoFollow", Directives(noindex=True, nofollow=True)),
        ("none", Directives(noindex=True, nofollow=True)),
        ("nocache nosnippet", Directives()),
        ("noarchive, nosnippet, max-snippet:-1", Directives(noarchive=True, nosnippet=True)),
        ("follow, nofollow", Directives(nofollow=True)),
    ],
)
def test_what_a_page_says(content: str, expected: Directives) -> None:
    assert by_meta(content) == expected
    assert by_header(content) == expected


def test_names_of_agents() -> None:
    assert by_meta("noindex", "Fuchs").noindex
    assert by_meta("noindex", "ROBOTS").noindex
    assert not by_meta("noindex", "dachs").noindex
    assert by_header("fuchs: noindex").noindex
    assert not by_header("dachs: noindex, nofollow").noindex
    assert by_header("dachs: noindex", "nofollow") == Directives(nofollow=True)
    assert by_header("max-snippet: 20, noindex").noindex
    assert by_header("noindex, max-snippet: 20").noindex


def test_the_strictest_of_both_places_holds() -> None:
    both = page_directives([("robots", "index")], ["noindex"], AGENT)
    assert both.noindex


@pytest.mark.parametrize("date", ["2029-12-31", "Mon, 31 Dec 2029 15:00:00 GMT", "31 Dec 2029 15:00:00 PST"])  # fmt: skip
def test_a_page_can_end(date: str) -> None:
    found = by_header(f"unavailable_after: {date}")
    assert not found.is_indexable(NOW)
    assert found.is_indexable(NOW.replace(year=2029, month=1))
    assert by_meta(f"noarchive, unavailable_after: {date}").unavailable_after is not None
    assert by_header("unavailable_after: never").is_indexable(NOW)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_breaks_it(meta: str, header: str) -> None:
    page_directives([("robots", meta)], [header], AGENT).is_indexable(NOW)
