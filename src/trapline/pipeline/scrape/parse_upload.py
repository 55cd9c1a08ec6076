"""Parse an uploaded file as a page would be, without a visit; nothing is stored."""

from urllib.parse import quote

from trapline.errors import ExitCode
from trapline.fetch.sniff import media_type, sniff
from trapline.model import Document, Fetched
from trapline.pipeline import document_formats
from trapline.pipeline.options import ScrapeOptions


async def parse_file(
    body: bytes, content_type: str | None, name: str, options: ScrapeOptions
) -> Document:
    """Extract a file in the requested formats; VisitFailed when it cannot be read."""
    upload = Fetched(
        exit_code=ExitCode.CONTENT,
        message="",
        # The base URL for the file's links is its own name.
        url=f"file:///{quote(name.rpartition('/')[2])}",
        status=200,
        body=body,
        content_type=content_type,
        media_type=media_type(content_type, sniff(body)),
    )
    return await document_formats.requested_document(upload, options)
