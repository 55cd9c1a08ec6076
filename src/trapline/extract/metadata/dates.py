"""Dates as pages write them, brought to ISO 8601."""

import re
from datetime import UTC, date, datetime

_ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?\s*(Z|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T?\d{4,6}Z?)?")
_YEAR_FIRST = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})\b")
_DAY_FIRST = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})")
_MONTH_WORD = re.compile(r"([^\W\d_]{3,12})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})")
_DAY_WORD = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:de\s+)?([^\W\d_]{3,12})\.?,?\s+(?:de\s+)?(\d{4})"
)
_YEAR_WORD = re.compile(r"(\d{4}),?\s+([^\W\d_]{3,12})\.?\s+(\d{1,2})\b")
_IN_URL = re.compile(r"/(20\d{2}|19\d{2})[/-](\d{1,2})(?:[/-](\d{1,2}))?(?=[/-]|$)")
_MAX_LENGTH = 80
_EARLIEST_YEAR, _LATEST_YEAR = 1900, 2200
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero gennaio janeiro januari ene janv",
            "feb february februar février fevrier febrero febbraio fevereiro februari févr",
            "mar march märz maerz mars marzo março maart mrz",
            "apr april avril abril aprile avr abr",
            "may mai mayo maggio maio mei maj",
            "jun june juni juin junio giugno junho",
            "jul july juli juillet julio luglio julho juil",
            "aug august août aout agosto augustus ago",
            "sep sept september septembre septiembre settembre setembro",
            "oct october oktober octobre octubre ottobre outubro okt",
            "nov november novembre noviembre novembro",
            "dec december dezember décembre decembre diciembre dicembre dezembro dez dic",
        ),
        1,
    )
    for name in names.split()
}
# Every date that is understood here has a year, or seconds that have more digits.
YEAR = re.compile(r"\d{4}")


def iso_date(text: str) -> str | None:
    """A date as `2024-05-17` or, if it has a time, `2024-05-17T08:30:00+02:00`; None if none."""
    text = text.strip()[:_MAX_LENGTH]
    if not YEAR.search(text):
        return None
    if match := _ISO.search(text):
        return _from_iso(match)
    if text.isdecimal() and len(text) in (10, 13):
        return _from_seconds(int(text[:10]))
    for read in (_from_compact, _from_numbers, _from_words):
        if found := read(text):
            return found
    return None


def date_in_url(url: str) -> str | None:
    """The day that a URL such as `/2024/05/17/title` names."""
    if "/20" not in url and "/19" not in url:
        return None
    match = _IN_URL.search(url)
    if match is None or not match.group(3):
        return None
    return _day(match.group(1), match.group(2), match.group(3))


def _day(year: str, month: str | int, day: str) -> str | None:
    try:
        found = date(int(year), int(month), int(day))
    except ValueError:
        return None
    return found.isoformat() if _EARLIEST_YEAR <= found.year <= _LATEST_YEAR else None


def _from_iso(match: re.Match[str]) -> str | None:
    year, month, day, hour, minute, second, zone = match.groups()
    found = _day(year, month, day)
    if found is None or hour is None or int(hour) > 23 or int(minute) > 59:  # noqa: PLR2004 - clock
        return found
    zone = (zone or "").upper()
    zone = f"{zone[:3]}:{zone[-2:]}" if len(zone) > 1 else zone
    return f"{found}T{int(hour):02}:{minute}:{second or '00'}{zone}"


def _from_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _from_compact(text: str) -> str | None:
    match = _COMPACT.fullmatch(text)
    return _day(*match.groups()) if match else None


def _from_numbers(text: str) -> str | None:
    if match := _YEAR_FIRST.search(text):
        return _day(*match.groups())
    match = _DAY_FIRST.search(text)
    if match is None:
        return None
    first, mark, second, year = match.groups()
    # With slashes the American order is the commoner one, unless the numbers rule it out.
    month_first = mark == "/" and int(first) <= 12  # noqa: PLR2004 - months
    return _day(year, first, second) if month_first else _day(year, second, first)


def _from_words(text: str) -> str | None:
    if match := _MONTH_WORD.search(text):
        word, day, year = match.groups()
        if month := _MONTHS.get(word.lower()):
            return _day(year, month, day)
    if match := _DAY_WORD.search(text):
        day, word, year = match.groups()
        if month := _MONTHS.get(word.lower()):
            return _day(year, month, day)
    if match := _YEAR_WORD.search(text):
        year, word, day = match.groups()
        if month := _MONTHS.get(word.lower()):
            return _day(year, month, day)
    return None
