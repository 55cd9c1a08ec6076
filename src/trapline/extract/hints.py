"""What a page says of its own type: in its URL, its Open Graph type and its schema.org types."""

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import turbohtml

from trapline.extract import marks
from trapline.extract.outline import Floats

_URL_HINTS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"/(products?|p|dp|item|itm|prod|ip)/|\.p$|/p-|-p-\d",
        r"/(collections?|categor(y|ies)|c|shop|store|browse|catalog)(/|$|\?)",
        r"forum|thread|topic|/t/|questions?/|viewtopic|discussion|community|/r/|comments/",
        # All begin with a letter: a search looks for one of these before it looks for more.
        r"doc(?<=\bdoc)s?\b|documentation|reference|manual|/api|guide|/learn|wiki|tutorial|readthedocs",
        r"/blog|/news|/articles?|/posts?/|/story|/20\d\d/|magazine",
        r"/(services?|solutions?|features?|pricing|about|platform|software|product)s?/?$|/services?/",
        r"/(jobs?|search|list|best|top|events?|directory|tag|topics|listing|archive|recipes)\b|\?",
    )
)
_OPEN_GRAPH: Final = ("article", "product", "website", "profile", "video")
_SCHEMA: Final = re.compile(r'"@type"\s*:\s*\[?\s*"(?:https?://schema\.org/)?(\w+)"')
SCHEMA_GROUPS: Final = (
    frozenset({"Article", "NewsArticle", "BlogPosting", "ReportageNewsArticle", "Report"}),
    frozenset({"Product", "ProductGroup", "Offer", "IndividualProduct"}),
    frozenset({"ItemList", "CollectionPage", "OfferCatalog", "SearchResultsPage"}),
    frozenset({"DiscussionForumPosting", "QAPage", "Question", "Answer", "Comment"}),
    frozenset({"FAQPage"}),
    frozenset({"LocalBusiness", "Service", "ProfessionalService", "SoftwareApplication"}),
    frozenset({"TechArticle", "APIReference", "HowTo"}),
    frozenset({"Recipe"}),
    frozenset({"Review", "AggregateRating"}),
    frozenset({"BreadcrumbList"}),
    frozenset({"Event", "JobPosting", "VideoObject"}),
)
_SCHEMES: Final = frozenset({"http", "https"})
_MICRODATA: Final = "[itemtype]"
_GENERATORS: Final = re.compile(
    r"(discourse|phpbb|xenforo|vbulletin|smf|flarum|vanilla|nodebb)|(shopify|woocommerce|magento)"
    r"|(mediawiki|docusaurus|sphinx|mkdocs|gitbook|hugo|jekyll|antora|doxygen)"
    r"|(wordpress|ghost|drupal)|(wix|squarespace|webflow|hubspot)",
    re.IGNORECASE,
)
_LONGEST_GENERATOR: Final = 1_000
COUNT: Final = len(_URL_HINTS) + 2 + len(_OPEN_GRAPH) + len(SCHEMA_GROUPS) + 5


# One by one: a list of selectors looks at every element, one for a tag at those of the tag.
_DESCRIPTIONS: Final = ('meta[name="description"]', 'meta[property="og:description"]')
_LINKED_DATA: Final = 'script[type="application/ld+json"]'


class Said(NamedTuple):
    """What a page says of itself: the words of its title and descriptions, and of what type it is."""

    echo: frozenset[str]
    hints: list[float]


def read_said(tree: turbohtml.Document, url: str, marked: int) -> Said:
    """`marked` is what the page's source can hold."""
    return Said(read_echo(tree), _values(tree, url, marked))


def read_echo(tree: turbohtml.Document) -> frozenset[str]:
    """The words of the page's title and of its descriptions."""
    title = tree.find("title")
    words = title.text.split() if title else []
    for selector in _DESCRIPTIONS:
        for tag in tree.select(selector):
            words += (tag.attr("content") or "").split()
    return frozenset(words)


def read_hints(tree: turbohtml.Document, url: str, marked: int = marks.EVERYTHING) -> Floats:
    """`marked` is what the page's source can hold."""
    return np.array(_values(tree, url, marked), dtype=np.float32)


def _values(tree: turbohtml.Document, url: str, marked: int) -> list[float]:
    schema = _from_schema(tree, microdata=bool(marked & marks.TYPED))
    return [*_from_url(url), *_from_open_graph(tree), *schema, *_from_generator(tree)]


def _from_url(url: str) -> list[float]:
    host, path, query = _parts(url.lower())
    target = f"{host}{path}{'?' if query else ''}"
    flags = [float(bool(pattern.search(target))) for pattern in _URL_HINTS]
    return [*flags, float(path.count("/")), float(path in {"", "/"})]


def _parts(url: str) -> tuple[str, str, str]:
    """Host, path and query; those of a plain URL are found where they must be."""
    scheme, mark, rest = url.partition("://")
    plain = rest.isascii() and rest.isprintable() and "[" not in rest and "]" not in rest
    if mark and plain and scheme in _SCHEMES:
        before, _, query = rest.partition("#")[0].partition("?")
        host, slash, path = before.partition("/")
        return host, slash + path, query
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", "", ""
    return parts.netloc, parts.path, parts.query


def _from_open_graph(tree: turbohtml.Document) -> list[float]:
    tag = tree.select_one('meta[property="og:type"]')
    kind = ((tag.attr("content") if tag else None) or "").lower()
    return [float(name in kind) for name in _OPEN_GRAPH]


def _from_schema(tree: turbohtml.Document, *, microdata: bool) -> list[float]:
    found: set[str] = set()
    for script in tree.select(_LINKED_DATA):
        found.update(_SCHEMA.findall(script.text))
    for element in tree.select(_MICRODATA) if microdata else ():
        found.add((element.attr("itemtype") or "").rpartition("/")[2])
    return [float(not found.isdisjoint(group)) for group in SCHEMA_GROUPS]


def _from_generator(tree: turbohtml.Document) -> list[float]:
    flags = [0.0] * 5
    for tag in tree.select('meta[name="generator"]'):
        kind = _kind_of_generator((tag.attr("content") or "")[:_LONGEST_GENERATOR])
        if kind:
            flags[kind - 1] = 1.0
    return flags


@lru_cache(maxsize=256)
def _kind_of_generator(name: str) -> int | None:
    """Remembered, for a site's pages have the same, and to look for all names takes long."""
    match = _GENERATORS.search(name)
    return match.lastindex if match else None
