"""Reading a file that someone sends: as a page would be, without a visit and without a trace."""

from urllib.parse import quote

from trapline.errors import ExitCode
from trapline.fetch.sniff import media_type, sniff
from trapline.model import Document, Fetched
from trapline.pipeline import documents
from trapline.pipeline.options import ScrapeOptions


async def read_upload(
    body: bytes, content_type: str | None, name: str, options: ScrapeOptions
) -> Document:
    """Make of a file what its sender wants; VisitFailed when it cannot be read."""
    kind = media_type(content_type, sniff(body))
    sent = Fetched(
        exit_code=ExitCode.CONTENT,
        message="",
        # Links of the file have no place to start from but its own name.
        url=f"file:///{quote(name.rpartition('/')[2])}",
        status=200,
        body=body,
        content_type=content_type,
        media_type=kind,
    )
    return await documents.wanted(sent, options)
