"""What a page says of its own type: in its URL, its Open Graph type and its schema.org types."""

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import turbohtml

from trapline.extract.html import attribute_scan
from trapline.extract.metadata import jsonld
from trapline.extract.metadata.head import Head, read_head

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
_ANY_URL_HINT: Final = re.compile("|".join(pattern.pattern for pattern in _URL_HINTS))
# Says nothing, as the names of most pages do not.
_SOME_NAME: Final = "x"
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
_KINDS_OF_GENERATORS: Final = _GENERATORS.groups
_NO_OPEN_GRAPH: Final = [0.0] * len(_OPEN_GRAPH)
_NO_SCHEMA: Final = [0.0] * len(SCHEMA_GROUPS)


class PageHints(NamedTuple):
    """What a page says of itself: the words of its title and descriptions, and of what type it is."""

    echo: frozenset[str]
    hints: list[float]


def read_hints(
    tree: turbohtml.Document,
    url: str,
    head: Head | None = None,
    attribute_flags: int = attribute_scan.EVERYTHING,
) -> PageHints:
    """`head` is the page's, if it is already read; `attribute_flags` what its source can hold."""
    head = head or read_head(tree)
    words = head.titles[0].text.split() if head.titles else []
    kind, generators = None, [0.0] * _KINDS_OF_GENERATORS
    for name, about, content, _ in head.metas:
        said = content or ""
        if name == "description" or about == "og:description":
            words += said.split()
        if about == "og:type" and kind is None:
            kind = said.lower()
        if name == "generator" and (number := _kind_of_generator(said[:_LONGEST_GENERATOR])):
            generators[number - 1] = 1.0
    graph = [float(name in kind) for name in _OPEN_GRAPH] if kind else _NO_OPEN_GRAPH
    schema = _from_schema(tree, head, microdata=bool(attribute_flags & attribute_scan.TYPED))
    return PageHints(frozenset(words), [*_from_url(url), *graph, *schema, *generators])


def _from_url(url: str) -> list[float]:
    host, path, query = _parts(url.lower())
    target = f"{host}{path}{'?' if query else ''}"
    directory, _, name = target.rpartition("/")
    # A hint stands in the directories, up to a slash, or in the name that follows them.
    if directory and name and not _ANY_URL_HINT.search(f"/{name}"):
        target = f"{directory}/{_SOME_NAME}"
    return [*_hints_in(target), float(path.count("/")), float(path in {"", "/"})]


@lru_cache(maxsize=256)
def _hints_in(target: str) -> list[float]:
    """Remembered, for a site's pages share their directories."""
    return [float(bool(pattern.search(target))) for pattern in _URL_HINTS]


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


def _from_schema(tree: turbohtml.Document, head: Head, *, microdata: bool) -> list[float]:
    if not head.scripts and not microdata:
        return _NO_SCHEMA
    found: set[str] = set()
    for script in head.scripts:
        if (script.attr("type") or "").lower() == jsonld.TYPE:
            found.update(_SCHEMA.findall(script.text))
    for element in tree.select(_MICRODATA) if microdata else ():
        found.add((element.attr("itemtype") or "").rpartition("/")[2])
    return [float(not found.isdisjoint(group)) for group in SCHEMA_GROUPS]


@lru_cache(maxsize=256)
def _kind_of_generator(name: str) -> int | None:
    """Remembered, for a site's pages have the same, and to look for all names takes long."""
    match = _GENERATORS.search(name)
    return match.lastindex if match else None
