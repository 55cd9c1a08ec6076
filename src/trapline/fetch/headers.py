"""HTTP headers: those of requests, and the values of response headers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from itertools import chain

from multidict import MultiMapping

from trapline.errors import InvalidInput
from trapline.model import Conditional, FetchRequest

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_DEFAULT_LANGUAGE = "en;q=0.9, *;q=0.8"
_PRODUCT = "Mozilla/5.0 "
# As the mobile crawlers of search engines do: a phone's user agent, then their own.
_PHONE = (
    _PRODUCT + "(Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/130.0.0.0 Mobile Safari/537.36 "
)
_MOST_RETRY_SECONDS = 7 * 24 * 3600.0

# A caller cannot set these: they belong to the connection, or would contradict our own.
_RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "if-modified-since",
        "if-none-match",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_COOKIE = "Cookie"
_SECRETS = frozenset({"authorization", "cookie"})
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_IMF_LENGTH = len("Sun, 06 Nov 1994 08:49:37 GMT")


@lru_cache(maxsize=256)
def _default_headers(user_agent: str, mobile: bool, language: str | None) -> Mapping[str, str]:
    _check("User-Agent", user_agent)
    _check("Accept-Language", language or "")
    agent = _PHONE + user_agent.removeprefix(_PRODUCT) if mobile else user_agent
    return {
        "User-Agent": agent,
        "Accept": ACCEPT,
        "Accept-Language": language or _DEFAULT_LANGUAGE,
        "Accept-Encoding": ACCEPT_ENCODING,
    }


def request_headers(request: FetchRequest, user_agent: str) -> Mapping[str, str]:
    """Return the headers of every hop of a fetch, apart from conditions and cookies."""
    fixed = _default_headers(request.user_agent or user_agent, request.mobile, request.language)
    if not request.headers:
        return fixed
    merged = {name.lower(): (name, value) for name, value in fixed.items()}
    for name, value in request.headers.items():
        _check(name, value)
        if name.lower() not in _RESERVED:
            merged[name.lower()] = (_COOKIE if name.lower() == "cookie" else name, value)
    return dict(merged.values())


def without_secrets(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers that may go to another origin than the caller's."""
    return {name: value for name, value in headers.items() if name.lower() not in _SECRETS}


def with_cookies(headers: Mapping[str, str], cookies: str) -> Mapping[str, str]:
    """Add cookies to those that the caller has set."""
    own = headers.get(_COOKIE)
    return {**headers, _COOKIE: f"{own}; {cookies}" if own else cookies}


def conditional_headers(conditional: Conditional) -> Mapping[str, str]:
    found = {}
    if conditional.etag:
        found["If-None-Match"] = conditional.etag
    if conditional.last_modified is not None:
        utc = conditional.last_modified.astimezone(UTC)
        found["If-Modified-Since"] = format_datetime(utc, usegmt=True)
    return found


def decoded_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return all headers, repeated ones too and in order, so that they can be stored.

    Values are read as UTF-8 if they are that, else as Latin-1.
    """
    # A multidict iterates over unique names; only its items repeat a repeated header.
    # aiohttp's names are of a subclass of str, which must not leave this package.
    return tuple((str(name), _storable(value)) for name, value in headers.items())


def size(raw: Sequence[tuple[bytes, bytes]]) -> int:
    """Return the bytes that headers take on the wire."""
    return sum(map(len, chain.from_iterable(raw))) + 4 * len(raw)


def decoded_value(headers: Mapping[str, str], name: str) -> str | None:
    """Return a header's value, decoded as in `decoded_headers`; the first one if it is repeated."""
    value = headers.get(name)
    return value if value is None else _storable(value)


def combined(headers: MultiMapping[str], name: str) -> str | None:
    """Return a list-valued header in one line: RFC 9110 joins repeated ones with commas."""
    values = headers.getall(name, ())
    return ", ".join(values) if values else None


def http_date(text: str | None) -> datetime | None:
    """Parse any of the three date formats of HTTP; None if it is none of them."""
    if not text:
        return None
    try:
        if len(text) == _IMF_LENGTH and text.endswith("GMT"):
            return _imf_date(text)
        parsed = parsedate_to_datetime(text)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, from 0 to a week."""
    if not text:
        return None
    text = text.strip()
    if text.isdecimal() and text.isascii():
        # The digits of an absurd number are cut.
        return min(float(text[:12]), _MOST_RETRY_SECONDS)
    date = http_date(text)
    if date is None:
        return None
    return min(max((date - now).total_seconds(), 0.0), _MOST_RETRY_SECONDS)


@lru_cache(maxsize=256)
def _imf_date(text: str) -> datetime:
    # Twenty times faster than the standard library's parser, for the format of nearly all servers.
    return datetime(
        int(text[12:16]),
        _MONTHS[text[8:11]],
        int(text[5:7]),
        int(text[17:19]),
        int(text[20:22]),
        int(text[23:25]),
        tzinfo=UTC,
    )


def _check(name: str, value: str) -> None:
    token = name.replace("-", "").replace("_", "")
    if not (token.isalnum() and token.isascii()):
        raise InvalidInput(f"{name!r} is not the name of a header.")
    if not value.replace("\t", "").isprintable():
        raise InvalidInput(f"The value of the header {name} has control characters.")


def _storable(value: str) -> str:
    """Replace the surrogates that aiohttp decodes other bytes than UTF-8 to: they cannot be stored."""
    if value.isascii():
        return value
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
