"""Recrawl schedule: when a page is due again, by its observed change rate, within an interval."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct

from trapline.errors import OUTCOMES, ExitCode, Recrawl

# Exponential decay: about the last ten visits of a page decide.
_MEMORY = 0.9
_RECHECKS = {ExitCode.NOT_FOUND: 3, ExitCode.SOFT_NOT_FOUND: 3, ExitCode.GONE: 1}
_DECLARED = {
    "always": timedelta(hours=1),
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
    "monthly": timedelta(days=30),
    "yearly": timedelta(days=365),
    "never": timedelta(days=365),
}


class ChangeObservations(Struct, frozen=True, gc=False):
    """Visits of a page, those that saw a change, and the time they span; older ones count less."""

    looks: float = 0.0
    changes: float = 0.0
    seconds: float = 0.0


class CandidateHistory(Struct, frozen=True, gc=False):
    """The history of a page when a visit of it has ended; stored in the candidate row.

    `failures` counts the visits without content before this one, since the last with content;
    `declared` is the sitemap's changefreq, which counts only until the page was visited twice.
    """

    observed: ChangeObservations = ChangeObservations()
    failures: int = 0
    declared: str | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """How soon and how late a page may be visited again."""

    least: timedelta = timedelta(days=1)
    most: timedelta = timedelta(days=30)

    def bound(self, time: timedelta) -> timedelta:
        return min(max(time, self.least), self.most)


def observe(
    observed: ChangeObservations, *, changed: bool, elapsed: timedelta
) -> ChangeObservations:
    """Add one visit, that much time after the one before."""
    seconds = max(elapsed.total_seconds(), 0.0)
    return ChangeObservations(
        looks=observed.looks * _MEMORY + 1,
        changes=observed.changes * _MEMORY + changed,
        seconds=observed.seconds * _MEMORY + seconds,
    )


def change_interval(observed: ChangeObservations) -> timedelta | None:
    """The mean time between two changes of the page, if it was visited more than once.

    Between two visits a page may change more than once, so a count of changed visits is too low. This
    is the estimator of Cho and Garcia-Molina, which is defined even if every visit, or none, saw a
    change.
    """
    if observed.looks <= 0 or observed.seconds <= 0:
        return None
    unchanged = max(observed.looks - observed.changes, 0.0) + 0.5
    per_look = -math.log(unchanged / (observed.looks + 0.5))
    if per_look <= 0:
        return timedelta.max
    seconds = observed.seconds / observed.looks / per_look
    return timedelta(seconds=min(seconds, timedelta.max.total_seconds() / 2))


def due_at(
    code: ExitCode, history: CandidateHistory, *, now: datetime, interval: Interval
) -> datetime | None:
    """When a page is due again after a visit with this exit code; None never."""
    match OUTCOMES[code].recrawl:
        case Recrawl.BY_CHANGE_RATE:
            return now + interval.bound(_expected(history) or interval.least)
        case Recrawl.SOON:
            return now + _backed_off(interval, history.failures)
        case Recrawl.RECHECK_THEN_FORGET:
            gone = history.failures >= _RECHECKS.get(code, 1)
            return None if gone else now + _backed_off(interval, history.failures)
        case Recrawl.NEVER:
            return None


def is_due(
    due: datetime | None,
    *,
    now: datetime,
    last_visit: datetime | None,
    modified: datetime | None = None,
    force: bool = False,
) -> bool:
    """Whether to visit now: forced, never visited, due, or newer by its sitemap's lastmod."""
    if force or last_visit is None:
        return True
    if modified is not None and last_visit < modified <= now:
        return True
    return due is not None and due <= now


def _expected(history: CandidateHistory) -> timedelta | None:
    return change_interval(history.observed) or _DECLARED.get(history.declared or "")


def _backed_off(interval: Interval, failures: int) -> timedelta:
    return interval.bound(interval.least * 2 ** min(failures, 12))
