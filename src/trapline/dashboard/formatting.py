"""Numbers, sizes, durations and times as people read them, and strangers' text made harmless.

Templates escape everything; these filters bound what is shown and remove characters that deceive.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from markupsafe import Markup

from trapline.errors import OUTCOMES, ExitCode

NOTHING: Final = "\u2013"
_KIB: Final = 1024
_HUNDRED: Final = 100
_THOUSAND: Final = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SOON_SECONDS: Final = 10
# Controls, and characters that reorder or hide text.
_DECEIVING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_SAFE_SCHEMES: Final = ("http://", "https://")
_LONGEST_JSON: Final = 100_000


def number(value: float | None) -> str:
    """Return a number with separators, exact."""
    return NOTHING if value is None else f"{value:,}"


def _digits(value: float) -> str:
    """Return three digits, never an exponent."""
    return f"{value:.0f}" if abs(value) >= _HUNDRED else f"{value:.3g}"


def compact(value: float | None) -> str:
    """Return a number of at most three digits and a unit."""
    if value is None:
        return NOTHING
    size = float(value)
    for unit in ("", "k", "M", "G"):
        if abs(size) < _THOUSAND:
            return f"{_digits(size)}{unit}"
        size /= _THOUSAND
    return f"{_digits(size)}T"


def size(value: float | None) -> str:
    """Return bytes in binary units."""
    if value is None:
        return NOTHING
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < _KIB:
            return f"{_digits(amount)} {unit}"
        amount /= _KIB
    return f"{_digits(amount)} TiB"


def duration(value: timedelta | float | None) -> str:
    """Return a duration in its two largest units."""
    if value is None:
        return NOTHING
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"
    if seconds < _DAY:
        return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"
    return f"{int(seconds // _DAY)} d {int(seconds % _DAY // _HOUR)} h"


def when(value: datetime | None) -> Markup:
    """Return a time element: in UTC here, in the reader's own time zone once the script has run."""
    if value is None:
        return Markup("&ndash;")
    at = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="milliseconds"), at.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def ago(value: datetime | None) -> Markup:
    """Return a time element that says how long ago it is."""
    if value is None:
        return Markup("&ndash;")
    at = value.astimezone(UTC)
    return Markup('<time data-ago datetime="{}">{}</time>').format(
        at.isoformat(timespec="milliseconds"), _distance((datetime.now(UTC) - at).total_seconds())
    )


def _distance(seconds: float) -> str:
    if abs(seconds) < _SOON_SECONDS:
        return "now"
    words = duration(round(abs(seconds)))
    words = words if abs(seconds) < _MINUTE else words.rpartition(" ")[0].rpartition(" ")[0]
    return f"{words} ago" if seconds > 0 else f"in {words}"


def plain(value: object, longest: int = 200) -> str:
    """Return text of strangers in one line: bounded, without controls and reordering characters."""
    text = "" if value is None else str(value)[: longest + 1]
    text = _DECEIVING.sub("", text.replace("\n", " ").replace("\t", " "))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def block(value: str, longest: int = 200_000) -> str:
    """Return long text of strangers, bounded, without controls and reordering characters."""
    text = _DECEIVING.sub("", value[:longest])
    return (
        text if len(value) <= longest else f"{text}\n\n… {len(value) - longest:,} more characters"
    )


def short(value: object) -> str:
    """Return the first digits of an id."""
    return str(value)[:8]


def link(value: str | None) -> str | None:
    """Return a URL that may be followed; None for javascript:, data: and the like."""
    return value if value is not None and value.lower().startswith(_SAFE_SCHEMES) else None


def pretty(value: Any) -> str:
    """Return JSON with indentation; integers stay exact."""
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2, default=str)
    return block(text, _LONGEST_JSON)


def outcome(code: int | None) -> str:
    """Return the name of an exit code."""
    if code is None:
        return "completed"
    try:
        return ExitCode(code).name.lower().replace("_", " ")
    except ValueError:
        return str(code)


def sentence(code: int | None) -> str:
    """Return what an exit code means, as the table of outcomes says it."""
    try:
        return OUTCOMES[ExitCode(-1 if code is None else code)].sentence
    except ValueError:
        return ""
