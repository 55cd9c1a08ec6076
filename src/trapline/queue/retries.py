"""What follows from a failed attempt: decided here, from the error table, without a clock."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from trapline.errors import OUTCOMES, Category, ExitCode, Retry, TraplineError, VisitFailed

LONGEST_ERROR = 2000
_UNNECESSARY = (Category.SKIPPED, Category.REFUSED_BY_ROBOTS)


class Verdict(IntEnum):
    """What an attempt came to. The first four are states of an ended task. Stored: never reuse one."""

    COMPLETED = 0
    FAILED = 1
    SKIPPED = 2
    CANCELLED = 3
    RETRY = 4
    STALLED = 5
    RELEASED = 6


class Skip(TraplineError):
    """The task turned out to be unnecessary; it hands its place in the job's limit on."""

    def __init__(self, message: str | None = None, code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.code = code


class RetryLater(TraplineError):
    """The task asks for another attempt, at its own time if it names one."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how far apart. The gap doubles from `first` up to `longest`."""

    max_attempts: int = 3
    first: timedelta = timedelta(seconds=2)
    longest: timedelta = timedelta(minutes=10)
    jitter: float = 0.25

    def pause(self, attempt: int, rng: random.Random) -> timedelta:
        """Return how long to wait after attempt number `attempt` (from 1)."""
        doubled: timedelta = self.first * int(2 ** min(attempt - 1, 30))
        spread: float = 1 + rng.uniform(-self.jitter, self.jitter)
        return min(doubled, self.longest) * spread


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason and, for a retry, its time."""

    verdict: Verdict
    code: ExitCode | None
    error: str
    run_at: datetime | None = None


def judge(  # noqa: PLR0913 (all that a decision depends on)
    error: BaseException,
    *,
    attempt: int,
    max_attempts: int,
    policy: RetryPolicy,
    now: datetime,
    rng: random.Random,
) -> Judgement:
    """Decide what becomes of a task whose attempt number `attempt` raised."""
    reason = (str(error) or type(error).__name__)[:LONGEST_ERROR]
    if isinstance(error, Skip):
        return Judgement(Verdict.SKIPPED, error.code, reason)
    code = error.code if isinstance(error, VisitFailed) else ExitCode.UNEXPECTED
    if not isinstance(error, TraplineError):
        reason = f"{type(error).__name__}: {reason}"[:LONGEST_ERROR]
    if OUTCOMES[code].category in _UNNECESSARY:
        return Judgement(Verdict.SKIPPED, code, reason)
    pause = _pause(error, OUTCOMES[code].retry, attempt, policy, rng)
    if pause is None or attempt >= max_attempts:
        return Judgement(Verdict.FAILED, code, reason)
    return Judgement(Verdict.RETRY, code, reason, now + pause)


def _pause(
    error: BaseException, rule: Retry, attempt: int, policy: RetryPolicy, rng: random.Random
) -> timedelta | None:
    hint = getattr(error, "retry_after", None)
    if isinstance(error, RetryLater):
        return timedelta(seconds=hint) if hint is not None else policy.pause(attempt, rng)
    match rule:
        case Retry.NEVER:
            return None
        case Retry.ONCE_AT_ONCE if attempt == 1:
            return timedelta()
        case Retry.AFTER_HINT if hint is not None:
            return max(timedelta(seconds=hint), timedelta())
        case _:
            return policy.pause(attempt, rng)
