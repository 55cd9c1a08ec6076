from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ExitCode
from trapline.frontier.politeness import (
    DEFAULT_IN_FLIGHT,
    LONGEST_GAP,
    MAX_PRESSURE,
    Gate,
    HostPace,
    PaceRules,
    gate_of,
    pace_after,
    ready_at,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FRESH = HostPace()


def after(*codes: ExitCode, pace: HostPace = FRESH, seconds: float = 1.0) -> HostPace:
    for code in codes:
        pace = pace_after(pace, code, response_seconds=seconds, retry_after=None, now=NOW)
    return pace


def test_a_host_that_answers_is_asked_as_fast_as_it_answers() -> None:
    assert gate_of(HostPace(), PaceRules()) == Gate(gap=0.0, in_flight=DEFAULT_IN_FLIGHT)
    assert gate_of(after(ExitCode.CONTENT), PaceRules()).gap == 0.5
    assert gate_of(after(ExitCode.CONTENT), PaceRules(max_in_flight=4)).gap == 0.25
    assert gate_of(after(ExitCode.CONTENT, seconds=0.1), PaceRules(minimum=1.0)).gap == 0.5


def test_pressure_doubles_the_gap_and_success_halves_it() -> None:
    rules = PaceRules(max_in_flight=1)
    tired = after(ExitCode.RATE_LIMITED, ExitCode.SERVICE_UNAVAILABLE)
    assert gate_of(tired, rules).gap == 4.0
    assert gate_of(after(ExitCode.CONTENT, pace=tired), rules).gap == 2.0
    assert gate_of(after(ExitCode.ROBOTS_DISALLOWED, pace=tired), rules).gap == 4.0
    assert after(*[ExitCode.RATE_LIMITED] * 50).pressure == MAX_PRESSURE
    assert after(*[ExitCode.CONTENT] * 50).pressure == 0


def test_a_refusal_at_once_slows_us_down_too() -> None:
    tired = after(*[ExitCode.RATE_LIMITED] * 5, seconds=0.0)
    assert gate_of(tired, PaceRules(max_in_flight=1)).gap == pytest.approx(3.2)


def test_crawl_delay_is_a_floor_that_no_job_lowers() -> None:
    for job_delay in (None, 0.0, 1.0):
        rules = PaceRules(crawl_delay=5.0, job_delay=job_delay, max_in_flight=50)
        assert gate_of(HostPace(), rules) == Gate(gap=5.0, in_flight=1)
    assert gate_of(HostPace(), PaceRules(crawl_delay=5.0, job_delay=9.0)).gap == 9.0


def test_a_job_chooses_its_delay_down_to_none() -> None:
    slow = after(ExitCode.CONTENT, seconds=3.0)
    assert gate_of(slow, PaceRules(job_delay=0.0, max_in_flight=64)) == Gate(0.0, 64)
    assert gate_of(slow, PaceRules(job_delay=2.0)) == Gate(2.0, 1)
    tired = after(ExitCode.RATE_LIMITED, pace=slow, seconds=3.0)
    assert gate_of(tired, PaceRules(job_delay=0.0, max_in_flight=1)).gap == 6.0


def test_retry_after_is_obeyed() -> None:
    pace = pace_after(
        HostPace(), ExitCode.RATE_LIMITED, response_seconds=0.1, retry_after=120, now=NOW
    )
    assert ready_at(pace, Gate(1.0, 1), NOW) == NOW + timedelta(seconds=120)
    sooner = pace_after(pace, ExitCode.RATE_LIMITED, response_seconds=0.1, retry_after=5, now=NOW)
    assert sooner.quiet_until == pace.quiet_until
    later = NOW + timedelta(minutes=5)
    assert ready_at(pace, Gate(1.0, 1), later) == later + timedelta(seconds=1)


@given(
    st.lists(st.sampled_from(ExitCode), max_size=40),
    st.floats(0, 1e6),
    st.floats(-1e9, 1e18),
    st.floats(0, 100),
)
def test_gaps_are_bounded(
    codes: list[ExitCode], seconds: float, retry_after: float, minimum: float
) -> None:
    pace = HostPace()
    for code in codes:
        pace = pace_after(pace, code, response_seconds=seconds, retry_after=retry_after, now=NOW)
    gate = gate_of(pace, PaceRules(minimum=minimum))
    assert 0 <= gate.gap <= LONGEST_GAP
    assert NOW <= ready_at(pace, gate, NOW) <= NOW + timedelta(days=2)
