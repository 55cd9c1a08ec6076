"""What a page says about itself: meta and link tags, JSON-LD, time elements, its URL."""

import re
from collections.abc import Iterable, Mapping

import turbohtml
from msgspec.structs import replace

from trapline.extract.html.attribute_scan import EVERYTHING
from trapline.extract.html.url_resolution import Resolver
from trapline.extract.metadata.authorship import Byline, collapse_space
from trapline.extract.metadata.dates import date_in_url
from trapline.extract.metadata.head import Head, Meta, read_head
from trapline.extract.metadata.headline import read_headline
from trapline.extract.metadata.language import declared_language, detected_language
from trapline.model import Metadata

Declared = dict[str, str | tuple[str, ...]]

# The names that Firecrawl's clients know, beside the tag's own name.
_FIRECRAWL_NAMES = {
    "og:title": "ogTitle",
    "og:description": "ogDescription",
    "og:url": "ogUrl",
    "og:image": "ogImage",
    "og:audio": "ogAudio",
    "og:determiner": "ogDeterminer",
    "og:locale": "ogLocale",
    "og:locale:alternate": "ogLocaleAlternate",
    "og:site_name": "ogSiteName",
    "og:video": "ogVideo",
    "article:section": "articleSection",
    "article:tag": "articleTag",
    "article:published_time": "publishedTime",
    "article:modified_time": "modifiedTime",
    "dc.date": "dcDate",
    "dc.date.created": "dcDateCreated",
    "dc.description": "dcDescription",
    "dc.subject": "dcSubject",
    "dc.type": "dcType",
    "dcterms.audience": "dcTermsAudience",
    "dcterms.created": "dcTermsCreated",
    "dcterms.keywords": "dcTermsKeywords",
    "dcterms.subject": "dcTermsSubject",
    "dcterms.type": "dcTermsType",
}
_LISTS = ("ogLocaleAlternate",)
_ICONS = ("icon", "apple-touch-icon", "apple-touch-icon-precomposed")
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_WORDS_A_MINUTE = 220
_MAX_VALUE = 10_000
_LONGEST_MEAN = 12
_SHORT_TEXT = 500
_MAX_REPEATED = 100
_DENSE = re.compile("[\u3040-\u9fff]+")


def read_metadata(
    tree: turbohtml.Document,
    resolver: Resolver,
    head: Head | None = None,
    attribute_flags: int = EVERYTHING,
) -> Metadata:
    """Everything that the page declares.

    `head` is the page's, if it is already read; `attribute_flags` what its source can hold.
    """
    head = head or read_head(tree)
    declared = _declared(head.metas)
    folded = _folded(declared)
    byline = Byline(tree, folded, head.nodes, attribute_flags)
    root = tree.root
    title = _title(tree, head, folded)
    return Metadata(
        title=title,
        headline=read_headline(tree, title, folded),
        description=_first(
            folded, ("description", "og:description", "twitter:description", "dc.description")
        ),
        language=declared_language(
            root.attr("lang") or root.attr("xml:lang") if root else None,
            _first(folded, ("content-language", "language", "dc.language", "og:locale")),
        ),
        author=byline.author,
        published=byline.published or date_in_url(resolver.page),
        modified=byline.modified,
        canonical=_linked(head, "canonical", resolver),
        site_name=_first(
            folded, ("og:site_name", "application-name", "apple-mobile-web-app-title")
        ),
        favicon=_favicon(head, resolver),
        robots=_first(folded, ("robots",)),
        keywords=_keywords(_first(folded, ("keywords", "news_keywords"))),
        feeds=_feeds(head, resolver),
        alternates=_alternates(head, resolver),
        declared=declared,
    )


def describe_text(metadata: Metadata, text: str, counted: int | None = None) -> Metadata:
    """Add what only the main text tells: its length, and its language if none is declared.

    `counted` is how many words stand between white space, if that is known.
    """
    words = count_words(text, counted)
    return replace(
        metadata,
        language=metadata.language or detected_language(text),
        words=words,
        reading_minutes=-(-words // _WORDS_A_MINUTE),
    )


def count_words(text: str, counted: int | None = None) -> int:
    """Words of a text; in scripts without spaces two characters count as one word."""
    count = len(text.split()) if counted is None else counted
    # Text with spaces has a word every few characters; only the rest need be looked through.
    if text.isascii() or count * _LONGEST_MEAN > len(text) > _SHORT_TEXT:
        return count
    return count + len("".join(_DENSE.findall(text))) // 2


def robots_directives(robots: str | None) -> frozenset[str]:
    """The directives of a robots meta tag, in lower case; `none` is noindex and nofollow."""
    found = {part.strip().lower() for part in (robots or "").split(",")} - {""}
    return frozenset(found | {"noindex", "nofollow"} if "none" in found else found)


def _declared(metas: Iterable[Meta]) -> Declared:
    """Every meta tag under its own name, and under Firecrawl's name if it has one."""
    found: Declared = {}
    for name, about, content, meta in metas:
        known = name or about or meta.attr("itemprop") or meta.attr("http-equiv")
        if known and content is not None:
            _add(found, known.strip(), content.strip()[:_MAX_VALUE])
        elif charset := meta.attr("charset"):
            found.setdefault("charset", charset)
    return found


def _add(found: Declared, name: str, content: str) -> None:
    known = found.get(name)
    if known is None:
        found[name] = content
    elif isinstance(known, str):
        found[name] = (known, content) if content != known else known
    elif len(known) < _MAX_REPEATED and content not in known:
        found[name] = (*known, content)
    key = _FIRECRAWL_NAMES.get(name.lower())
    if key in _LISTS and key:
        found[key] = (*found.get(key, ()), content)[:_MAX_REPEATED]
    elif key and content:
        found.setdefault(key, content)


def _folded(declared: Declared) -> dict[str, str]:
    """The first value of each tag, by its name in lower case."""
    folded: dict[str, str] = {}
    for name, value in declared.items():
        first = value if isinstance(value, str) else next(filter(None, value), "")
        if first:
            folded.setdefault(name.lower(), first)
    return folded


def _first(folded: Mapping[str, str], names: Iterable[str]) -> str | None:
    for name in names:
        if name in folded:
            return folded[name]
    return None


def _title(tree: turbohtml.Document, head: Head, folded: Mapping[str, str]) -> str | None:
    # A <title> inside an inline SVG names a drawing, not the page.
    for title in head.titles:
        if title.namespace is turbohtml.Namespace.HTML and (text := collapse_space(title.text)):
            return text
    declared = _first(folded, ("og:title", "twitter:title", "dc.title", "dcterms.title", "title"))
    heading = None if declared else tree.find("h1")
    return declared or (collapse_space(heading.text) or None if heading else None)


def _linked(head: Head, rel: str, resolver: Resolver) -> str | None:
    """The first web address of those that are linked as this."""
    for link in head.links.get(rel, ()):
        if url := resolver.absolute(link.attr("href") or ""):
            return url
    return None


def _favicon(head: Head, resolver: Resolver) -> str | None:
    for rel in _ICONS:
        if url := _linked(head, rel, resolver):
            return url
    return None


def _feeds(head: Head, resolver: Resolver) -> tuple[str, ...]:
    if "alternate" not in head.links:
        return ()
    found = (
        resolver.absolute(link.attr("href") or "")
        for link in head.links["alternate"]
        if (link.attr("type") or "").strip().lower() in _FEED_TYPES
    )
    return tuple(dict.fromkeys(url for url in found if url))


def _alternates(head: Head, resolver: Resolver) -> tuple[tuple[str, str], ...]:
    if "alternate" not in head.links:
        return ()
    found = (
        (language.strip(), resolver.absolute(link.attr("href") or ""))
        for link in head.links["alternate"]
        if (language := link.attr("hreflang"))
    )
    return tuple(dict.fromkeys((language, url) for language, url in found if url))


def _keywords(text: str | None) -> tuple[str, ...]:
    if not text:
        return ()
    parts = (collapse_space(part) for part in text.replace(";", ",").split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
