"""The images of a page: the largest of each set of sources, lazily loaded ones too."""

import re
from collections.abc import Iterator

import turbohtml

from trapline.extract.html.url_resolution import Resolver
from trapline.model import Image

MAX_IMAGES = 10_000
_LAZY = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-url")
_SETS = ("data-srcset", "data-lazy-srcset", "srcset")
_SOCIAL = ("og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src")
# A candidate is a URL, which may hold commas inside, then a descriptor that a comma ends.
_CANDIDATE = re.compile(r"[\s,]*+([^\s,]\S*+)(?:(?<!,)\s++([^,]*+))?")
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)[wxh]")


def read_images(tree: turbohtml.Document, resolver: Resolver) -> tuple[Image, ...]:
    """Every image once, in the order of the page; the one it shows to social media comes first."""
    found: dict[str, str] = {}
    for reference, alt in _references(tree):
        url = resolver.absolute(reference)
        if url and not found.get(url):
            found[url] = alt
    return tuple(Image(url, alt) for url, alt in found.items())


def _references(tree: turbohtml.Document) -> Iterator[tuple[str, str]]:
    for meta in tree.find_all("meta"):
        if (meta.attr("property") or meta.attr("name") or "").lower() in _SOCIAL:
            yield meta.attr("content") or "", ""
    for element in tree.find_all(["img", "source", "amp-img", "video"])[:MAX_IMAGES]:
        yield from _sources(element)


def _sources(element: turbohtml.Element) -> Iterator[tuple[str, str]]:
    attrs = {name: value for name, value in element.attrs.items() if isinstance(value, str)}
    if element.tag == "video":
        yield attrs.get("poster", ""), ""
    elif element.tag == "source":
        yield largest(attrs.get("srcset") or attrs.get("data-srcset", "")), ""
    elif not _is_pixel(attrs):
        yield _best_source(attrs), " ".join(attrs.get("alt", "").split())


def _best_source(attrs: dict[str, str]) -> str:
    for name in _SETS:
        if name in attrs and _is_address(reference := largest(attrs[name])):
            return reference
    for name in _LAZY:
        if name in attrs and _is_address(attrs[name]):
            return attrs[name]
    return attrs.get("src", "")


def largest(srcset: str) -> str:
    """The candidate of a srcset with the greatest width or density; "" if there is none."""
    best, size = "", 0.0
    srcset = srcset[:20_000]
    match = _CANDIDATE.match(srcset)
    while match:
        descriptor = _SIZE.match(match.group(2) or "")
        width = float(descriptor.group(1)) if descriptor else 1.0
        if width > size:
            best, size = match.group(1).rstrip(","), width
        match = _CANDIDATE.match(srcset, match.end())
    return best


def _is_address(reference: str) -> bool:
    return bool(reference) and not reference.lstrip().lower().startswith("data:")


def _is_pixel(attrs: dict[str, str]) -> bool:
    """Counters and trackers are images of one pixel."""
    return attrs.get("width") in ("0", "1") and attrs.get("height") in ("0", "1")
