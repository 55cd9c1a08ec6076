"""Files that are not HTML: PDF, office formats, books, tables, texts, images.

In: a body, its content type and its URL. Out: a Document, or VisitFailed with the reason.
Formats that need a native library or much work are read in a process apart, under hard limits.
"""

from trapline.errors import ExitCode, VisitFailed
from trapline.extract.dates import iso_date
from trapline.extract.documents.blocks import render_markdown, render_text
from trapline.extract.documents.image import read_image
from trapline.extract.documents.kinds import Kind, kind_of
from trapline.extract.documents.plain import read_plain
from trapline.extract.documents.process import read_apart
from trapline.extract.documents.reading import Limits, Reading, TooMuch, Unreadable, Unsupported
from trapline.extract.metadata import describe_text
from trapline.model import Document, Metadata, PageType

__all__ = ["Kind", "Limits", "kind_of", "read_document"]

_DEFAULTS = Limits()
_PLAIN = (Kind.CSV, Kind.TSV, Kind.JSON, Kind.XML, Kind.MARKDOWN, Kind.TEXT)
_OWN_FIELDS = ("title", "author", "description", "language", "keywords", "published", "modified")


def read_document(  # noqa: PLR0913 - what a file is and how it is to be read
    body: bytes,
    content_type: str | None,
    url: str,
    *,
    kind: Kind | None = None,
    limits: Limits = _DEFAULTS,
    page_markers: bool = False,
) -> Document:
    """Make a Document of a file. Raises VisitFailed for one that cannot be read."""
    kind = kind or kind_of(body, content_type, url)
    try:
        reading = _read(body, kind, content_type, limits)
    except Unreadable as error:
        raise VisitFailed(_code(error), str(error)) from error
    text = render_text(reading.blocks)
    warning = reading.warning or (None if text else "The file has no text.")
    return Document(
        url=url,
        content_type=content_type,
        page_type=PageType.DOCUMENT,
        text=text,
        markdown=render_markdown(reading.blocks, page_markers=page_markers),
        metadata=describe_text(_metadata(reading), text),
        warning=warning,
    )


def _read(body: bytes, kind: Kind, content_type: str | None, limits: Limits) -> Reading:
    if kind is Kind.EMPTY:
        return Reading([], warning="The file is empty.")
    if kind in (Kind.UNKNOWN, Kind.HTML):
        raise Unsupported("its type is not known")
    if kind is Kind.IMAGE:
        return read_image(body, limits)
    if kind in _PLAIN:
        return read_plain(body, kind, content_type, limits)
    return read_apart(body, kind, limits)


def _code(error: Unreadable) -> ExitCode:
    if isinstance(error, TooMuch):
        return ExitCode.DECOMPRESSED_TOO_LARGE
    return (
        ExitCode.UNSUPPORTED_TYPE if isinstance(error, Unsupported) else ExitCode.EXTRACTION_FAILED
    )


def _metadata(reading: Reading) -> Metadata:
    facts = reading.facts
    keywords = (part.strip() for part in facts.get("keywords", "").replace(";", ",").split(","))
    return Metadata(
        title=facts.get("title"),
        description=facts.get("description"),
        language=facts.get("language"),
        author=facts.get("author"),
        published=iso_date(facts.get("published", "")),
        modified=iso_date(facts.get("modified", "")),
        keywords=tuple(part for part in keywords if part),
        pages=reading.pages,
        declared={name: value for name, value in facts.items() if name not in _OWN_FIELDS},
    )
