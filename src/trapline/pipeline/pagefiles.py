"""The pages of a job or a site as files: JSON lines, CSV, or a zip of markdown; streamed, a few pages
at a time, and fewer where they are large.
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
from trapline.pipeline.sql import report as queries
from trapline.pipeline.sql.report import PagesOfRow, PagesOfSiteRow
from trapline.queue.sql.jobs import JobRow
from trapline.store import fleeting

PageFormat = Literal["jsonl", "csv", "markdown"]
Exported = PagesOfRow | PagesOfSiteRow
Pages = AsyncIterator[Exported]

MEDIA_TYPES: Final[Mapping[PageFormat, str]] = MappingProxyType(
    {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8", "markdown": "application/zip"}
)
SUFFIXES: Final[Mapping[PageFormat, str]] = MappingProxyType(
    {"jsonl": ".jsonl", "csv": ".csv", "markdown": ".zip"}
)
# A page as a site has it, not as a job saw it, has no `change`.
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
# A cell that begins like this is a formula to a spreadsheet, whoever wrote the page.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_PART: Final = 80
_PAGE: Final = 100
_FEW: Final = 20
# Of stored, compressed text: what is in memory at once is a few times as much.
_BYTES: Final = 2 * 1024 * 1024


async def pages(database: Database, job: JobRow) -> Pages:
    """Give the pages of a job, of what is left of them where they leave no trace."""
    after = TaskId(0)
    while True:
        async with database.tenant_tx(job.organisation_id) as conn:
            rows = await (_fleeting if job.zero_data_retention else _of_job)(conn, job.id, after)
        for row in rows:
            yield row
        if not rows:
            return
        after = rows[-1].task_id


async def _of_job(conn: Connection, job_id: JobId, after: TaskId) -> list[PagesOfRow]:
    return await queries.pages_of(conn, job_id=job_id, after=after, most=_PAGE, bytes=_BYTES)


async def _fleeting(conn: Connection, job_id: JobId, after: TaskId) -> list[PagesOfRow]:
    return [
        PagesOfRow(
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
        for kept in await fleeting.of_job(conn, job_id, after=after, most=_FEW)
    ]


async def pages_of_site(
    database: Database, organisation_id: OrganisationId, site_id: SiteId
) -> Pages:
    """Give the pages that a site has, each as it was last seen."""
    after = 0
    while True:
        async with database.tenant_tx(organisation_id) as conn:
            rows = await queries.pages_of_site(
                conn, site_id=site_id, after=after, most=_PAGE, bytes=_BYTES
            )
        for row in rows:
            yield row
        if not rows:
            return
        after = rows[-1].url_id


def write(pages: Pages, format_: PageFormat) -> AsyncIterator[bytes]:
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
        yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return data


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


async def _markdown(pages: Pages) -> AsyncIterator[bytes]:
    parts = _Parts()
    with zipfile.ZipFile(parts, "w", zipfile.ZIP_DEFLATED) as archive:
        async for page in pages:
            archive.writestr(str(file_name(page.url)), markdown_of(page))
            yield parts.taken()
    yield parts.taken()


class _Parts(io.RawIOBase):
    """A file that cannot go back: what was written is handed on and forgotten."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        self._held.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        return data


def file_name(url: str) -> Path:
    """Return a safe, stable path for a URL; what does not fit is told apart by a hash."""
    _, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    parts = [_UNSAFE.sub("-", part)[:_LONGEST_PART].strip(".-") for part in path.split("/")]
    kept = [part for part in parts if part] or ["index"]
    digest = hashlib.sha256(url.encode()).hexdigest()[:8]
    return Path(_UNSAFE.sub("-", host), *kept[:-1], f"{kept[-1]}-{digest}.md")


def markdown_of(page: Exported) -> str:
    """Return a page as markdown with front matter."""
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
