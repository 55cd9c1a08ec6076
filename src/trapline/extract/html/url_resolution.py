"""From a reference in a page to an absolute URL, by the WHATWG rules, or to nothing."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Protocol

import ada_url
import turbohtml

from trapline import native

# References that the WHATWG parser would give back unchanged, or below the page's directory: nearly
# all of a page's links. They skip the parser, which costs ten times as much as this look.
_PATH = r"[A-Za-z0-9_~/.\-]{0,4000}+"
_SAFE = rf"{_PATH}(?:\?[A-Za-z0-9_=&.~+\-@:;,/?!$*()%]{{0,4000}}+)?"
_MAX_UPS = 9
_PLAIN = re.compile(
    rf"(https?://(?:[a-z0-9\-]++\.)++[a-z]{{2,}}/(?!/){_SAFE})"
    rf"|(/(?!/){_SAFE})"
    rf"|((?:\.\./){{0,{_MAX_UPS}}}+)([A-Za-z0-9_~\-]{_SAFE})"
)
_CONTROLS = "".join(map(chr, range(0x21)))
# With one of these a reference is a URL of its own, and none of a page.
_OTHER_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.\-]*+:", re.IGNORECASE)
MAX_URL_LENGTH = 8192
"""Longer references are left out: no server takes them, and traps make them."""


# Directories and names that the parser would give back as they are; a port is one that no scheme has
# by default.
_PLAIN_DIRECTORY = re.compile(
    r"https?://(?:(?:[a-z0-9\-]++\.)++[a-z]{2,}|127\.0\.0\.1|localhost)"
    rf"(?::(?:[1-5][0-9]{{4}}|6[0-4][0-9]{{3}}|[1-9][0-9]{{3}}))?/(?!/){_PATH}"
)
_PLAIN_NAME = re.compile(rf"(?!\.){_SAFE}")


BaseParts = tuple[str, list[str]]


class Resolver:
    """Makes the references of one page absolute; `<base href>` is honoured."""

    def __init__(self, tree: turbohtml.Document, url: str) -> None:
        plain = _plain_place_of(url)
        self.page = url if plain else _parsed(url) or ""
        self.base = _base_of(tree, self.page)
        origin, above = plain if plain and self.base is url else _place_of(self.base)
        self.references = make_references(origin, above, partial(_resolved, self.base))
        self.absolute = self.references.absolute

    def first(self, references: Iterable[str | None]) -> str | None:
        """The first of some references that means an http(s) URL."""
        return next((url for ref in references if ref and (url := self.absolute(ref))), None)


class References(Protocol):
    """The references of one page, each looked at once."""

    def absolute(self, reference: str, /) -> str | None:
        """The http(s) URL that a reference means, without its fragment; None if it means none."""


class PythonReferences:
    """`parse` resolves the addresses that need a URL parser."""

    def __init__(self, origin: str, above: list[str], parse: Callable[[str], str | None]) -> None:
        self._origin = origin
        self._above = above
        self._parse = parse
        self._seen: dict[str, str | None] = {}

    def absolute(self, reference: str, /) -> str | None:
        address = reference.partition("#")[0]
        try:
            return self._seen[address]
        except KeyError:
            url = self._seen[address] = self._plain(address) or self._parse(address)
            return url

    def _plain(self, address: str) -> str | None:
        """The URL of an address that needs no parser; None for any other."""
        match = _PLAIN.fullmatch(address)
        if match is None:
            return None
        url, path, up, name = match.groups()
        if "/." in (name or address) or "xn--" in address:
            return None
        if url:
            return address
        if not self._origin:
            return None
        return self._origin + address if path else self._above[len(up) // 3] + name


def make_references(
    origin: str, above: list[str], parse: Callable[[str], str | None], /
) -> References:
    return PythonReferences(origin, above, parse)


def _resolved(base: str, reference: str) -> str | None:
    reference = reference.strip(_CONTROLS)
    if not reference or len(reference) > MAX_URL_LENGTH or _OTHER_SCHEME.match(reference):
        return None
    joined = _joined(base, reference)
    return joined if joined and joined.startswith(("http://", "https://")) else None


def _joined(base: str, reference: str) -> str | None:
    try:
        return ada_url.join_url(base, reference) if base else _parsed(reference)
    except ValueError:
        return None


def _parsed(url: str) -> str | None:
    try:
        return ada_url.URL(url).href
    except ValueError:
        return None


def _base_of(tree: turbohtml.Document, page: str) -> str:
    element = tree.find("base", href=True)
    if element is None:
        return page
    href = (element.attr("href") or "").strip(_CONTROLS)
    joined = _joined(page, href) if href else None
    return joined if joined and joined.startswith(("http://", "https://")) else page


def _plain_place_of(url: str) -> BaseParts | None:
    """As `_place_of`, for what the parser would give back as it is; None for any other."""
    directory, slash, name = url.rpartition("/")
    return _plain_place_of_names(directory + slash) if _PLAIN_NAME.fullmatch(name) else None


@lru_cache(maxsize=256)
def _plain_place_of_names(directory: str) -> BaseParts | None:
    """Remembered, for a site's pages share their directories."""
    plain = _PLAIN_DIRECTORY.fullmatch(directory) and "/." not in directory
    return _place_of_names(directory) if plain and "xn--" not in directory else None


def _place_of(base: str) -> BaseParts:
    """A page's origin and the directories above it; neither for what is no web address."""
    if not base.startswith(("http://", "https://")):
        return "", []
    address = base.partition("#")[0].partition("?")[0]
    return _place_of_names(address[: address.rindex("/") + 1])


@lru_cache(maxsize=256)
def _place_of_names(directory: str) -> BaseParts:
    return ada_url.URL(directory).origin, _directories(directory)


def _directories(directory: str) -> list[str]:
    """Where a page's relative names start: at its directory, the one above that, and so on."""
    root = directory.index("/", len("https://"))
    found: list[str] = []
    end = len(directory)
    while len(found) <= _MAX_UPS and end > root:
        end = directory.rfind("/", root, end)
        found.append(directory[: end + 1])
    # From the topmost directory no way leads up.
    return found + found[-1:] * (_MAX_UPS + 1 - len(found))


if native.available:
    make_references = native.library.References
