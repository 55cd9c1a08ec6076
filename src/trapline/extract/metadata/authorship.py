"""Who wrote a page and when: from meta tags, JSON-LD, time elements and marked-up bylines."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise

import turbohtml

from trapline.extract.html import attribute_scan
from trapline.extract.metadata import jsonld
from trapline.extract.metadata.dates import YEAR, iso_date

_AUTHOR = (
    "author", "article:author", "dc.creator", "dcterms.creator", "dc.contributor", "parsely-author",
    "sailthru.author", "citation_author", "byl", "article:author_name", "og:author", "cxenseparse:author",
)  # fmt: skip
_PUBLISHED = (
    "article:published_time", "og:published_time", "datepublished", "publishdate", "publish-date",
    "publish_date", "pubdate", "parsely-pub-date", "sailthru.date", "citation_publication_date",
    "citation_date", "dc.date.issued", "dcterms.issued", "dc.date.created", "dcterms.created", "dc.date",
    "dcterms.date", "date", "article.published", "article:published", "publication_date", "originalpublicationdate",
)  # fmt: skip
_MODIFIED = (
    "article:modified_time", "og:updated_time", "og:modified_time", "datemodified", "lastmod",
    "last-modified", "dcterms.modified", "dc.date.modified", "article.updated", "revised",
)  # fmt: skip
# Whether one of them is there is asked of every page, and most have none.
_AUTHOR_NAMES, _DATED_NAMES = frozenset(_AUTHOR), frozenset((*_PUBLISHED, *_MODIFIED))
_ARTICLE_WORDS = ("article", "posting", "report", "webpage", "product", "recipe", "videoobject")
_MAX_NAME = 120
_NOT_NAMES = {
    "about", "sign", "log", "login", "written", "author", "authors", "view", "read", "posts", "share",
    "admin", "administrator", "name", "anonymous", "unknown", "undefined", "null",
}  # fmt: skip
_LABELS = (("twitter:label1", "twitter:data1"), ("twitter:label2", "twitter:data2"))
_LABEL_NAMES = frozenset(label for label, _ in _LABELS)
_CREDITED = attribute_scan.CREDITED | attribute_scan.AUTHOR_RELS
_CREDITS = (
    (attribute_scan.CREDITED, "[itemprop~=author]"),
    (attribute_scan.AUTHOR_RELS, "[rel~=author]"),
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_STEPS_UP = 3
_MAX_LINES = 60
_MAX_LINE = 80
_MAX_CALLED = 12
_BY_WORDS = re.compile(r"^(?:written |posted |reviewed )?by:?\s+", re.IGNORECASE)
_BY = re.compile(r"(?:(?:written|posted|started) )?by:?(?:\s+(.*))?$", re.IGNORECASE)
# What a line begins with that has a name, and perhaps more.
_MAY_NAME = re.compile(r"\s*(?:by|written|posted|started)", re.IGNORECASE)
# Two to four words that begin with a capital, or one handle.
_LIKE_NAME = re.compile(r"[^\W\d_a-z][\w.'\u2019-]*(?: [^\W\d_][\w.'\u2019-]*){1,3}|[\w.-]{3,24}")


class Byline:
    """Who and when, of one page: from what it declares, then from what it shows.

    `folded` has the page's meta tags by their names in lower case; `nodes` its JSON-LD; `attribute_flags` what
    its source can hold.
    """

    def __init__(
        self,
        tree: turbohtml.Document,
        folded: Mapping[str, str],
        nodes: list[jsonld.Node],
        attribute_flags: int = attribute_scan.EVERYTHING,
    ) -> None:
        self._tree = tree
        self._folded = folded
        self._attribute_flags = attribute_flags
        # What the page is about comes first: an article before the web page, others last.
        self._nodes = sorted(nodes, key=_rank) if len(nodes) > 1 else nodes
        self._published: list[str | None] = []
        self._read_lines: list[str] | None = None

    @property
    def published(self) -> str | None:
        """When the page says it was first published; its URL is not asked."""
        if not self._published:
            self._published.append(self._declared_date() or self._shown_date())
        return self._published[0]

    def _declared_date(self) -> str | None:
        return (
            _from_meta(self._folded, _PUBLISHED)
            or _from_nodes(self._nodes, "datePublished")
            or (_from_marks(self._tree) if self._attribute_flags & attribute_scan.DATED else None)
        )

    def _shown_date(self) -> str | None:
        return (
            _from_times(self._tree)
            or _from_nodes(self._nodes, "dateCreated")
            or _from_nodes(self._nodes, "uploadDate")
            or _from_lines(self._lines)
            or (
                _from_classes(self._tree)
                if self._attribute_flags & attribute_scan.DATE_CLASS
                else None
            )
        )

    @property
    def modified(self) -> str | None:
        """When the page says it was last changed."""
        return _from_meta(self._folded, _MODIFIED) or _from_nodes(self._nodes, "dateModified")

    @property
    def author(self) -> str | None:
        """Who the page says wrote it: a person before the site that publishes them."""
        publisher = None
        for text in self._authors():
            name = _person(text)
            if name and name.lower() not in self._organisations():
                return name
            publisher = publisher or name
        return publisher

    def _organisations(self) -> frozenset[str]:
        """The names of the site and of those who publish it, in lower case."""
        names = [self._folded.get("og:site_name"), self._folded.get("application-name")]
        for node in self._nodes:
            publisher = node.get("publisher")
            names.append(_name_of(publisher, {}))
            if "Organization" in " ".join(jsonld.types_of(node)):
                names.append(_name_of(node, {}))
        return frozenset(collapse_space(name).lower() for name in names if name)

    def _authors(self) -> Iterator[str]:
        """What may name them: what is declared, then what is shown."""
        if not _AUTHOR_NAMES.isdisjoint(self._folded):
            yield from (self._folded[name] for name in _AUTHOR if name in self._folded)
        if self._nodes:
            yield from _authors_of(self._nodes)
        if not _LABEL_NAMES.isdisjoint(self._folded):
            yield from _labelled(self._folded)
        if self._attribute_flags & _CREDITED:
            yield from _marked_names(self._tree, self._attribute_flags)
        if self._lines:
            yield from _written_by(self._lines)
        if self._attribute_flags & attribute_scan.AUTHOR_LINK:
            yield from _like_names(self._tree.select("a[href*='/author']")[:_MAX_CALLED])
        # A name in a class is a guess; on a page without a date it is mostly a wrong one.
        if self._attribute_flags & attribute_scan.AUTHOR_CLASS and self.published:
            called = self._tree.select("[class*=author], [class*=byline], a.username")
            yield from _like_names(called[:_MAX_CALLED])

    @property
    def _lines(self) -> list[str]:
        if self._read_lines is None:
            self._read_lines = headline_lines(self._tree)
        return self._read_lines


def _rank(node: jsonld.Node) -> int:
    types = " ".join(jsonld.types_of(node)).lower()
    return next((n for n, word in enumerate(_ARTICLE_WORDS) if word in types), len(_ARTICLE_WORDS))


def _from_meta(folded: Mapping[str, str], names: Iterable[str]) -> str | None:
    if _DATED_NAMES.isdisjoint(folded):
        return None
    dates = (iso_date(folded[name]) for name in names if name in folded)
    return next(filter(None, dates), None)


def _from_nodes(nodes: list[jsonld.Node], name: str) -> str | None:
    if not nodes:
        return None
    dates = (iso_date(value) for node in nodes if isinstance(value := node.get(name), str))
    return next(filter(None, dates), None)


def headline_lines(tree: turbohtml.Document) -> list[str]:
    """The short texts around the headline, where people put the byline; none if it cannot be there."""
    headline = around = tree.find("h1")
    if headline is None or around is None:
        return []
    for _ in range(_STEPS_UP):
        parent = around.parent
        if isinstance(parent, turbohtml.Element) and parent.tag not in ("body", "html"):
            around = parent
    texts = list(islice(around.stripped_strings, _MAX_LINES))
    if not _may_tell(texts):
        return []
    title = collapse_space(headline.text)
    lines = (collapse_space(text) for text in texts if len(text) <= _MAX_LINE or _may_shrink(text))
    return [line for line in lines if len(line) <= _MAX_LINE and line not in title]


def _may_tell(texts: list[str]) -> bool:
    """Whether one of some texts can begin with who wrote it, or have a year in it."""
    return any(map(_MAY_NAME.match, texts)) or YEAR.search("\n".join(texts)) is not None


def _may_shrink(text: str) -> bool:
    """Whether there can be more than single spaces in it: most paragraphs are long as they are."""
    return "  " in text or "\n" in text or "\t" in text or not text.isascii()


def _from_lines(lines: list[str]) -> str | None:
    if not lines or not YEAR.search("\n".join(lines)):
        return None
    return next((found for line in lines if (found := iso_date(line))), None)


def _from_marks(tree: turbohtml.Document) -> str | None:
    marked = tree.select("[itemprop~=datePublished]")[:3]
    texts = (e.attr("content") or e.attr("datetime") or e.attr("title") or e.text for e in marked)
    return next(filter(None, map(iso_date, texts)), None)


def _from_classes(tree: turbohtml.Document) -> str | None:
    """The date of a short text in an element that is called a date."""
    called = tree.select("[class*=date], [class*=publish], [class*=posted]")[:_MAX_CALLED]
    texts = (collapse_space(element.text[: 2 * _MAX_LINE]) for element in called)
    return next(filter(None, (iso_date(text) for text in texts if len(text) <= _MAX_LINE)), None)


def _from_times(tree: turbohtml.Document) -> str | None:
    """The date of a time element: marked as the publication's, in the content, any."""
    times = tree.find_all("time")[:50]
    if not times:
        return None
    marked = (t for t in times if _is_publication(t))
    placed = (t for t in times if t.closest("article, main, header"))
    for time in chain(marked, placed, times):
        if found := iso_date(time.attr("datetime") or time.text):
            return found
    return None


def _is_publication(time: turbohtml.Element) -> bool:
    names = (time.attr("itemprop") or "", time.attr("class") or "")
    return "pubdate" in time.attrs or any("publish" in name.lower() for name in names)


def _authors_of(nodes: list[jsonld.Node]) -> Iterator[str]:
    by_id = {node["@id"]: node for node in nodes if isinstance(node.get("@id"), str)}
    for node in nodes:
        authors = node.get("author")
        names = [
            name
            for author in (authors if isinstance(authors, list) else [authors])
            if (name := _name_of(author, by_id))
        ]
        if names:
            yield ", ".join(dict.fromkeys(names))


def _name_of(author: object, by_id: Mapping[object, jsonld.Node]) -> str | None:
    if isinstance(author, dict):
        name = author.get("name")
        if name is None:
            name = by_id.get(author.get("@id"), {}).get("name")
        author = name[0] if isinstance(name, list) and name else name
    return collapse_space(author) if isinstance(author, str) else None


def _labelled(folded: Mapping[str, str]) -> Iterator[str]:
    """Twitter cards carry label and value in a pair of tags."""
    for label, value in _LABELS:
        if label in folded and folded[label].lower() in ("written by", "author", "by"):
            yield folded.get(value, "")


def _marked_names(tree: turbohtml.Document, attribute_flags: int) -> Iterator[str]:
    for element in _credited(tree, attribute_flags)[:3]:
        named = element.select_one("[itemprop~=name]") or element
        yield named.attr("content") or named.text


def _credited(tree: turbohtml.Document, attribute_flags: int) -> list[turbohtml.Element]:
    """What is marked as the author. Often that is a link in the head alone, which is soon found."""
    if not attribute_flags & attribute_scan.CREDITED:
        linked = tree.select("link[rel~=author]")
        if attribute_scan.are_all(tree, len(linked), attribute_flags, attribute_scan.AUTHOR_RELS):
            return linked
    return tree.select(", ".join(selector for mark, selector in _CREDITS if attribute_flags & mark))


def _written_by(lines: list[str]) -> Iterator[str]:
    for line, following in pairwise([*lines, ""]):
        if match := _BY.match(line):
            name = match.group(1) or following
            if _LIKE_NAME.fullmatch(name):
                yield name


def _like_names(elements: Iterable[turbohtml.Element]) -> Iterator[str]:
    """What reads like a name at the start of each element."""
    for element in elements:
        parts = (collapse_space(part) for part in islice(element.stripped_strings, 2))
        for part in parts:
            name = _BY_WORDS.sub("", part)
            if len(name) <= _MAX_LINE and _LIKE_NAME.fullmatch(name):
                yield name


def _person(text: str) -> str | None:
    """A name, or None for what stands in its place: an address, a handle, a whole sentence."""
    name = collapse_space(text).strip(",;| ")
    if name[:3].lower() == "by ":
        name = name[3:]
    wrong = (
        not _NOT_NAMES.isdisjoint(name.lower().split())
        or not name
        or len(name) > _MAX_NAME
        or "://" in name
        or "@" in name
        or not _LETTERS.search(name)
        or name.startswith("/")
        or "{" in name
    )
    return None if wrong else name


def collapse_space(text: str) -> str:
    """A text on one line, with single spaces."""
    return " ".join(text.split())
