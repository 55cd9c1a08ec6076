"""Files that are not HTML: PDF, office formats, books, tables, texts, images.

In: a body, its content type and its URL. Out: a Document, or VisitFailed with the reason.
Formats that need a native library or much work are read in a process apart, under hard limits.
"""

from trapline.errors import ExitCode, VisitFailed
from trapline.extract.files.blocks import render_markdown, render_text
from trapline.extract.files.image import read_image
from trapline.extract.files.kinds import Kind, kind_of
from trapline.extract.files.plain import decode_text, read_plain
from trapline.extract.files.reader_result import (
    FileContent,
    FileTooLarge,
    Limits,
    UnreadableFile,
    UnsupportedFile,
)
from trapline.extract.files.sandbox.pool import read_in_sandbox
from trapline.extract.metadata.dates import iso_date
from trapline.extract.metadata.page_metadata import describe_text
from trapline.model import Document, Metadata, PageType

__all__ = ["TEXT_KINDS", "Kind", "Limits", "decode_text", "kind_of", "read_document"]

_DEFAULTS = Limits()
TEXT_KINDS = (Kind.CSV, Kind.TSV, Kind.JSON, Kind.XML, Kind.MARKDOWN, Kind.TEXT)
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
        content = _read(body, kind, content_type, limits)
    except UnreadableFile as error:
        raise VisitFailed(_code(error), str(error)) from error
    text = render_text(content.blocks)
    warning = content.warning or (None if text else "The file has no text.")
    return Document(
        url=url,
        content_type=content_type,
        page_type=PageType.DOCUMENT,
        text=text,
        markdown=render_markdown(content.blocks, page_markers=page_markers),
        metadata=describe_text(_metadata(content), text),
        warning=warning,
    )


def _read(body: bytes, kind: Kind, content_type: str | None, limits: Limits) -> FileContent:
    if kind is Kind.EMPTY:
        return FileContent([], warning="The file is empty.")
    if kind in (Kind.UNKNOWN, Kind.HTML):
        raise UnsupportedFile("its type is not known")
    if kind is Kind.IMAGE:
        return read_image(body, limits)
    if kind in TEXT_KINDS:
        return read_plain(body, kind, content_type, limits)
    return read_in_sandbox(body, kind, limits)


def _code(error: UnreadableFile) -> ExitCode:
    if isinstance(error, FileTooLarge):
        return ExitCode.DECOMPRESSED_TOO_LARGE
    return (
        ExitCode.UNSUPPORTED_TYPE
        if isinstance(error, UnsupportedFile)
        else ExitCode.EXTRACTION_FAILED
    )


def _metadata(content: FileContent) -> Metadata:
    properties = content.properties
    keywords = (
        part.strip() for part in properties.get("keywords", "").replace(";", ",").split(",")
    )
    return Metadata(
        title=properties.get("title"),
        description=properties.get("description"),
        language=properties.get("language"),
        author=properties.get("author"),
        published=iso_date(properties.get("published", "")),
        modified=iso_date(properties.get("modified", "")),
        keywords=tuple(part for part in keywords if part),
        pages=content.pages,
        declared={name: value for name, value in properties.items() if name not in _OWN_FIELDS},
    )
