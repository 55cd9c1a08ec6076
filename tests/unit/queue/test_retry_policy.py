"""What follows from a failed attempt."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import OUTCOMES, ExitCode, InvalidInput, Retry, VisitFailed
from trapline.queue.retry_policy import (
    RetryDecision,
    RetryLater,
    RetryPolicy,
    Skip,
    TaskOutcome,
    decide,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
POLICY = RetryPolicy(max_attempts=3, first=timedelta(seconds=2), longest=timedelta(minutes=1))


def judged(error: BaseException, attempt: int = 1) -> RetryDecision:
    return decide(
        error, attempt=attempt, max_attempts=3, policy=POLICY, now=NOW, rng=random.Random(1)
    )


@pytest.mark.parametrize("code", list(ExitCode))
def test_the_error_table_decides(code: ExitCode) -> None:
    decision = judged(VisitFailed(code))
    if OUTCOMES[code].retry is Retry.NEVER:
        assert decision.outcome in {TaskOutcome.FAILED, TaskOutcome.SKIPPED}
        assert decision.run_at is None
    else:
        assert decision.outcome is TaskOutcome.RETRY
    assert decision.error
    assert decision.code is code


def test_a_connection_failure_gets_one_immediate_second_try() -> None:
    error = VisitFailed(ExitCode.CONNECTION_REFUSED)
    assert judged(error).run_at == NOW
    second = judged(error, attempt=2).run_at
    assert second is not None
    assert second > NOW + timedelta(seconds=1)


def test_retry_after_is_obeyed() -> None:
    assert judged(VisitFailed(ExitCode.RATE_LIMITED, retry_after=77)).run_at == NOW + timedelta(
        seconds=77
    )
    assert judged(RetryLater(retry_after=5)).run_at == NOW + timedelta(seconds=5)


def test_the_last_attempt_fails() -> None:
    assert judged(ValueError("broken"), attempt=3).outcome is TaskOutcome.FAILED
    assert judged(ValueError("broken"), attempt=3).error == "ValueError: broken"
    assert judged(InvalidInput("bad"), attempt=3).error == "bad"


def test_a_skip_is_no_failure() -> None:
    assert judged(Skip("not needed")).outcome is TaskOutcome.SKIPPED


@given(st.integers(1, 1000), st.integers())
def test_pauses_grow_and_stay_bounded(attempt: int, seed: int) -> None:
    pause = POLICY.pause(attempt, random.Random(seed))
    assert timedelta(seconds=1.5) <= pause <= POLICY.longest * 1.25
