"""Compound files of the nineties (DOC, XLS, PPT, MSG), which only a native library reads."""

import kreuzberg

from trapline.extract.files.blocks import Block, BlockKind
from trapline.extract.files.reader_result import (
    FileContent,
    Limits,
    UnreadableFile,
    UnsupportedFile,
)

# The streams that tell the formats apart; a compound file keeps their names in UTF-16.
_STREAMS = (
    ("EncryptedPackage", ""),
    ("WordDocument", "application/msword"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("Workbook", "application/vnd.ms-excel"),
    ("Book", "application/vnd.ms-excel"),
    ("__substg1.0_", "application/vnd.ms-outlook"),
)


def read_legacy(body: bytes, limits: Limits) -> FileContent:
    found = next((kind for name, kind in _STREAMS if name.encode("utf-16-le") in body), None)
    if found is None:
        raise UnsupportedFile("a compound file of no known format")
    if not found:
        raise UnreadableFile("the file is encrypted")
    config = kreuzberg.ExtractionConfig(output_format="markdown", use_cache=False)
    try:
        result = kreuzberg.extract_bytes_sync(body, found, config=config)
    except (kreuzberg.KreuzbergError, RuntimeError, ValueError) as error:
        raise UnreadableFile(str(error)[:200]) from error
    content = result.content[: limits.characters].strip()
    title = result.metadata.get("title")
    properties = {"title": title} if isinstance(title, str) else {}
    return FileContent([Block(BlockKind.MARKDOWN, content, content)], properties)
