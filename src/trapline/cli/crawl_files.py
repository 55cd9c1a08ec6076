"""Output files of a crawl: they belong to its job, are checked before it starts, and grow while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from trapline.cli.page_files import check_writable, write_jsonl, write_markdown, write_page
from trapline.cli.web.export import export
from trapline.db.pool import Database
from trapline.pipeline.reports import page_export
from trapline.pipeline.sql.crawl_report import ExportJobPagesRow
from trapline.queue.sql.jobs import JobRow

_KEY = "files"
_NAMES = ("out", "jsonl", "warc")


@dataclass(frozen=True, slots=True)
class CrawlFiles:
    """A folder of markdown, a file of JSON lines, a WARC file; None leaves one out."""

    out: Path | None = None
    jsonl: Path | None = None
    warc: Path | None = None

    @classmethod
    def of_job(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the files that a crawl was started with."""
        stored = metadata.get(_KEY) or {}
        return cls(**{name: Path(path) for name, path in stored.items() if name in _NAMES})

    def metadata(self) -> dict[str, object]:
        """Return what the job keeps of them: absolute paths."""
        paths = {name: str(path.absolute()) for name, path in self._given().items()}
        return {_KEY: paths} if paths else {}

    def or_else(self, stored: "CrawlFiles") -> "CrawlFiles":
        """Return these files, and those of the job for which none is given."""
        return CrawlFiles(**(stored._given() | self._given()))  # noqa: SLF001 (the same class)

    def _given(self) -> dict[str, Path]:
        paths = {name: getattr(self, name) for name in _NAMES}
        return {name: path for name, path in paths.items() if path is not None}

    def __bool__(self) -> bool:
        return bool(self._given())

    def check(self) -> None:
        """Refuse files that cannot be written, before any work is done for them."""
        if self.out is not None:
            check_writable(self.out, folder=True)
        for file in (self.jsonl, self.warc):
            if file is not None:
                check_writable(file)

    def shown(self) -> str:
        return " and ".join(map(str, self._given().values()))


class GrowingFiles:
    """Writes the pages of a crawl as they finish; the WARC file at the end."""

    def __init__(self, database: Database, files: CrawlFiles) -> None:
        self._database = database
        self._files = files
        self._after = 0
        if files.jsonl is not None:
            files.jsonl.write_bytes(b"")

    async def grow(self, job: JobRow) -> None:
        """Write the pages that finished since the last call."""
        if job.zero_data_retention or not (self._files.out or self._files.jsonl):
            return
        while True:
            async with self._database.tenant_tx(job.organisation_id) as conn:
                pages, self._after = await page_export.finished_pages(conn, job.id, self._after)
            if not pages:
                return
            self._write(pages)

    def _write(self, pages: list[ExportJobPagesRow]) -> None:
        if self._files.out is not None:
            for page in pages:
                write_page(page, self._files.out)
        if self._files.jsonl is not None:
            with self._files.jsonl.open("ab") as file:
                file.writelines(msgspec.json.encode(page) + b"\n" for page in pages)

    async def finish(self, job: JobRow) -> None:
        """Write the rest."""
        await self.grow(job)
        if job.zero_data_retention and self._files.out is not None:
            await write_markdown(page_export.pages_of_job(self._database, job), self._files.out)
        if job.zero_data_retention and self._files.jsonl is not None:
            await write_jsonl(page_export.pages_of_job(self._database, job), self._files.jsonl)
        if self._files.warc is not None:
            await export(
                self._database, job.organisation_id, self._files.warc, job_id=job.id, replace=True
            )
