from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.frontier.spider_traps import (
    MAX_COMBINATIONS,
    MAX_DATES,
    MAX_PARAMETER_SETS,
    Trap,
    TrapDetector,
    TrapKind,
    shape_trap,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SITE = "https://site.test"


def kind(path: str) -> TrapKind | None:
    trap = TrapDetector().detect(f"{SITE}{path}", NOW)
    return trap.kind if trap else None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b/a/b/a/b", TrapKind.REPEATING_PATH),
        ("/x/x/x/x", TrapKind.REPEATING_PATH),
        ("/docs/a/docs/b/docs/c/docs/d/docs/", TrapKind.REPEATING_PATH),
        ("/a/b/c/a/b/c/a/b/c/x", TrapKind.REPEATING_PATH),
        ("/" + "/".join(f"s{number}" for number in range(31)), TrapKind.GROWING_PATH),
        ("/" + "a" * 1600, TrapKind.GROWING_PATH),
        ("/calendar/2031/05", TrapKind.CALENDAR),
        ("/events?date=2100-01-01", TrapKind.CALENDAR),
        ("/x?year=2031&month=5", TrapKind.CALENDAR),
        ("/list?" + "&".join(f"f{number}=1" for number in range(17)), TrapKind.PARAMETERS),
        ("/list?" + "&".join(["tag=a"] * 6), TrapKind.PARAMETERS),
    ],
)
def test_what_a_url_shows_by_itself(path: str, expected: TrapKind) -> None:
    assert kind(path) is expected


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a/b/c/d/e/f/g",
        "/a/b/a/b",
        "/en/docs/en/intro",
        "/1/1/1/1/1/1",
        "/2019/03/12/a-title",
        "/blog/2019/03/",
        "/events/2031/a-festival-of-its-own",
        "/calendar/2027/05",
        "/calendar",
        "/products/2050-watt-heater",
        "/search?q=a&page=2",
        "/list?tag=a&tag=b",
        "/p?s=short",
        "/p?sid=news",
        "/item?session=morning",
    ],
)
def test_ordinary_urls_pass(path: str) -> None:
    assert kind(path) is None


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("/p;jsessionid=0A1B2C?x=1", "/p?x=1"),
        ("/p?PHPSESSID=abc&x=1&y=2", "/p?x=1&y=2"),
        ("/p?x=1&sid=a8f3e2c1d4b5a697", "/p?x=1"),
        ("/p?CFID=12&CFTOKEN=34", "/p"),
        ("/(S(lit3py55t21z5v55vlm25s55))/p", "/p"),
    ],
)
def test_a_session_leaves_its_page(path: str, instead: str) -> None:
    trap = TrapDetector().detect(f"{SITE}{path}", NOW)
    assert trap is not None
    assert trap.kind is TrapKind.SESSION_ID
    assert trap.instead == f"{SITE}{instead}"
    assert shape_trap(trap.instead) is None


def days(count: int) -> list[str]:
    first = datetime(2024, 1, 1, tzinfo=UTC)
    return [f"{SITE}/calendar/{first + timedelta(days=n):%Y/%m/%d}" for n in range(count)]


def test_a_calendar_is_left_after_many_dates() -> None:
    watch = TrapDetector()
    verdicts = [watch.detect(url, NOW) for url in days(MAX_DATES + 20)]
    assert verdicts[:MAX_DATES] == [None] * MAX_DATES
    assert all(trap is not None and trap.kind is TrapKind.CALENDAR for trap in verdicts[MAX_DATES:])
    assert watch.detect(days(1)[0], NOW) is None
    assert watch.detect(f"{SITE}/elsewhere", NOW) is None


def test_facets_are_left_after_many_sets_of_parameters() -> None:
    watch = TrapDetector()
    sets = [f"{SITE}/shop?f{first}=1&g{second}=1" for first in range(10) for second in range(10)]
    verdicts = [watch.detect(url, NOW) for url in sets]
    assert verdicts[:MAX_PARAMETER_SETS] == [None] * MAX_PARAMETER_SETS
    assert all(trap and trap.kind is TrapKind.PARAMETERS for trap in verdicts[MAX_PARAMETER_SETS:])
    assert watch.detect(sets[0], NOW) is None
    assert watch.detect(f"{SITE}/shop?page=7", NOW) is None
    assert watch.detect(f"{SITE}/other?a=1&b=2", NOW) is None


def test_combinations_of_few_values_are_left_after_many() -> None:
    watch = TrapDetector()
    verdicts = [
        watch.detect(f"{SITE}/shop?size={n % 9}&colour={n // 9 % 9}&sort={n // 81}", NOW)
        for n in range(MAX_COMBINATIONS + 5)
    ]
    assert verdicts[:MAX_COMBINATIONS] == [None] * MAX_COMBINATIONS
    assert all(isinstance(trap, Trap) for trap in verdicts[MAX_COMBINATIONS:])


def test_pages_by_number_are_no_trap() -> None:
    watch = TrapDetector()
    for number in range(3000):
        for search in (
            f"id={number}",
            f"option=content&view=article&id={number}",
            f"f={number % 7}&t={number // 3}&start={number % 3}0",
        ):
            place = f"{SITE}/item{search.count('&')}{search[0]}.php"
            assert watch.detect(f"{place}?{search}", NOW) is None


def test_memory_is_bounded() -> None:
    watch = TrapDetector()
    for number in range(2000):
        watch.detect(f"{SITE}/p{number}?a=1&b=2&c=3", NOW)
        watch.detect(f"{SITE}/p{number}/x/x/x/x", NOW)
    assert len(watch._seen) <= 128


@given(st.text(alphabet="/ab1;=&?()s-20", max_size=80))
def test_no_path_breaks_it(path: str) -> None:
    trap = TrapDetector().detect(f"{SITE}/{path}", NOW)
    if trap is not None and trap.instead is not None:
        assert trap.instead != f"{SITE}/{path}"
