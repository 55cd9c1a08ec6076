"""Exception mapping: faults below HTTP to exit codes and messages."""

import errno
import socket
import ssl
from typing import TypeVar

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.guard import UnsafeAddress

EXPECTED = (aiohttp.ClientError, OSError, HttpProcessingError)
"""The exceptions that aiohttp raises for faults of the network and of servers."""

# OpenSSL's numbers for why a certificate was not accepted.
_CERTIFICATES = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is signed by itself",
    19: "the chain of certificates ends in one that is signed by itself",
    20: "the certificate's issuer is not known, or an intermediate certificate is missing",
    21: "the certificate's issuer is not known, or an intermediate certificate is missing",
    23: "the certificate has been revoked",
    62: "the certificate is for another host name",
    64: "the certificate is for another address",
}
_HANDSHAKES = {
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port",
    "HTTP_REQUEST": "the server does not speak TLS on this port",
    "UNSUPPORTED_PROTOCOL": "the server offers only outdated versions of TLS",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server does not accept our versions of TLS",
    "DH_KEY_TOO_SMALL": "the server's key is too weak",
    "EE_KEY_TOO_SMALL": "the certificate's key is too weak",
    "CA_MD_TOO_WEAK": "the certificate's signature is too weak",
    "TLSV1_UNRECOGNIZED_NAME": "the server has no certificate for this host name",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server and we share no way to encrypt",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server wants a certificate from its visitors",
    "UNEXPECTED_EOF_WHILE_READING": "the server ended the handshake",
}
_UNREACHABLE = frozenset(
    {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EHOSTDOWN, errno.ENETDOWN}
)
E = TypeVar("E", bound=BaseException)

_LONGEST_MESSAGE = 200
_TOO_MANY_HEADERS = "Too many headers"


def visit_failure(error: BaseException) -> VisitFailed:
    """The failure of a visit that an exception of the client means."""
    unsafe = _cause(error, UnsafeAddress)
    if unsafe is not None:
        return VisitFailed(ExitCode.UNSAFE_ADDRESS, str(unsafe))
    if isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
        return VisitFailed(ExitCode.PROXY_FAILURE, _proxy_message(error))
    tls = _cause(error, ssl.SSLError)
    if tls is not None:
        return VisitFailed(ExitCode.TLS_FAILURE, _tls_message(tls))
    if isinstance(error, aiohttp.ClientPayloadError):
        return VisitFailed(ExitCode.TRUNCATED)
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        return _malformed(error)
    return _connection(error)


def _connection(error: BaseException) -> VisitFailed:
    name = _cause(error, socket.gaierror)
    if name is not None:
        return VisitFailed(ExitCode.DNS_FAILURE, _dns_message(name))
    if isinstance(error, aiohttp.InvalidURL):
        return VisitFailed(ExitCode.INVALID_URL, str(error))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return VisitFailed(ExitCode.CONNECTION_RESET)
    return _by_number(getattr(error, "errno", None))


def _by_number(number: int | None) -> VisitFailed:
    if number == errno.ECONNREFUSED:
        return VisitFailed(ExitCode.CONNECTION_REFUSED)
    if number in _UNREACHABLE:
        return VisitFailed(ExitCode.CONNECTION_REFUSED, "no route to the server")
    if number == errno.ETIMEDOUT:
        return VisitFailed(ExitCode.CONNECT_TIMEOUT)
    return VisitFailed(ExitCode.CONNECTION_RESET)


def _malformed(error: BaseException) -> VisitFailed:
    words = str(getattr(error, "message", error)).replace("^", "").split()
    message = " ".join(words)[:_LONGEST_MESSAGE]
    if _cause(error, LineTooLong) is not None or _TOO_MANY_HEADERS in message:
        return VisitFailed(ExitCode.HEADERS_TOO_LARGE)
    return VisitFailed(ExitCode.MALFORMED_RESPONSE, message or None)


def _tls_message(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CERTIFICATES.get(error.verify_code, error.verify_message)
    reason = error.reason or ""
    return _HANDSHAKES.get(reason, reason.replace("_", " ").lower() or "the handshake failed")


def _dns_message(error: socket.gaierror) -> str:
    if error.errno == socket.EAI_AGAIN:
        return "the name servers do not answer"
    return (error.strerror or "unknown name").lower()


def _proxy_message(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"it answers {error.status}"
    return "it does not accept connections"


def _cause(error: BaseException, kind: type[E]) -> E | None:
    """Find an error of a kind below aiohttp's own, which inherit from several kinds."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind) and not isinstance(seen, aiohttp.ClientError):
            return seen
        seen = getattr(seen, "os_error", None) or seen.__cause__
    return None
