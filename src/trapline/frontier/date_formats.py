"""Date formats of sitemaps, feeds and headers."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LONGEST = 64
_ISO = re.compile(
    r"\s*+(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2}))?)?"
    r"(?P<time>[T ]\s*+[0-9].*)?\s*+"
)


def parse_date(text: str) -> datetime | None:
    """W3C date-time or RFC 822; without a zone it is UTC. None if it is neither."""
    text = text[:_LONGEST].strip()
    try:
        parsed = _iso(text) or parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _iso(text: str) -> datetime | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day = datetime(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1), tzinfo=UTC)
    if not found["time"]:
        return day
    try:
        return datetime.fromisoformat(f"{day:%Y-%m-%d}T{found['time'][1:].strip()}")
    except ValueError:
        # A broken time of day still leaves the day.
        return day
