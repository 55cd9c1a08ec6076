"""When a schedule ticks: cron fields or an interval, in a time zone, over clock changes.

A cron rule follows the wall clock as Debian's cron does. A rule at fixed hours runs once a day: in
the hour that is skipped in spring it runs right after the gap, in the hour that comes twice in
autumn at its first passing. A rule whose minutes or hours begin with a star runs by elapsed time,
so that `*/15 * * * *` has no hole and no double. An interval always counts elapsed seconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import MappingProxyType
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trapline.errors import InvalidInput

ScheduleKind = Literal["one_time", "scheduled", "recurring"]

SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=3660)
_LONGEST_CRON: Final = 200
_FIELDS: Final = 5
_NAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "@hourly": "0 * * * *",
        "@daily": "0 0 * * *",
        "@weekly": "0 0 * * 0",
        "@monthly": "0 0 1 * *",
        "@yearly": "0 0 1 1 *",
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """When jobs are made. A `one_time` rule ticks at once, a `scheduled` one at `starts_at`."""

    kind: ScheduleKind
    cron: str | None = None
    every: timedelta | None = None
    timezone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def check(self) -> None:
        """Raise InvalidInput, with what is wrong, unless the rule can tick."""
        zone = _zone(self.timezone)
        for moment in (self.starts_at, self.ends_at):
            if moment is not None and moment.tzinfo is None:
                raise InvalidInput("Times need a time zone.")
        if self.kind == "recurring":
            self._check_recurring(zone)
        elif self.cron is not None or self.every is not None:
            raise InvalidInput("Only a recurring schedule has a cron rule or an interval.")
        if self.kind == "one_time" and (self.starts_at or self.ends_at):
            raise InvalidInput("A one_time schedule runs at once; one with a time is `scheduled`.")
        if self.kind == "scheduled" and self.starts_at is None:
            raise InvalidInput("A scheduled run needs the time at which it starts.")

    def _check_recurring(self, zone: ZoneInfo) -> None:
        if (self.cron is None) == (self.every is None):
            raise InvalidInput("A recurring schedule has either a cron rule or an interval.")
        if self.every is not None and not SHORTEST <= self.every <= LONGEST:
            raise InvalidInput("An interval is from a minute to ten years.")
        if self.cron is not None and next(_cron(self.cron, datetime.now(zone)), None) is None:
            raise InvalidInput(f"The cron rule {self.cron!r} never comes true.")

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Give the ticks after a moment, in order, in UTC."""
        if self.ends_at is None:
            yield from self._ticks(moment)
            return
        for tick in self._ticks(moment):
            if tick > self.ends_at:
                return
            yield tick

    def next(self, moment: datetime) -> datetime | None:
        """Return the first tick after a moment, if there is one."""
        return next(self.after(moment), None)

    def first(self, now: datetime) -> datetime | None:
        """Return the tick that a new schedule waits for."""
        if self.kind == "one_time":
            return now
        if self.kind == "scheduled":
            return self.starts_at
        return self.next(now)

    def upcoming(self, moment: datetime, count: int) -> list[datetime]:
        return list(islice(self.after(moment), count))

    def _ticks(self, moment: datetime) -> Iterator[datetime]:
        if self.kind != "recurring":
            if self.starts_at is not None and self.starts_at > moment:
                yield self.starts_at.astimezone(UTC)
        elif self.cron is not None:
            # One that starts on the minute ticks then, not a minute later.
            begin = None if self.starts_at is None else self.starts_at - timedelta(seconds=1)
            start = moment if begin is None else max(moment, begin)
            for tick in _cron(self.cron, start.astimezone(_zone(self.timezone))):
                yield tick.astimezone(UTC)
        elif self.every is not None:
            yield from _interval(self.every, self.starts_at, moment)


def _interval(every: timedelta, starts_at: datetime | None, moment: datetime) -> Iterator[datetime]:
    first = (starts_at or moment + every).astimezone(UTC)
    if first <= moment:
        first += ((moment - first) // every + 1) * every
    while True:
        yield first
        first += every


def _cron(rule: str, start: datetime) -> Iterator[datetime]:
    """Give the times of a cron rule after a moment. Not more than fifty years may lie between two."""
    try:
        times = CronSim(_fields(rule), start)
        for time in times:
            # In the second passing of a repeated hour the library names times of the first.
            if time.astimezone(UTC) > start.astimezone(UTC):
                yield time
    except CronSimError as error:
        raise InvalidInput(f"Not a cron rule: {rule!r}. {error}.") from None
    except OverflowError:
        return


def _fields(rule: str) -> str:
    if len(rule) > _LONGEST_CRON:
        raise InvalidInput("A cron rule has at most 200 characters.")
    fields = _NAMED.get(rule.strip().lower(), rule)
    if len(fields.split()) != _FIELDS:
        raise InvalidInput(
            f"Not a cron rule: {rule!r}. It has five fields: minute, hour, day, month, weekday."
        )
    return fields


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"There is no time zone {name!r}; Europe/Berlin, for example, is one."
        ) from None
