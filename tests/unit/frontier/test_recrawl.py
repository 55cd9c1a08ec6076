from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ExitCode
from trapline.frontier.recrawl import (
    CandidateHistory,
    ChangeObservations,
    Interval,
    change_interval,
    due_at,
    is_due,
    observe,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
INTERVAL = Interval(least=DAY, most=30 * DAY)


def looks(*changed: bool, every: timedelta = DAY) -> ChangeObservations:
    observed = ChangeObservations()
    for change in changed:
        observed = observe(observed, changed=change, elapsed=every)
    return observed


def due(code: ExitCode, **known: object) -> timedelta | None:
    at = due_at(code, CandidateHistory(**known), now=NOW, interval=INTERVAL)  # type: ignore[arg-type]
    return at - NOW if at else None


def test_a_page_that_changes_always_is_due_soonest() -> None:
    assert due(ExitCode.CONTENT, observed=looks(*[True] * 10)) == DAY


def test_a_page_that_never_changes_is_due_last() -> None:
    assert due(ExitCode.NOT_MODIFIED, observed=looks(*[False] * 10)) == 30 * DAY


def test_the_estimate_finds_the_rate() -> None:
    every_fifth = looks(*[number % 5 == 0 for number in range(1, 101)])
    found = change_interval(every_fifth)
    assert found is not None
    assert 3 * DAY < found < 8 * DAY


def test_what_is_recent_counts_more() -> None:
    woke_up = change_interval(looks(*[False] * 30, *[True] * 10))
    fell_asleep = change_interval(looks(*[True] * 10, *[False] * 30))
    assert woke_up is not None
    assert fell_asleep is not None
    assert woke_up < 2 * DAY < 20 * DAY < fell_asleep


def test_a_sitemap_is_believed_until_the_page_was_seen_twice() -> None:
    assert due(ExitCode.CONTENT) == DAY
    assert due(ExitCode.CONTENT, declared="weekly") == 7 * DAY
    assert due(ExitCode.CONTENT, declared="hourly") == DAY
    assert due(ExitCode.CONTENT, declared="yearly") == 30 * DAY
    assert due(ExitCode.CONTENT, declared="yearly", observed=looks(*[True] * 2)) == DAY


@pytest.mark.parametrize(
    ("code", "rechecks"),
    [(ExitCode.NOT_FOUND, 3), (ExitCode.SOFT_NOT_FOUND, 3), (ExitCode.GONE, 1)],
)
def test_a_lost_page_is_rechecked_then_let_go(code: ExitCode, rechecks: int) -> None:
    waits = [due(code, failures=failures) for failures in range(rechecks + 1)]
    assert waits == [*(2**failures * DAY for failures in range(rechecks)), None]


def test_a_failure_backs_off_up_to_the_most() -> None:
    assert due(ExitCode.SERVER_ERROR) == DAY
    assert due(ExitCode.SERVER_ERROR, failures=3) == 8 * DAY
    assert due(ExitCode.SERVER_ERROR, failures=500) == 30 * DAY


def test_what_can_never_be_fetched_is_never_due() -> None:
    assert due(ExitCode.UNSUPPORTED_SCHEME) is None


def test_when_to_visit() -> None:
    last, later = NOW - DAY, NOW + DAY
    assert is_due(None, now=NOW, last_visit=None)
    assert is_due(NOW, now=NOW, last_visit=last)
    assert not is_due(later, now=NOW, last_visit=last)
    assert not is_due(None, now=NOW, last_visit=last)
    assert is_due(later, now=NOW, last_visit=last, force=True)
    assert is_due(later, now=NOW, last_visit=last, modified=NOW)
    assert not is_due(later, now=NOW, last_visit=last, modified=last)
    assert not is_due(later, now=NOW, last_visit=last, modified=later)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1e9)), max_size=50),
    st.sampled_from(ExitCode),
    st.integers(0, 10_000),
)
def test_due_times_stay_between_least_and_most(
    seen: list[tuple[bool, float]], code: ExitCode, failures: int
) -> None:
    observed = ChangeObservations()
    for changed, seconds in seen:
        observed = observe(observed, changed=changed, elapsed=timedelta(seconds=seconds))
    wait = due(code, observed=observed, failures=failures)
    assert wait is None or DAY <= wait <= 30 * DAY
