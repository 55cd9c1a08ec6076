"""Target of a request: a URL, parsed and checked before anything is sent."""

import re
from functools import lru_cache

import ada_url
from msgspec import Struct
from yarl import URL

from trapline.errors import ExitCode, VisitFailed

_MOST_SHOWN = 200
# Most canonical URLs need no parser: a name or a dotted quad in lower case, and a path without
# anything ambiguous. Names whose last label begins with a digit may be numbers.
_PLAIN = re.compile(
    r"https?://"
    r"(?:(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*|(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2}))"
    r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?/[!$-\[\]_a-z~%]*"
)
_SCHEMES = ("http://", "https://")


class Origin(Struct, frozen=True):
    """Scheme, host and port, parsed once for all pages of a host; `authority` is the Host header."""

    text: str
    host: str
    port: int
    secure: bool
    authority: str


class Target(Struct, frozen=True):
    """A URL that can be requested: `text` as the WHATWG serialises it, without a fragment."""

    text: str
    origin: Origin

    @property
    def url(self) -> URL:
        return URL(self.text, encoded=True)

    @property
    def path(self) -> str:
        """The path with its query, as a request names it."""
        return self.text[len(self.origin.text) :]

    @property
    def host(self) -> str:
        return self.origin.host

    @property
    def port(self) -> int:
        return self.origin.port

    @property
    def secure(self) -> bool:
        return self.origin.secure

    def same_origin(self, other: "Target") -> bool:
        one, two = self.origin, other.origin
        return (one.secure, one.host, one.port) == (two.secure, two.host, two.port)

    def may_share_secrets(self, other: "Target") -> bool:
        """Whether secrets for one target may be sent to the other.

        True for one origin, and for a host that only moved from http to https.
        """
        if self.host != other.host:
            return False
        ports = (self.port, other.port)
        return self.same_origin(other) or (other.secure and ports == (80, 443))

    def upgraded(self) -> "Target":
        """Return the same target with https; only the default port changes (RFC 6797)."""
        port = None if self.port in {80, 443} else self.port
        url = self.url.with_scheme("https").with_port(port)
        return _target(str(url))


def parse_target(text: str, limit: int) -> Target:
    """Parse a URL in any spelling."""
    if len(text) > limit:
        raise VisitFailed(ExitCode.URL_TOO_LONG, f"{len(text):,} characters")
    if _PLAIN.fullmatch(text):
        return _target(text)
    try:
        return _checked(ada_url.normalize_url(text), limit)
    except ValueError:
        raise VisitFailed(ExitCode.INVALID_URL, _shown(text)) from None


def resolve_location(base: Target, location: str, limit: int) -> Target:
    """Resolve the value of a Location header."""
    if len(location) > limit:
        raise VisitFailed(ExitCode.URL_TOO_LONG, f"a redirect to {len(location):,} characters")
    try:
        return _checked(ada_url.join_url(base.text, location), limit)
    except ValueError:
        detail = f"a redirect to {_shown(location)}"
        raise VisitFailed(ExitCode.INVALID_URL, detail) from None


def _checked(normal: str, limit: int) -> Target:
    normal = normal.partition("#")[0]
    if not normal.startswith(_SCHEMES):
        raise VisitFailed(ExitCode.UNSUPPORTED_SCHEME, _shown(normal))
    if len(normal) > limit:
        raise VisitFailed(ExitCode.URL_TOO_LONG, f"{len(normal):,} characters")
    authority = normal.split("/", 3)[2]
    if "@" in authority:
        # Otherwise the password would be in every log and archive.
        detail = "a user name or password in a URL is not used; send an Authorization header"
        raise VisitFailed(ExitCode.INVALID_URL, detail)
    return _target(normal)


def _target(normal: str) -> Target:
    # After the scheme there is a host of at least one character, and then a path.
    return Target(normal, _origin(normal[: normal.index("/", len("http://") + 1)]))


@lru_cache(maxsize=1024)
def _origin(text: str) -> Origin:
    url = URL(f"{text}/", encoded=True)
    return Origin(
        text,
        url.raw_host or "",
        url.port or 0,
        url.scheme == "https",
        url.host_port_subcomponent or "",
    )


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "...")
