"""Outcome of a response: its exit code, by status, headers and body."""

from collections.abc import Mapping
from http import HTTPStatus

from trapline.errors import OUTCOMES, ExitCode
from trapline.fetch.challenge import is_challenge

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})

_CODES: Mapping[int, ExitCode] = {
    206: ExitCode.TRUNCATED,
    300: ExitCode.CONTENT,
    401: ExitCode.ACCESS_DENIED,
    403: ExitCode.ACCESS_DENIED,
    404: ExitCode.NOT_FOUND,
    # The server asks for the same request again.
    408: ExitCode.SERVICE_UNAVAILABLE,
    410: ExitCode.GONE,
    425: ExitCode.SERVICE_UNAVAILABLE,
    429: ExitCode.RATE_LIMITED,
    451: ExitCode.ACCESS_DENIED,
    503: ExitCode.SERVICE_UNAVAILABLE,
    # LinkedIn's status for crawlers.
    999: ExitCode.ACCESS_DENIED,
}
_BY_CLASS: Mapping[int, ExitCode] = {
    2: ExitCode.CONTENT,
    4: ExitCode.CLIENT_ERROR,
    5: ExitCode.SERVER_ERROR,
}
_NOT_MODIFIED = 304


def outcome(status: int, headers: Mapping[str, str], body: bytes, *, conditional: bool) -> ExitCode:
    """The exit code of a complete response that is no redirect."""
    if status == _NOT_MODIFIED and conditional:
        return ExitCode.NOT_MODIFIED
    if is_challenge(status, headers, body):
        return ExitCode.CHALLENGE
    by_class = _BY_CLASS.get(status // 100, ExitCode.MALFORMED_RESPONSE)
    return _CODES.get(status, by_class)


def sentence(code: ExitCode, status: int | None = None) -> str:
    """The sentence for an exit code, with the status unless it names the status."""
    plain = OUTCOMES[code].sentence
    if status is None or code in _PLAIN or f"({status})" in plain:
        return plain
    return f"{plain} ({_phrase(status)})"


_PLAIN = frozenset({ExitCode.CONTENT, ExitCode.NOT_MODIFIED})


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"
