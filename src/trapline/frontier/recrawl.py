"""When a page is due again: by how often it was seen to change, between a least and a most."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct

from trapline.errors import OUTCOMES, ExitCode, Recrawl

# What is older counts less: about the last ten looks at a page decide.
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


class Observed(Struct, frozen=True, gc=False):
    """What repeated looks at a page showed: how many, how many saw a change, over what time."""

    looks: float = 0.0
    changes: float = 0.0
    seconds: float = 0.0

    @classmethod
    def from_counts(
        cls, *, visits: int, changes: int, first: datetime, last: datetime
    ) -> "Observed":
        """From plain counts: the first visit has nothing before it, so it is no look."""
        return cls(
            looks=max(visits - 1, 0),
            changes=min(max(changes - 1, 0), max(visits - 1, 0)),
            seconds=max((last - first).total_seconds(), 0.0),
        )


class History(Struct, frozen=True, gc=False):
    """What is known of a page when a visit of it has ended; it belongs to the candidate row.

    `failures` counts the visits without content before this one, since the last with content;
    `declared` is the sitemap's changefreq, which only counts until the page was seen twice.
    """

    observed: Observed = Observed()
    failures: int = 0
    declared: str | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """How soon and how late a page may be visited again."""

    least: timedelta = timedelta(days=1)
    most: timedelta = timedelta(days=30)

    def bound(self, wanted: timedelta) -> timedelta:
        return min(max(wanted, self.least), self.most)


def observe(observed: Observed, *, changed: bool, elapsed: timedelta) -> Observed:
    """Add one more look, that much time after the one before; what is older counts less."""
    seconds = max(elapsed.total_seconds(), 0.0)
    return Observed(
        looks=observed.looks * _MEMORY + 1,
        changes=observed.changes * _MEMORY + changed,
        seconds=observed.seconds * _MEMORY + seconds,
    )


def change_interval(observed: Observed) -> timedelta | None:
    """The mean time between two changes of the page, if it was looked at more than once.

    Between two looks a page may change more than once, so counting changed looks is too low; this
    is the estimate of Cho and Garcia-Molina, which also has an answer where every look, or none,
    saw a change.
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
    code: ExitCode, history: History, *, now: datetime, interval: Interval
) -> datetime | None:
    """When a page is due again after a visit that ended so; None lets it go."""
    match OUTCOMES[code].recrawl:
        case Recrawl.BY_CHANGE_RATE:
            return now + interval.bound(_expected(history) or interval.least)
        case Recrawl.SOON:
            return now + _backed_off(interval, history.failures)
        case Recrawl.RECHECK_THEN_LET_GO:
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


def _expected(history: History) -> timedelta | None:
    return change_interval(history.observed) or _DECLARED.get(history.declared or "")


def _backed_off(interval: Interval, failures: int) -> timedelta:
    return interval.bound(interval.least * 2 ** min(failures, 12))
