"""Pages as files: markdown with front matter, or JSON lines."""

import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from trapline.pipeline.sql.report import PagesOfRow

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_PART = 80


async def write_markdown(pages: AsyncIterator[PagesOfRow], directory: Path) -> int:
    """Write each page to a file of its own, below a folder for its host."""
    count = 0
    async for page in pages:
        path = directory / file_name(page.url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{_front_matter(page)}\n{page.markdown}\n", encoding="utf-8")
        count += 1
    return count


async def write_jsonl(pages: AsyncIterator[PagesOfRow], file: Path) -> int:
    count = 0
    with file.open("wb") as lines:
        async for page in pages:
            lines.write(msgspec.json.encode(page) + b"\n")
            count += 1
    return count


def file_name(url: str) -> Path:
    """Return a safe, stable path for a URL; what does not fit is told apart by a hash."""
    _, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    parts = [_UNSAFE.sub("-", part)[:_LONGEST_PART].strip(".-") for part in path.split("/")]
    kept = [part for part in parts if part] or ["index"]
    digest = hashlib.sha256(url.encode()).hexdigest()[:8]
    return Path(_UNSAFE.sub("-", host), *kept[:-1], f"{kept[-1]}-{digest}.md")


def _front_matter(page: PagesOfRow) -> str:
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
    return "\n".join(["---", *lines, "---", ""])
