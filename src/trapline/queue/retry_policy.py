"""The retry policy: the outcome of a failed attempt, from the error table; a pure function."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from trapline.errors import OUTCOMES, Category, ExitCode, Retry, TraplineError, VisitFailed

LONGEST_ERROR = 2000
# A server that asks for more is asked again after a day.
LONGEST_HINT = timedelta(days=1)
_UNNECESSARY = (Category.SKIPPED, Category.REFUSED_BY_ROBOTS)


class TaskOutcome(IntEnum):
    """The outcome of an attempt. The first four are states of an ended task. Stored: never reuse one."""

    COMPLETED = 0
    FAILED = 1
    SKIPPED = 2
    CANCELLED = 3
    RETRY = 4
    STALLED = 5
    RELEASED = 6


class Skip(TraplineError):
    """The task is unnecessary; its reservation in the job's limit goes to another task."""

    def __init__(self, message: str | None = None, code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.code = code


class RetryLater(TraplineError):
    """The task asks for another attempt, after `retry_after` seconds if given."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter: the pause doubles from `first` up to `longest`."""

    max_attempts: int = 3
    first: timedelta = timedelta(seconds=2)
    longest: timedelta = timedelta(minutes=10)
    jitter: float = 0.25

    def pause(self, attempt: int, rng: random.Random) -> timedelta:
        """Return the pause after attempt number `attempt` (from 1)."""
        doubled: timedelta = self.first * int(2 ** min(attempt - 1, 30))
        spread: float = 1 + rng.uniform(-self.jitter, self.jitter)
        return min(doubled, self.longest) * spread


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The outcome of a failed attempt, with its reason and, for a retry, its time."""

    outcome: TaskOutcome
    code: ExitCode | None
    error: str
    run_at: datetime | None = None


def decide(  # noqa: PLR0913 (all that a decision depends on)
    error: BaseException,
    *,
    attempt: int,
    max_attempts: int,
    policy: RetryPolicy,
    now: datetime,
    rng: random.Random,
) -> RetryDecision:
    """Return the outcome of attempt number `attempt`, which raised `error`."""
    reason = (str(error) or type(error).__name__)[:LONGEST_ERROR]
    if isinstance(error, Skip):
        return RetryDecision(TaskOutcome.SKIPPED, error.code, reason)
    code = error.code if isinstance(error, VisitFailed) else ExitCode.UNEXPECTED
    if not isinstance(error, TraplineError):
        reason = f"{type(error).__name__}: {reason}"[:LONGEST_ERROR]
    if OUTCOMES[code].category in _UNNECESSARY:
        return RetryDecision(TaskOutcome.SKIPPED, code, reason)
    pause = _pause(error, OUTCOMES[code].retry, attempt, policy, rng)
    if pause is None or attempt >= max_attempts:
        return RetryDecision(TaskOutcome.FAILED, code, reason)
    return RetryDecision(TaskOutcome.RETRY, code, reason, now + pause)


def _pause(
    error: BaseException, rule: Retry, attempt: int, policy: RetryPolicy, rng: random.Random
) -> timedelta | None:
    hint = getattr(error, "retry_after", None)
    if isinstance(error, RetryLater):
        if hint is None:
            return policy.pause(attempt, rng)
        return timedelta(seconds=min(max(hint, 0.0), LONGEST_HINT.total_seconds()))
    match rule:
        case Retry.NEVER:
            return None
        case Retry.IMMEDIATE_THEN_BACKOFF if attempt == 1:
            return timedelta()
        case Retry.AFTER_HINT if hint is not None:
            return timedelta(seconds=min(max(hint, 0.0), LONGEST_HINT.total_seconds()))
        case _:
            return policy.pause(attempt, rng)
