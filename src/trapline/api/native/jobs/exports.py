"""Exports of a job or a site, streamed."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal

from fastapi.responses import StreamingResponse

from trapline.db.pool import Database
from trapline.model import JobId, OrganisationId, SiteId
from trapline.pipeline.reports import page_export
from trapline.pipeline.reports.page_export import PageFormat, Pages
from trapline.pipeline.reports.warc_export import write_warc
from trapline.store.blobs import BlobStore

ExportFormat = Literal[PageFormat, "warc"]
_PART: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Chosen:
    """Whose visits, and of what: a job or a site."""

    organisation_id: OrganisationId
    job_id: JobId | None = None
    site_id: SiteId | None = None


def download(
    database: Database, chosen: Chosen, pages: Pages, format_: ExportFormat, *, name: str
) -> StreamingResponse:
    """Answer with a file: the pages, or the visits that they came from."""
    if format_ == "warc":
        body, media_type, suffix = _warc(database, chosen), "application/warc", ".warc.gz"
    else:
        body = page_export.encode(pages, format_)
        media_type, suffix = page_export.MEDIA_TYPES[format_], page_export.SUFFIXES[format_]
    return StreamingResponse(
        body,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{name}{suffix}"'},
    )


async def _warc(database: Database, chosen: Chosen) -> AsyncIterator[bytes]:
    """Give a WARC file, which is written to disk first: its writer wants a file."""
    with tempfile.TemporaryFile() as file:
        await write_warc(
            database,
            BlobStore.of(database.settings.blobs),
            chosen.organisation_id,
            file,
            job_id=chosen.job_id,
            site_id=chosen.site_id,
        )
        file.seek(0)
        while part := await asyncio.to_thread(file.read, _PART):
            yield part
