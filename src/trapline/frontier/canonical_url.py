"""Canonical form of a URL, its parts and its hashes. docs/urls.md has every rule.

This runs for every link of every page, so two regular expressions recognise links that are canonical
already and need no parser; a property test compares them with the parser.
"""

import hashlib
import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

import ada_url

from trapline.errors import ExitCode, VisitFailed
from trapline.frontier import percent_encoding
from trapline.frontier.tracking_parameters import is_tracking

MAX_URL_LENGTH = 8192
MAX_HOST_LENGTH = 253
MAX_LABEL_LENGTH = 63


class Query(Enum):
    """How the query of a URL is treated."""

    KEEP = auto()
    SORT = auto()
    """Ordered by name: `?b=1&a=2` and `?a=2&b=1` are one page."""
    DROP = auto()
    """The query does not tell pages apart: `ignoreQueryParameters`."""


class UrlParts(NamedTuple):
    """The parts of a canonical URL; `host` has the port unless it is the scheme's default."""

    scheme: str
    host: str
    path: str


# Other links go to the parser: segments that begin with a dot, escapes, queries, ports, punycode.
# Quantifiers are possessive, so a hostile link cannot make them backtrack.
_SEGMENT = r"(?!\.)[A-Za-z0-9_.~!$&'()*+,;=@-]*+"
_LABEL = r"(?!xn--)[a-z0-9-]{1,63}+"
_PLAIN_ABSOLUTE = re.compile(
    rf"(https?://(?:{_LABEL}\.)*+(?!xn--)[a-z][a-z0-9-]{{0,62}}+(?:/{_SEGMENT})++)(?:#[^\0\r\n]*+)?+"
)
_PLAIN_PATH = re.compile(rf"((?:/{_SEGMENT})++)(?:#[^\0\r\n]*+)?+")
_PLAIN_RELATIVE = re.compile(
    rf"((?:\.\./)*+)((?:(?<!/)/(?!/)|(?=[A-Za-z0-9_~]))(?:{_SEGMENT}/)*+{_SEGMENT})"
    r"(?:#[^\0\r\n]*+)?+"
)
_LONGEST_PLAIN = 250
_SCHEME_LENGTH = len("http://")


def canonical(url: str, base: str | None = None, query: Query = Query.KEEP) -> str:
    """The one spelling of a URL, resolved against its base; VisitFailed if it cannot be visited."""
    if len(url) <= _LONGEST_PLAIN:
        plain = _PLAIN_ABSOLUTE.fullmatch(url)
        if plain:
            return plain[1]
        if base and url.startswith(base[:_SCHEME_LENGTH]) and (found := _on_site(url, base)):
            return found
        if base and (plain := _PLAIN_RELATIVE.fullmatch(url)):
            return _below(base, len(plain[1]) // 3, plain[2])
    return _written(_resolved(url, base), query)


def typed_url(text: str) -> str:
    """The canonical URL of text that a person typed: without a scheme it is `http`.

    It refuses more than `canonical` does: a typing error would otherwise become a host name.
    """
    text = text.strip()
    if _HOST_AND_PORT.match(text) or not _SCHEME.match(text):
        if _MISTYPED.match(text):
            raise VisitFailed(ExitCode.INVALID_URL, "its beginning is neither a scheme nor a host")
        text = f"http://{text.removeprefix('//')}"
    url = canonical(text)
    host = host_name(split_url(url).host)
    if not _HOST.fullmatch(host) and not host.startswith("["):
        raise VisitFailed(ExitCode.INVALID_URL, "its host has characters that no host has")
    return url


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:")
_HOST_AND_PORT = re.compile(r"[^/:?#@]++:[0-9]++(?:[/?#]|$)")
# A scheme with a wrong letter in it, `http//…` and `http;//…`, or a path.
_MISTYPED = re.compile(r"[^/?#:]*+://|https?[^A-Za-z0-9.:@-]?//|\\|/(?!/)", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9._-]++")


def split_url(url: str) -> UrlParts:
    """The parts of a canonical URL; `join_url` is the way back."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return UrlParts(scheme, host, f"/{path}")


def join_url(parts: UrlParts) -> str:
    return f"{parts.scheme}://{parts.host}{parts.path}"


def origin_of(url: str) -> str:
    """Scheme and host of a canonical URL."""
    # The path begins at the first slash behind the host, which has at least one character.
    end = url.find("/", _SCHEME_LENGTH + 1)
    return url if end < 0 else url[:end]


def host_name(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host[: host.index("]") + 1]
    return host.partition(":")[0]


def url_hash(url: str) -> bytes:
    return hashlib.sha256(url.encode()).digest()


def similar_key(url: str) -> str:
    """Equal for canonical URLs that almost surely show one page: `deduplicateSimilarURLs`."""
    place, mark, search = url.partition("://")[2].partition("?")
    directory, _, name = place.rpartition("/")
    if name[:1] in _INDEX_LETTERS and (not name or _INDEX_FILE.fullmatch(name)):
        place = directory
    return f"{place.removeprefix('www.')}{mark}{search}"


_INDEX_FILE = re.compile(
    r"(?:index|default)\.(?:html?|xhtml|shtml|php[0-9]?|aspx?|jspx?|cgi|cfm|pl)", re.IGNORECASE
)
_INDEX_LETTERS = ("", "i", "I", "d", "D")


def _on_site(url: str, base: str) -> str | None:
    """A URL with its page's origin, whatever that is, and a plain path."""
    origin, _ = _base_parts(base)
    if not url.startswith(origin):
        return None
    plain = _PLAIN_PATH.fullmatch(url, len(origin))
    return origin + plain[1] if plain else None


def _below(base: str, climbs: int, link: str) -> str:
    origin, directory = _base_parts(base)
    if link[0] == "/":
        return _bounded(origin + link)
    for _ in range(climbs):
        directory = directory[: directory.rfind("/", 0, -1) + 1] or "/"
    return _bounded(f"{origin}{directory}{link}")


@lru_cache(maxsize=1024)
def _base_parts(base: str) -> tuple[str, str]:
    """The origin and the directory of a page, which its relative links resolve against."""
    scheme, host, path = split_url(_canonical_base(base))
    path = path.partition("?")[0]
    return f"{scheme}://{host}", path[: path.rfind("/") + 1]


@lru_cache(maxsize=1024)
def _canonical_base(base: str) -> str:
    return _written(_resolved(base, None), Query.KEEP)


def _resolved(url: str, base: str | None) -> str:
    if len(url) > MAX_URL_LENGTH:
        raise VisitFailed(
            ExitCode.URL_TOO_LONG, f"{len(url)} of at most {MAX_URL_LENGTH} characters"
        )
    if "\0" in url:
        raise VisitFailed(ExitCode.INVALID_URL, "it has a NUL byte")
    try:
        if base is None:
            return ada_url.normalize_url(url)
        return ada_url.join_url(_canonical_base(base), url)
    except ValueError:
        raise VisitFailed(ExitCode.INVALID_URL) from None


def _written(href: str, query: Query) -> str:
    """The canonical spelling of the parser's serialisation."""
    scheme, _, rest = href.partition("://")
    if scheme not in {"http", "https"}:
        raise VisitFailed(ExitCode.UNSUPPORTED_SCHEME, href.partition(":")[0][:40])
    host, _, path = rest.partition("#")[0].partition("/")
    path, _, search = path.partition("?")
    if search:
        search = _search(search, query)
    mark = "?" if search else ""
    return _bounded(f"{scheme}://{_host(host)}/{percent_encoding.normal(path)}{mark}{search}")


def _bounded(url: str) -> str:
    if len(url) > MAX_URL_LENGTH:
        raise VisitFailed(
            ExitCode.URL_TOO_LONG, f"{len(url)} of at most {MAX_URL_LENGTH} characters"
        )
    return url


def _host(host: str) -> str:
    """The host without a final dot, if it is one that DNS can carry."""
    if "@" in host:
        raise VisitFailed(ExitCode.INVALID_URL, "a user name or password in it is not accepted")
    if host.startswith("["):
        return host
    name, colon, port = host.partition(":")
    if ".." in name or name.startswith("."):
        raise VisitFailed(ExitCode.INVALID_URL, "its host has an empty part")
    name = name.removesuffix(".")
    if len(name) > MAX_LABEL_LENGTH:
        _check_lengths(name)
    return f"{name}{colon}{port}"


def _check_lengths(name: str) -> None:
    if len(name) > MAX_HOST_LENGTH or max(map(len, name.split("."))) > MAX_LABEL_LENGTH:
        raise VisitFailed(ExitCode.INVALID_URL, "its host name is too long")


def _search(search: str, query: Query) -> str:
    if query is Query.DROP:
        return ""
    # Each parameter is normalised by itself, so that dropping one cannot change another.
    written = [percent_encoding.normal(parameter) for parameter in search.split("&") if parameter]
    kept = [parameter for parameter in written if not is_tracking(parameter.partition("=")[0])]
    if query is Query.SORT:
        kept.sort(key=lambda parameter: parameter.partition("=")[0])
    return "&".join(kept)
