"""Pages as files on disk: markdown with front matter, or one file of all; `-` is standard output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trapline.errors import InvalidInput
from trapline.pipeline.reports import page_export
from trapline.pipeline.reports.page_export import ExportedPage, PageFormat, Pages

STANDARD_OUTPUT = Path("-")


def check_writable(path: Path, *, folder: bool = False) -> None:
    """Refuse a file or folder that cannot be written, with the reason."""
    try:
        if folder:
            path.mkdir(parents=True, exist_ok=True)
        elif path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        elif not path.parent.is_dir():
            raise FileNotFoundError(0, f"there is no folder {path.parent}")
        target = path if folder or path.exists() else path.parent
        if not os.access(target, os.W_OK):
            raise PermissionError(0, f"{target} is not writable")
    except OSError as error:
        raise InvalidInput(f"Cannot write {path}: {error.strerror}.") from error


def write_page(page: ExportedPage, directory: Path) -> None:
    """Write one page as markdown, below a folder for its host."""
    path = directory / page_export.file_name(page.url)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_export.markdown_of(page), encoding="utf-8")


async def write_markdown(pages: Pages, directory: Path) -> int:
    """Write each page to a file of its own, below a folder for its host."""
    count = 0
    async for page in pages:
        write_page(page, directory)
        count += 1
    return count


async def write_jsonl(pages: Pages, file: Path) -> None:
    await write_file(pages, "jsonl", file)


async def write_file(pages: Pages, format_: PageFormat, file: Path) -> int:
    """Write all pages to one file; return how many."""
    count = 0

    async def counted() -> Pages:
        nonlocal count
        async for page in pages:
            count += 1
            yield page

    with open_output(file) as out:
        async for data in page_export.encode(counted(), format_):
            out.write(data)
    return count


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open standard output for `-`, else a temporary file that is renamed once it is complete."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
