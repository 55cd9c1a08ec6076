"""Export of the pages of a job or a site as JSON lines, CSV or a zip of Markdown.

The file is streamed: a batch is bounded by rows and by bytes.
"""

import csv
import hashlib
import io
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId, SiteId, TaskId
from trapline.pipeline.sql import crawl_report as queries
from trapline.pipeline.sql.crawl_report import ExportJobPagesRow, ExportSitePagesRow
from trapline.queue.sql.jobs import JobRow
from trapline.store import zero_retention

PageFormat = Literal["jsonl", "csv", "markdown"]
ExportedPage = ExportJobPagesRow | ExportSitePagesRow
Pages = AsyncIterator[ExportedPage]

MEDIA_TYPES: Final[Mapping[PageFormat, str]] = MappingProxyType(
    {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8", "markdown": "application/zip"}
)
SUFFIXES: Final[Mapping[PageFormat, str]] = MappingProxyType(
    {"jsonl": ".jsonl", "csv": ".csv", "markdown": ".zip"}
)
# The pages of a site have no `change`, the pages of a job have.
_COLUMNS: Final = (
    "url",
    "status",
    "title",
    "language",
    "page_type",
    "fetched_at",
    "change",
    "text",
)
# A spreadsheet takes a cell that begins like this for a formula: CSV injection.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_PART: Final = 80
_ROWS_AT_ONCE: Final = 100
_ZERO_RETENTION_ROWS: Final = 20
_FINISHED_AT_ONCE: Final = 50
# Of compressed text: a batch takes a few times as much memory.
_BYTES_AT_ONCE: Final = 2 * 1024 * 1024


async def pages_of_job(database: Database, job: JobRow) -> Pages:
    """Yield the pages of a job; of a zero-retention job, those that are still kept."""
    after = TaskId(0)
    while True:
        async with database.tenant_tx(job.organisation_id) as conn:
            rows = await (_zero_retention if job.zero_data_retention else _of_job)(
                conn, job.id, after
            )
        for row in rows:
            yield row
        if not rows:
            return
        after = rows[-1].task_id


async def finished_pages(
    conn: Connection, job_id: JobId, after: int
) -> tuple[list[ExportJobPagesRow], int]:
    """Return a batch of pages that finished after an event, and the number of the last one's event."""
    rows = await queries.export_finished_pages(
        conn, job_id=job_id, after=after, most=_FINISHED_AT_ONCE
    )
    names = ExportJobPagesRow.__struct_fields__
    pages = [ExportJobPagesRow(*(getattr(row, name) for name in names)) for row in rows]
    return pages, rows[-1].number if rows else after


async def _of_job(conn: Connection, job_id: JobId, after: TaskId) -> list[ExportJobPagesRow]:
    return await queries.export_job_pages(
        conn, job_id=job_id, after=after, most=_ROWS_AT_ONCE, bytes=_BYTES_AT_ONCE
    )


async def _zero_retention(
    conn: Connection, job_id: JobId, after: TaskId
) -> list[ExportJobPagesRow]:
    return [
        ExportJobPagesRow(
            task_id=kept.task_id,
            url=kept.url,
            change=None,
            status=kept.status,
            title=kept.title,
            language=kept.language,
            page_type=kept.page_type,
            fetched_at=kept.stored_at,
            markdown=kept.markdown,
            text=kept.text,
            metadata=kept.metadata,
            links=kept.links,
        )
        for kept in await zero_retention.of_job(
            conn, job_id, after=after, most=_ZERO_RETENTION_ROWS
        )
    ]


async def pages_of_site(
    database: Database, organisation_id: OrganisationId, site_id: SiteId
) -> Pages:
    """Yield the current pages of a site, each with its latest version."""
    after = 0
    while True:
        async with database.tenant_tx(organisation_id) as conn:
            rows = await queries.export_site_pages(
                conn, site_id=site_id, after=after, most=_ROWS_AT_ONCE, bytes=_BYTES_AT_ONCE
            )
        for row in rows:
            yield row
        if not rows:
            return
        after = rows[-1].url_id


def encode(pages: Pages, format_: PageFormat) -> AsyncIterator[bytes]:
    """Return the file's bytes, in parts."""
    writers: dict[PageFormat, Callable[[Pages], AsyncIterator[bytes]]] = {
        "jsonl": _jsonl,
        "csv": _csv,
        "markdown": _markdown,
    }
    return writers[format_](pages)


async def _jsonl(pages: Pages) -> AsyncIterator[bytes]:
    async for page in pages:
        yield msgspec.json.encode(page) + b"\n"


async def _csv(pages: Pages) -> AsyncIterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(_COLUMNS)
    async for page in pages:
        writer.writerow([_cell(getattr(page, column, None)) for column in _COLUMNS])
        yield _drain(buffer)
    yield _drain(buffer)


def _drain(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return data


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


async def _markdown(pages: Pages) -> AsyncIterator[bytes]:
    parts = _StreamedFile()
    with zipfile.ZipFile(parts, "w", zipfile.ZIP_DEFLATED) as archive:
        async for page in pages:
            archive.writestr(str(file_name(page.url)), markdown_of(page))
            yield parts.drain()
    yield parts.drain()


class _StreamedFile(io.RawIOBase):
    """An unseekable file whose written bytes are drained between writes."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        self._chunks.append(bytes(data))
        return len(data)

    def drain(self) -> bytes:
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data


def file_name(url: str) -> Path:
    """Return the path of a page's file: that of its URL, `index` for a folder, and `.md`.

    A hash keeps files apart whose URLs have a query, or parts that no file name may have.
    """
    _, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    parts = path.split("/")
    safe = [_UNSAFE.sub("-", part)[:_LONGEST_PART].strip(".-") for part in parts]
    if safe == parts and parts[-1] != "index" and all(parts[:-1]):
        name = parts[-1] or "index"
    else:
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        name = f"{safe[-1] or 'index'}-{digest}"
    return Path(_UNSAFE.sub("-", host), *filter(None, safe[:-1]), f"{name}.md")


def markdown_of(page: ExportedPage) -> str:
    """Return a page as Markdown with front matter."""
    fields = {
        "url": page.url,
        "title": page.title,
        "language": page.language,
        "fetched": page.fetched_at.isoformat(),
        "status": page.status,
        "type": page.page_type,
    }
    # A JSON string is a YAML string too.
    lines = [f"{name}: {msgspec.json.encode(value).decode()}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---", "", page.markdown, ""])
