"""Sitemap reader: entries from the tags of a sitemap or feed, or from the lines of a text file."""

from collections.abc import Iterator

from trapline.frontier.canonical_url import MAX_URL_LENGTH
from trapline.frontier.date_formats import parse_date
from trapline.frontier.sitemaps.decompression import TextStream
from trapline.frontier.sitemaps.entry import EntryKind, SitemapEntry
from trapline.frontier.sitemaps.tag_stream import Scanner, Token, TokenKind

# Twice what sitemaps.org allows: sites exceed it, and reading on costs little.
MAX_BYTES = 2 * 52_428_800
MAX_ENTRIES = 2 * 50_000
_MAX_ALTERNATES = 200

_ENTRY_OF_ROOT = {
    "urlset": ("url",),
    "sitemapindex": ("sitemap",),
    "rss": ("item",),
    "rdf": ("item",),
    "feed": ("entry",),
}
_ANY_ENTRY = ("url", "sitemap")
_FIELDS = frozenset(
    {"loc", "lastmod", "priority", "changefreq", "link", "guid", "id"}
    | {"pubdate", "updated", "published", "date"}
)
_DATES = ("lastmod", "updated", "pubdate", "date", "published")
_LOCATIONS = ("loc", "link", "guid", "id")
_FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})


class SitemapReader:
    """Feed it the chunks of a response body; stop feeding when it is `done`."""

    def __init__(self, *, max_bytes: int = MAX_BYTES, max_entries: int = MAX_ENTRIES) -> None:
        self._stream = TextStream(max_bytes)
        self._left = max_entries
        self._full = False
        self._format: _Markup | _Lines | None = None

    @property
    def done(self) -> bool:
        return self._full or self._stream.done

    @property
    def problems(self) -> list[str]:
        """The faults of the file, a sentence each."""
        own = (
            ["The file has more entries than the limit; the first were read."] if self._full else []
        )
        if isinstance(self._format, _Markup) and self._format.is_html:
            own.append("The file is a web page, not a sitemap.")
        return self._stream.problems + own

    def feed(self, chunk: bytes) -> list[SitemapEntry]:
        """The entries that are complete with this chunk."""
        if self.done:
            return []
        return self._entries(self._stream.feed(chunk))

    def close(self) -> list[SitemapEntry]:
        """The entries that were still open when the file ended."""
        entries = self._entries(self._stream.close())
        if self._format is not None and not self._full:
            entries += self._counted(self._format.close())
        return entries

    def _entries(self, texts: Iterator[str]) -> list[SitemapEntry]:
        entries: list[SitemapEntry] = []
        for text in texts:
            if self._format is None and (begun := text.lstrip("\ufeff \t\r\n")):
                self._format = _Markup() if begun.startswith("<") else _Lines()
            if self._format is not None:
                entries += self._counted(self._format.feed(text))
            if self._full:
                break
        return entries

    def _counted(self, entries: Iterator[SitemapEntry]) -> Iterator[SitemapEntry]:
        for entry in entries:
            if not self._left:
                self._full = True
                return
            self._left -= 1
            yield entry


class _Lines:
    """A text file: one URL on a line."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[SitemapEntry]:
        *lines, self._rest = (self._rest + text).splitlines(keepends=True) or [""]
        if self._rest.endswith("\n") or len(self._rest) > MAX_URL_LENGTH:
            lines.append(self._rest)
            self._rest = ""
        yield from self._of_lines(lines)

    def close(self) -> Iterator[SitemapEntry]:
        yield from self._of_lines([self._rest])

    @staticmethod
    def _of_lines(lines: list[str]) -> Iterator[SitemapEntry]:
        for line in lines:
            url = line.strip("\ufeff \t\r\n")
            if url.lower().startswith(("http://", "https://")) and len(url) <= MAX_URL_LENGTH:
                yield SitemapEntry(EntryKind.PAGE, url)


class _Markup:
    """An XML file. An entry ends with its own tag or where the next begins, whatever is unclosed."""

    def __init__(self) -> None:
        self.is_html = False
        self._scanner = Scanner()
        self._entry_names: tuple[str, ...] | None = None
        self._entry: _OpenEntry | None = None

    def feed(self, text: str) -> Iterator[SitemapEntry]:
        for token in self._scanner.feed(text):
            match token.kind:
                case TokenKind.OPEN:
                    yield from self._opened(token)
                case TokenKind.CLOSE:
                    yield from self._closed(token)
                case TokenKind.TEXT:
                    if self._entry is not None:
                        self._entry.add_text(token.body)

    def close(self) -> Iterator[SitemapEntry]:
        # A truncated location would be another URL.
        if self._entry is not None and not self._entry.is_in_location:
            yield from self._finished()

    def _opened(self, token: Token) -> Iterator[SitemapEntry]:
        if self._entry_names is None:
            self._entry_names = _ENTRY_OF_ROOT.get(token.name, _ANY_ENTRY)
            self.is_html = token.name == "html"
        if token.name in self._entry_names:
            yield from self._finished()
            self._entry = _OpenEntry(token.name)
        elif self._entry is not None:
            self._entry.open(token)
        elif token.name == "loc":
            # A location without its entry is understood.
            self._entry = _OpenEntry("loc", self._entry_names[0])
            self._entry.open(token)

    def _closed(self, token: Token) -> Iterator[SitemapEntry]:
        if self._entry is None:
            return
        self._entry.close(token.name)
        if token.name == self._entry.name:
            yield from self._finished()

    def _finished(self) -> Iterator[SitemapEntry]:
        entry, self._entry = self._entry, None
        if entry is not None and (finished := entry.finished()):
            yield finished


class _OpenEntry:
    """The direct children of one entry; deeper elements (images, videos) are skipped."""

    def __init__(self, name: str, like: str | None = None) -> None:
        self.name = name
        self._kind = EntryKind.SITEMAP if (like or name) == "sitemap" else EntryKind.PAGE
        self._fields: dict[str, str] = {}
        self._alternates: list[tuple[str, str]] = []
        self._child: str | None = None
        self._text: list[str] = []
        self._length = 0

    @property
    def is_in_location(self) -> bool:
        return self._child in _LOCATIONS

    def open(self, token: Token) -> None:
        if self._child is not None and (self._child not in _FIELDS or token.name not in _FIELDS):
            return
        self._take_child()
        if token.name == "link" and self._take_link(token.attributes()):
            return
        if not token.is_empty_element:
            self._child = token.name

    def close(self, name: str) -> None:
        if name == self._child:
            self._take_child()

    def add_text(self, text: str) -> None:
        if self._child in _FIELDS and self._length <= MAX_URL_LENGTH:
            self._text.append(text)
            self._length += len(text)

    def finished(self) -> SitemapEntry | None:
        self._take_child()
        url = next((self._fields[name] for name in _LOCATIONS if name in self._fields), "")
        if not url or len(url) > MAX_URL_LENGTH:
            return None
        dates = (parse_date(self._fields[name]) for name in _DATES if name in self._fields)
        changes = self._fields.get("changefreq", "").lower()
        return SitemapEntry(
            self._kind,
            url,
            modified=next((date for date in dates if date), None),
            priority=_fraction(self._fields.get("priority", "")),
            changes=changes if changes in _FREQUENCIES else None,
            alternates=tuple(self._alternates),
        )

    def _take_child(self) -> None:
        if self._child in _FIELDS:
            text = "".join(self._text).strip()
            if text and (self._child not in {"guid", "id"} or text.startswith("http")):
                self._fields.setdefault(self._child, text)
        self._child, self._text, self._length = None, [], 0

    def _take_link(self, attributes: dict[str, str]) -> bool:
        """A link with its target in an attribute: an alternate, or Atom's own."""
        href = attributes.get("href", "").strip()
        relation = attributes.get("rel", "alternate").lower()
        if not href:
            return False
        if (language := attributes.get("hreflang")) and len(self._alternates) < _MAX_ALTERNATES:
            self._alternates.append((language, href[:MAX_URL_LENGTH]))
        if self.name == "entry" and relation == "alternate":
            self._fields.setdefault("link", href)
        return True


def _fraction(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0.0 <= number <= 1.0 else None
