from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ExitCode
from trapline.frontier.politeness import (
    FIRST_RETRY_AFTER,
    LONGEST_GAP,
    MAX_ERROR_PRESSURE,
    MAX_PRESSURE,
    HostAnswer,
    HostPace,
    gap_of,
    pace_after,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FRESH = HostPace()
LONGEST = 600.0


def after(*codes: ExitCode, pace: HostPace = FRESH, seconds: float = 1.0, **more: Any) -> HostPace:
    for code in codes:
        answer = HostAnswer(code, seconds, **more)
        pace = pace_after(pace, answer, longest_pause=LONGEST, now=NOW)
    return pace


def gap(pace: HostPace, *, minimum: float = 0.0, in_flight: int = 1) -> float:
    return gap_of(pace, minimum=minimum, in_flight=in_flight)


def test_a_host_that_answers_is_asked_as_fast_as_it_answers() -> None:
    assert gap(HostPace(), in_flight=2) == 0.0
    assert gap(after(ExitCode.CONTENT), in_flight=2) == 0.5
    assert gap(after(ExitCode.CONTENT), in_flight=4) == 0.25
    assert gap(after(ExitCode.CONTENT, seconds=0.1), minimum=1.0, in_flight=2) == 0.5


def test_pressure_doubles_the_gap_and_success_halves_it() -> None:
    tired = after(ExitCode.RATE_LIMITED, ExitCode.SERVICE_UNAVAILABLE)
    assert gap(tired) == 4.0
    assert gap(after(ExitCode.CONTENT, pace=tired)) == 2.0
    assert gap(after(ExitCode.ROBOTS_DISALLOWED, pace=tired)) == 4.0
    assert after(*[ExitCode.RATE_LIMITED] * 50).pressure == MAX_PRESSURE
    assert after(*[ExitCode.CONTENT] * 50).pressure == 0


def test_a_refusal_at_once_slows_us_down_too() -> None:
    assert gap(after(*[ExitCode.RATE_LIMITED] * 5, seconds=0.0)) == pytest.approx(3.2)


def test_broken_urls_among_good_ones_are_no_pressure() -> None:
    """Twelve URLs in a row that answer 500, after good pages, and all their retries."""
    pace = after(*[ExitCode.CONTENT] * 20, *[ExitCode.SERVER_ERROR] * 12)
    assert pace.pressure == 0
    pace = after(*[ExitCode.SERVER_ERROR] * 36, pace=pace, retried=True)
    assert pace.pressure == 0


def test_a_host_of_which_nothing_works_is_asked_less_but_not_left_alone() -> None:
    pace = after(*[ExitCode.SERVER_ERROR] * 100, seconds=0.05)
    assert pace.pressure == MAX_ERROR_PRESSURE
    assert 0 < gap(pace) < 2
    assert after(*[ExitCode.CONTENT] * MAX_ERROR_PRESSURE, pace=pace).pressure == 0


def test_errors_do_not_lower_the_pressure_that_the_host_asked_for() -> None:
    tired = after(*[ExitCode.RATE_LIMITED] * 8)
    assert after(*[ExitCode.SERVER_ERROR] * 30, pace=tired).pressure == 8


def test_retry_after_pauses_the_host() -> None:
    pace = after(ExitCode.RATE_LIMITED, retry_after=20)
    assert pace.quiet_until == NOW + timedelta(seconds=20)
    assert after(ExitCode.RATE_LIMITED, pace=pace, retry_after=5).quiet_until == pace.quiet_until


def test_one_url_cannot_shut_its_host_for_long() -> None:
    pauses, pace = [], FRESH
    for _ in range(6):
        pace = after(ExitCode.RATE_LIMITED, pace=pace, retry_after=1e12)
        assert pace.quiet_until is not None
        pauses.append((pace.quiet_until - NOW).total_seconds())
    assert pauses == [FIRST_RETRY_AFTER, 120, 240, 480, LONGEST, LONGEST]
    calm = after(ExitCode.CONTENT, pace=pace)
    again = after(ExitCode.RATE_LIMITED, pace=HostPace(refusals=calm.refusals), retry_after=1e12)
    assert again.quiet_until == NOW + timedelta(seconds=FIRST_RETRY_AFTER)


@given(
    st.lists(st.sampled_from(ExitCode), max_size=40),
    st.floats(0, 1e6),
    st.floats(-1e9, 1e18),
    st.floats(0, 100),
    st.booleans(),
)
def test_gaps_are_bounded(
    codes: list[ExitCode], seconds: float, retry_after: float, minimum: float, retried: bool
) -> None:
    pace = after(*codes, seconds=seconds, retry_after=retry_after, retried=retried)
    assert 0 <= gap(pace, minimum=minimum) <= LONGEST_GAP
    assert NOW <= (pace.quiet_until or NOW) <= NOW + timedelta(seconds=LONGEST)
