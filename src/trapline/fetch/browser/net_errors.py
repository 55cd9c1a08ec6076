"""Chromium's network errors as exit codes."""

from typing import Final

from trapline.errors import ExitCode, VisitFailed

_PREFIX: Final = "net::"
_CODES: Final = {
    "ERR_NAME_NOT_RESOLVED": ExitCode.DNS_FAILURE,
    "ERR_CONNECTION_REFUSED": ExitCode.CONNECTION_REFUSED,
    "ERR_ADDRESS_UNREACHABLE": ExitCode.CONNECTION_REFUSED,
    "ERR_CONNECTION_TIMED_OUT": ExitCode.CONNECT_TIMEOUT,
    "ERR_TIMED_OUT": ExitCode.CONNECT_TIMEOUT,
    "ERR_TOO_MANY_REDIRECTS": ExitCode.TOO_MANY_REDIRECTS,
    "ERR_INVALID_URL": ExitCode.INVALID_URL,
    "ERR_UNKNOWN_URL_SCHEME": ExitCode.UNSUPPORTED_SCHEME,
    "ERR_DISALLOWED_URL_SCHEME": ExitCode.UNSUPPORTED_SCHEME,
    "ERR_UNSAFE_PORT": ExitCode.UNSAFE_ADDRESS,
    "ERR_UNSAFE_REDIRECT": ExitCode.UNSUPPORTED_SCHEME,
    "ERR_INVALID_RESPONSE": ExitCode.MALFORMED_RESPONSE,
    "ERR_INVALID_HTTP_RESPONSE": ExitCode.MALFORMED_RESPONSE,
    "ERR_INVALID_REDIRECT": ExitCode.MALFORMED_RESPONSE,
    "ERR_INVALID_CHUNKED_ENCODING": ExitCode.MALFORMED_RESPONSE,
    "ERR_RESPONSE_HEADERS_TOO_BIG": ExitCode.HEADERS_TOO_LARGE,
    "ERR_CONTENT_LENGTH_MISMATCH": ExitCode.TRUNCATED,
    "ERR_INCOMPLETE_CHUNKED_ENCODING": ExitCode.TRUNCATED,
    "ERR_CONTENT_DECODING_FAILED": ExitCode.MALFORMED_RESPONSE,
}
_TLS: Final = ("ERR_CERT_", "ERR_SSL_", "ERR_TLS", "ERR_BAD_SSL")


def network_failure(text: str) -> VisitFailed:
    """Return what an error such as `net::ERR_CONNECTION_RESET` means for the visit."""
    name = text.removeprefix(_PREFIX)
    if name.startswith(_TLS):
        return VisitFailed(ExitCode.TLS_FAILURE, name)
    return VisitFailed(_CODES.get(name, ExitCode.CONNECTION_RESET), name)
