"""From a reference in a page to an absolute URL, by the WHATWG rules, or to nothing."""

import re
from collections.abc import Iterable

import ada_url
import turbohtml

# References that the WHATWG parser would give back unchanged: most of a page's links. They skip
# the parser, which costs five times as much as this look.
_PATH = r"/(?!/)[A-Za-z0-9_~/.\-]{0,4000}+(?:\?[A-Za-z0-9_=&.~+\-]{0,4000}+)?"
_PLAIN_PATH = re.compile(_PATH)
_PLAIN_URL = re.compile(r"https?://(?:[a-z0-9\-]++\.)++[a-z]{2,}" + _PATH)
_CONTROLS = "".join(map(chr, range(0x21)))
MAX_URL_LENGTH = 8192
"""Longer references are left out: no server takes them, and traps make them."""


class Resolver:
    """Makes the references of one page absolute; `<base href>` is honoured."""

    def __init__(self, tree: turbohtml.Document, url: str) -> None:
        self.page = _parsed(url) or ""
        self.base = _base_of(tree, self.page)
        self._origin = _origin_of(self.base)
        self._seen: dict[str, str | None] = {}

    def absolute(self, reference: str) -> str | None:
        """The http(s) URL that a reference means, without its fragment; None if it means none."""
        if "/." not in reference:
            if self._origin and _PLAIN_PATH.fullmatch(reference):
                return self._origin + reference
            if _PLAIN_URL.fullmatch(reference) and "xn--" not in reference:
                return reference
        if reference not in self._seen:
            self._seen[reference] = self._resolve(reference)
        return self._seen[reference]

    def _resolve(self, reference: str) -> str | None:
        reference = reference.partition("#")[0].strip(_CONTROLS)
        if not reference or len(reference) > MAX_URL_LENGTH:
            return None
        joined = _joined(self.base, reference)
        return joined if joined and joined.startswith(("http://", "https://")) else None

    def first(self, references: Iterable[str | None]) -> str | None:
        """The first of some references that means an http(s) URL."""
        return next((url for ref in references if ref and (url := self.absolute(ref))), None)


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
    href = (element.attr("href") or "").strip(_CONTROLS) if element else ""
    joined = _joined(page, href) if href else None
    return joined if joined and joined.startswith(("http://", "https://")) else page


def _origin_of(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        return ""
    return ada_url.URL(url).origin
