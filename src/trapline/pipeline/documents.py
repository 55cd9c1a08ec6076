"""Documents as their callers want them: from bytes, or from a version that is stored.

A version holds the main content as text and markdown, the links and the metadata. Whatever else is
wanted is read again from its bytes, which give the same each time.
"""

import asyncio
import functools
from typing import Final

import msgspec
import turbohtml

from trapline.db.connection import Connection
from trapline.errors import ExitCode, NotFound
from trapline.extract import extract
from trapline.extract.attributes import AttributeValues, read_attributes
from trapline.extract.charset import decode
from trapline.fetch.sniff import media_type, sniff
from trapline.model import Document, ExtractOptions, Fetched, Format, Link, Metadata, PageType
from trapline.pipeline.options import ScrapeOptions
from trapline.pipeline.sql import known
from trapline.pipeline.sql.known import StoredVersion
from trapline.store.blobs import Blobs

HTML: Final = ("text/html", "application/xhtml+xml")
_UNREAD: Final = "The file was not read, as asked."


def is_html(fetched: Fetched) -> bool:
    return fetched.media_type in HTML


@functools.cache
def load_reader() -> None:
    """Load what reads pages, once: the first page takes as long as thirty others."""
    extract(b"<p>", HTML[0], "http://localhost/")


async def read(fetched: Fetched, options: ExtractOptions) -> Document:
    """Extract HTML here and now; other files go through a library that may take its time."""
    if is_html(fetched):
        return read_page(fetched, options)
    return await asyncio.to_thread(read_page, fetched, options)


def read_page(fetched: Fetched, options: ExtractOptions) -> Document:
    """Extract here and now."""
    content_type = fetched.content_type or fetched.media_type
    return extract(fetched.body, content_type, fetched.url, options)


async def wanted(fetched: Fetched, options: ScrapeOptions) -> Document:
    """Make of bytes what a caller wants."""
    if not options.read_files and not is_html(fetched):
        content_type = fetched.content_type or fetched.media_type
        return Document(fetched.url, content_type, PageType.DOCUMENT, warning=_UNREAD)
    return await read(fetched, options.extraction)


def attributes(
    body: bytes, content_type: str | None, options: ScrapeOptions
) -> tuple[AttributeValues, ...]:
    """Read the attributes that a caller asks for."""
    if not options.attributes:
        return ()
    tree = turbohtml.parse(decode(body, content_type).text)
    return read_attributes(tree, [(a.selector, a.attribute) for a in options.attributes])


def as_stored(version: StoredVersion, formats: frozenset[Format]) -> Document:
    """Return what a version itself holds."""
    return Document(
        url=version.url,
        content_type=version.content_type,
        page_type=PageType(version.page_type or PageType.ARTICLE),
        text=version.text,
        markdown=version.markdown if Format.MARKDOWN in formats else "",
        metadata=msgspec.convert(version.metadata, Metadata),
        links=tuple(Link(url) for url in version.links) if Format.LINKS in formats else (),
        language=version.language,
        warning=version.warning,
    )


async def of_version(
    conn: Connection, blobs: Blobs, version_id: int, options: ScrapeOptions
) -> Document:
    """Return a stored version as a caller wants it; NotFound when its bytes are needed and gone."""
    version = await known.version_by_id(conn, version_id=version_id)
    if version is None:
        raise NotFound(f"There is no version {version_id}.")
    if options.as_stored:
        return as_stored(version, options.formats)
    body = await bytes_of(conn, blobs, version)
    return await wanted(refetched(version, body), options)


async def bytes_of(conn: Connection, blobs: Blobs, version: StoredVersion) -> bytes:
    """Return the bytes that a version was made of."""
    if version.sha256 is None:
        raise NotFound("The bytes of that version are not kept.")
    return await blobs.get(conn, version.sha256)


def refetched(version: StoredVersion, body: bytes) -> Fetched:
    """Return the bytes of a version as if they had just come."""
    return as_fetched(version.url, version.status, version.content_type, body)


def as_fetched(url: str, status: int | None, content_type: str | None, body: bytes) -> Fetched:
    """Return stored bytes as if they had just come."""
    return Fetched(
        exit_code=ExitCode.CONTENT,
        message="",
        url=url,
        status=status,
        body=body,
        content_type=content_type,
        media_type=media_type(content_type, sniff(body)),
    )
