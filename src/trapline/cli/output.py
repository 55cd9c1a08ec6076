"""Pages as files on disk: markdown with front matter, or JSON lines."""

from pathlib import Path

from trapline.pipeline import pagefiles
from trapline.pipeline.pagefiles import PageFormat, Pages


async def write_markdown(pages: Pages, directory: Path) -> int:
    """Write each page to a file of its own, below a folder for its host."""
    count = 0
    async for page in pages:
        path = directory / pagefiles.file_name(page.url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pagefiles.markdown_of(page), encoding="utf-8")
        count += 1
    return count


async def write_jsonl(pages: Pages, file: Path) -> None:
    await write_file(pages, "jsonl", file)


async def write_file(pages: Pages, format_: PageFormat, file: Path) -> int:
    """Write all pages to one file, which has its name only once it is whole; return how many."""
    part, count = file.with_name(f"{file.name}.part"), 0

    async def counted() -> Pages:
        nonlocal count
        async for page in pages:
            count += 1
            yield page

    try:
        with part.open("wb") as out:
            async for data in pagefiles.write(counted(), format_):
                out.write(data)
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)
    return count
