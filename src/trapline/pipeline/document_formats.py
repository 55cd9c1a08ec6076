"""Documents in the formats that a caller requests, from fetched bytes or from a stored version.

A version holds the main content as text and markdown, the links and the metadata. All other formats
are extracted again from its stored bytes; extraction is deterministic.
"""

import asyncio
import functools
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from time import thread_time
from typing import Final

import msgspec
import turbohtml

from trapline.db.connection import Connection
from trapline.errors import ExitCode, NotFound
from trapline.extract import extract
from trapline.extract.cost import (
    SELECTED_BYTES,
    SMALL_BYTES,
    Place,
    SiteCosts,
    is_costly,
    place_for,
)
from trapline.extract.files.sandbox.pool import attributes_in_sandbox, extract_in_sandbox
from trapline.extract.html.attributes import AttributeValues, read_attributes
from trapline.extract.html.charset import decode
from trapline.fetch.sniff import media_type, sniff
from trapline.model import Document, ExtractOptions, Fetched, Format, Link, Metadata, PageType
from trapline.pipeline.options import ScrapeOptions
from trapline.pipeline.sql import page_lookup
from trapline.pipeline.sql.page_lookup import StoredVersion
from trapline.store.blobs import BlobStore

HTML: Final = ("text/html", "application/xhtml+xml")
_THREADS: Final = 8
_site_costs: Final = SiteCosts()
_NOT_PARSED: Final = "The file was not parsed: its markdown is its bytes in base64."


def is_html(fetched: Fetched) -> bool:
    return fetched.media_type in HTML


@functools.cache
def load_extractor() -> None:
    """Warm up the extractor, once: the first page takes as long as thirty others."""
    extract(b"<p>", HTML[0], "http://localhost/")


def place_of(fetched: Fetched, options: ExtractOptions) -> Place:
    """Where a response is extracted: cheap pages on the event loop, all else beside it."""
    if not is_html(fetched):
        return Place.THREAD
    body = fetched.body
    if len(body) <= SMALL_BYTES and not options.include_tags and not options.exclude_tags:
        return Place.LOOP
    return place_for(body, options, cheap_site=_site_costs.are_cheap(_site(fetched.url)))


async def extract_document(fetched: Fetched, options: ExtractOptions) -> Document:
    """Extract a response without holding the event loop for long."""
    place = place_of(fetched, options)
    if place is Place.LOOP:
        return extract_inline(fetched, options)
    loop = asyncio.get_running_loop()
    extract_there = _extract_in_sandbox if place is Place.SANDBOX else extract_inline
    return await loop.run_in_executor(_threads(), extract_there, fetched, options)


def extract_inline(fetched: Fetched, options: ExtractOptions) -> Document:
    """Extract on the calling thread."""
    content_type = fetched.content_type or fetched.media_type
    started = thread_time()
    document = extract(fetched.body, content_type, fetched.url, options)
    if is_html(fetched):
        _site_costs.record(_site(fetched.url), fetched.body, thread_time() - started)
    return document


def _extract_in_sandbox(fetched: Fetched, options: ExtractOptions) -> Document:
    content_type = fetched.content_type or fetched.media_type
    return extract_in_sandbox(fetched.body, content_type, fetched.url, options)


def _site(url: str) -> str:
    return url[: url.find("/", len("https://"))]


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Threads of their own: pages that wait for the sandbox must not delay other work in threads."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="extract")


async def requested_document(fetched: Fetched, options: ScrapeOptions) -> Document:
    """Extract the formats that a caller requests."""
    if not options.read_files and not is_html(fetched):
        content_type = fetched.content_type or fetched.media_type
        encoded = b64encode(fetched.body).decode() if Format.MARKDOWN in options.formats else ""
        return Document(
            fetched.url,
            content_type,
            PageType.DOCUMENT,
            markdown=encoded,
            warning=_NOT_PARSED,
        )
    return await extract_document(fetched, options.extraction)


async def attributes(
    body: bytes, content_type: str | None, options: ScrapeOptions
) -> tuple[AttributeValues, ...]:
    """Read the attributes that a caller requests."""
    if not options.attributes:
        return ()
    pairs = tuple((a.selector, a.attribute) for a in options.attributes)
    costly = is_costly(selector for selector, _ in pairs)
    if len(body) <= (SELECTED_BYTES if costly else SMALL_BYTES):
        return _attributes(body, content_type, pairs)
    read = attributes_in_sandbox if costly else _attributes
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads(), read, body, content_type, pairs)


def _attributes(
    body: bytes, content_type: str | None, pairs: tuple[tuple[str, str], ...]
) -> tuple[AttributeValues, ...]:
    return read_attributes(turbohtml.parse(decode(body, content_type).text), pairs)


def stored_document(version: StoredVersion, formats: frozenset[Format]) -> Document:
    """Return a version as it is stored, without its bytes."""
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


async def document_of_version(
    conn: Connection, blobs: BlobStore, version_id: int, options: ScrapeOptions
) -> Document:
    """Return a version in the requested formats; NotFound when that needs bytes that are gone."""
    version = await page_lookup.version_by_id(conn, version_id=version_id)
    if version is None:
        raise NotFound(f"There is no version {version_id}.")
    if options.as_stored:
        return stored_document(version, options.formats)
    body = await version_body(conn, blobs, version)
    return await requested_document(version_as_fetched(version, body), options)


async def version_body(conn: Connection, blobs: BlobStore, version: StoredVersion) -> bytes:
    """Return the bytes that a version was extracted from."""
    if version.sha256 is None:
        raise NotFound("The bytes of that version are no longer stored.")
    return await blobs.get(conn, version.sha256)


def version_as_fetched(version: StoredVersion, body: bytes) -> Fetched:
    """Return a version's bytes in the form of a fresh fetch."""
    return as_fetched(version.url, version.status, version.content_type, body)


def as_fetched(url: str, status: int | None, content_type: str | None, body: bytes) -> Fetched:
    """Return stored bytes in the form of a fresh fetch."""
    return Fetched(
        exit_code=ExitCode.CONTENT,
        message="",
        url=url,
        status=status,
        body=body,
        content_type=content_type,
        media_type=media_type(content_type, sniff(body)),
    )
