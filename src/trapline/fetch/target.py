"""Where a request goes: URLs checked and joined before anything is sent."""

import re
from dataclasses import dataclass

import ada_url
from yarl import URL

from trapline.errors import ExitCode, VisitFailed

_MOST_SHOWN = 200
# Most canonical URLs are seen to be so at a glance: a name or a dotted quad in lower case, and
# nothing after it that could be meant otherwise. Names whose last label begins with a digit may
# be numbers in disguise.
_PLAIN = re.compile(
    r"https?://"
    r"(?:(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*|(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2}))"
    r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?/[!$-\[\]_a-z~%]*"
)
_SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that can be requested: `text` as the WHATWG serialises it, without a fragment."""

    text: str
    url: URL

    @property
    def host(self) -> str:
        return self.url.raw_host or ""

    @property
    def port(self) -> int:
        return self.url.port or 0

    @property
    def secure(self) -> bool:
        return self.url.scheme == "https"

    def same_origin(self, other: "Target") -> bool:
        return (
            self.url.scheme == other.url.scheme
            and self.host == other.host
            and self.port == other.port
        )

    def may_share_secrets(self, other: "Target") -> bool:
        """Tell whether what was meant for one may be sent to the other.

        That is so for one origin, and for a host that only moved from http to https.
        """
        if self.host != other.host:
            return False
        ports = (self.port, other.port)
        return self.same_origin(other) or (other.secure and ports == (80, 443))

    def upgraded(self) -> "Target":
        """Return the same by https; only the default port changes, as RFC 6797 has it."""
        port = None if self.port in {80, 443} else self.port
        url = self.url.with_scheme("https").with_port(port)
        return Target(str(url), url)


def target(text: str, limit: int) -> Target:
    """Parse a URL in any spelling."""
    if len(text) > limit:
        raise VisitFailed(ExitCode.URL_TOO_LONG, f"{len(text):,} characters")
    if _PLAIN.fullmatch(text):
        return Target(text, URL(text, encoded=True))
    try:
        return _checked(ada_url.normalize_url(text), limit)
    except ValueError:
        raise VisitFailed(ExitCode.INVALID_URL, _shown(text)) from None


def joined(base: Target, location: str, limit: int) -> Target:
    """Resolve what a Location header says."""
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
        # Sent on, it would be a password in every log and archive.
        detail = "a user name or password in a URL is not used; send an Authorization header"
        raise VisitFailed(ExitCode.INVALID_URL, detail)
    return Target(normal, URL(normal, encoded=True))


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "...")
