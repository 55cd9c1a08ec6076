"""Spider traps: endless series of URLs, detected by their shape and by their number.

The shape of one URL needs no memory. Calendars and parameters are counted, in memory that is bounded
for each job. A URL that was let through once is let through again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from trapline.frontier.canonical_url import split_url

MAX_SEGMENTS = 30
MAX_PATH_LENGTH = 1500
MAX_PARAMETERS = 16
MAX_SAME_PARAMETER = 5
MAX_PARAMETER_SETS = 30
MAX_COMBINATIONS = 300
MAX_FACET_VALUES = 40
MAX_DATES = 200
YEARS_AHEAD = 2
_WATCHED_PATHS = 128
_WATCHED_NAMES = 32


class TrapKind(Enum):
    """The value is the sentence for people."""

    GROWING_PATH = "The path has grown beyond all that people write."
    REPEATING_PATH = "The path repeats itself, as wrong relative links make it do."
    SESSION_ID = "The URL carries a session's id, and every visit would give another."
    CALENDAR = "A calendar leads to ever more dates."
    PARAMETERS = "The same page is offered with ever more combinations of parameters."

    @property
    def sentence(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Trap:
    """Why a URL is not visited; `instead` is the same page without what makes it endless."""

    kind: TrapKind
    reason: str
    instead: str | None = None


# Names that are always a session's; and short ones that are, if the value looks like an id.
_SESSION_NAMES = (
    "phpsessid|jsessionid|aspsessionid[a-z]*|sessionid|session_id|sessid|oscsid|zenid|cfid|cftoken"
)
_SESSION_PARAMETER = re.compile(
    rf"(?:{_SESSION_NAMES})=[^&;/]*"
    r"|(?:sid|s|sess|session)=(?=[a-z0-9_-]*[0-9])(?=[0-9_-]*[a-z])[a-z0-9_-]{16,}(?=&|\Z)",
    re.IGNORECASE,
)
_SESSION_SEGMENT = re.compile(
    r";(?:jsessionid|sid|phpsessid)=[^/?;]*|/\([SAFX]\([^/)]{8,}\)\)", re.IGNORECASE
)

_DAY = r"(?:0?[1-9]|[12][0-9]|3[01])"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_DATE = re.compile(
    rf"(?<![0-9])((?:19|20|21)[0-9]{{2}})(?:[/_-]?{_MONTH}(?:[/_-]?{_DAY})?)?(?![0-9])"
)
_DATE_AT_END = re.compile(rf"{_DATE.pattern}/?\Z")
_CALENDAR = re.compile(
    r"calend|kalender|agenda|event|termine|schedule|booking|availab|ical|month|week|tribe-bar",
    re.IGNORECASE,
)
_DATE_PARAMETER = re.compile(
    r"(?:\A|&)(?:year|month|day|date|week|y|m|d|start|from|cal[a-z_]*)=", re.IGNORECASE
)


def shape_trap(url: str) -> Trap | None:
    """The trap that the shape of one canonical URL shows."""
    place, _, search = url.partition("?")
    path = split_url(place).path
    segments = path.count("/")
    if len(path) > MAX_PATH_LENGTH or segments > MAX_SEGMENTS:
        return Trap(TrapKind.GROWING_PATH, f"{segments} segments, {len(path)} characters")
    if segments > _LEAST_REPEATS and (repeated := _repeated(path)):
        return Trap(TrapKind.REPEATING_PATH, repeated[:100])
    if ";" in path or "(" in path or "=" in search:
        return _session(url, path, search)
    return None


@dataclass(slots=True)
class _PathHistory:
    """The URLs seen at one path, as hashes."""

    names: set[int] = field(default_factory=set)
    combinations: set[int] = field(default_factory=set)
    dates: set[int] = field(default_factory=set)
    values: dict[str, set[int]] = field(default_factory=dict)
    has_id: bool = False

    def note_values(self, parameters: list[str]) -> None:
        """Note the values of each parameter: one that has many names a page, and is no facet."""
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            values = self.values.get(name)
            if values is None:
                if len(self.values) >= _WATCHED_NAMES:
                    continue
                values = self.values[name] = set()
            values.add(hash(value))
            if len(values) > MAX_FACET_VALUES:
                self.has_id = True
                self.values.clear()
                self.combinations.clear()
                return


class TrapDetector:
    """The memory of one job. Ask it for every URL that would be queued."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, _PathHistory] = OrderedDict()

    def detect(self, url: str, now: datetime) -> Trap | None:
        """The trap that a canonical URL belongs to; None lets it through."""
        trap = shape_trap(url) or self._calendar(url, now)
        if trap is None and "&" in url:
            trap = self._parameters(url)
        return trap

    def _calendar(self, url: str, now: datetime) -> Trap | None:
        # Most URLs have no year in them; this is the cheapest test.
        if "20" not in url and "19" not in url and "21" not in url:
            return None
        path, _, search = url.partition("?")
        date = _date(path, search)
        if date is None:
            return None
        if int(date[1]) > now.year + YEARS_AHEAD:
            return Trap(TrapKind.CALENDAR, f"the year {date[1]}")
        place = _DATE.sub("#", url)
        if _is_new(self._at(place).dates, url, MAX_DATES):
            return Trap(TrapKind.CALENDAR, f"more than {MAX_DATES} dates at {place[:100]}")
        return None

    def _parameters(self, url: str) -> Trap | None:
        place, _, search = url.partition("?")
        if not search:
            return None
        parameters = search.split("&")
        names = sorted(parameter.partition("=")[0] for parameter in parameters)
        if trap := _overloaded(names):
            return trap
        seen = self._at(place)
        if _is_new(seen.names, ",".join(sorted(set(names))), MAX_PARAMETER_SETS):
            return Trap(TrapKind.PARAMETERS, f"more than {MAX_PARAMETER_SETS} sets of parameters")
        if seen.has_id:
            return None
        if _is_new(seen.combinations, search, MAX_COMBINATIONS):
            return Trap(TrapKind.PARAMETERS, f"more than {MAX_COMBINATIONS} combinations")
        seen.note_values(parameters)
        return None

    def _at(self, place: str) -> _PathHistory:
        seen = self._seen.get(place)
        if seen is None:
            seen = self._seen[place] = _PathHistory()
            if len(self._seen) > _WATCHED_PATHS:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end(place)
        return seen


_LEAST_REPEATS = 3
_MOST_OCCURRENCES = 5
_LONGEST_CYCLE = 6


def _repeated(path: str) -> str | None:
    """The part of a path that comes again and again; numbers may do so."""
    segments = [segment for segment in path.split("/") if segment]
    for segment in set(segments):
        if segments.count(segment) >= _MOST_OCCURRENCES and not segment.isdigit():
            return segment
    for length in range(1, min(_LONGEST_CYCLE, len(segments) // _LEAST_REPEATS) + 1):
        if cycle := _cycle(segments, length):
            return "/".join(cycle)
    return None


def _cycle(segments: list[str], length: int) -> list[str] | None:
    """A run of segments that stands three times in a row, or a single one four times."""
    needed = length * (_LEAST_REPEATS + (length == 1))
    for start in range(len(segments) - needed + 1):
        cycle = segments[start : start + length]
        if cycle * (needed // length) == segments[start : start + needed] and not _digits(cycle):
            return cycle
    return None


def _digits(segments: Iterable[str]) -> bool:
    return all(segment.isdigit() for segment in segments)


def _session(url: str, path: str, search: str) -> Trap | None:
    kept_path = _SESSION_SEGMENT.sub("", path)
    parameters = search.split("&") if search else []
    kept = [parameter for parameter in parameters if not _SESSION_PARAMETER.fullmatch(parameter)]
    if len(kept) == len(parameters) and kept_path == path:
        return None
    scheme, host, _ = split_url(url)
    query = f"?{'&'.join(kept)}" if kept else ""
    instead = f"{scheme}://{host}{kept_path or '/'}{query}"
    return Trap(TrapKind.SESSION_ID, "its page has a URL without it", instead)


def _date(path: str, search: str) -> re.Match[str] | None:
    """The date that a page of a calendar is for; a date before a title is an article's."""
    if search and (found := _DATE.search(search)):
        return found if _DATE_PARAMETER.search(search) or _CALENDAR.search(path) else None
    found = _DATE_AT_END.search(path)
    return found if found and _CALENDAR.search(path) else None


def _overloaded(names: list[str]) -> Trap | None:
    if len(names) > MAX_PARAMETERS:
        return Trap(TrapKind.PARAMETERS, f"{len(names)} parameters in one URL")
    most = max(set(names), key=names.count)
    if names.count(most) > MAX_SAME_PARAMETER:
        return Trap(TrapKind.PARAMETERS, f"{most[:40]} {names.count(most)} times in one URL")
    return None


def _is_new(seen: set[int], text: str, limit: int) -> bool:
    """Whether this one is new where no more are taken; takes it otherwise."""
    mark = hash(text)
    if mark in seen:
        return False
    if len(seen) >= limit:
        return True
    seen.add(mark)
    return False
