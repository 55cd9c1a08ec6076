"""An extraction: some pages are scraped, and a language model makes one answer of all of them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from trapline.db.connection import Connection
from trapline.errors import TraplineError, VisitFailed
from trapline.model import JobId, OrganisationId
from trapline.pipeline.asking import Asker
from trapline.pipeline.kinds import EXTRACT
from trapline.pipeline.language import LanguageModel, ModelFailed
from trapline.pipeline.options import PageOptions, ScrapeOptions, Wish
from trapline.pipeline.scraping import Scraper
from trapline.queue import jobs, tasks
from trapline.queue.finishing import Finished, NewEvent
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Handler, Kind, Kinds
from trapline.queue.retries import RetryPolicy
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import NewTask, Task

_TIMEOUT: Final = timedelta(minutes=15)


class ExtractTask(msgspec.Struct, frozen=True):
    """Pages to be read, in canonical form, and what to ask about all of them."""

    urls: list[str]
    wish: Wish
    scrape: ScrapeOptions


class Gathered(msgspec.Struct, frozen=True):
    """What an extraction came to. `sources` are the pages that could be read."""

    data: Any = None
    sources: dict[str, list[str]] = {}
    tokens: int = 0
    error: str | None = None


def extract_kind(handler: Handler | None = None) -> Kind:
    """Return the kind; a model that fails is not asked again and again."""
    return Kind(EXTRACT, ExtractTask, handler, RetryPolicy(max_attempts=2), timeout=_TIMEOUT)


async def submit(  # noqa: PLR0913 (who asks, of what, for what)
    conn: Connection,
    organisation_id: OrganisationId,
    urls: Sequence[str],
    wish: Wish,
    scrape: ScrapeOptions,
    *,
    metadata: Mapping[str, Any],
) -> JobId:
    """Start an extraction."""
    task = ExtractTask(list(urls), wish, scrape)
    job = NewJob(EXTRACT, organisation_id, metadata=metadata)
    now = datetime.now(UTC)
    await jobs.submit(conn, Kinds([extract_kind()]), job, [NewTask(EXTRACT, task)], now=now)
    return job.id


async def result(conn: Connection, job: JobRow) -> Gathered | None:
    """Return what an extraction came to; None while it runs."""
    for row in await tasks.list_of_job(conn, job.id, most=1):
        task = await tasks.get(conn, row.id)
        if task.result is not None:
            return msgspec.convert(task.result, Gathered)
        return None if task.error is None else Gathered(error=task.error)
    return None


@dataclass(slots=True)
class Gathering:
    """Runs extractions in a worker. The scraper is set once there is one."""

    model: LanguageModel
    scraper: Scraper | None = None

    async def extract(self, task: Task) -> Finished:
        """Read all pages, then ask about them together."""
        asked: ExtractTask = task.payload
        pages = await asyncio.gather(*(self._page(task, url) for url in asked.urls))
        read = {url: text for url, text in zip(asked.urls, pages, strict=True) if text is not None}
        if not read:
            raise ModelFailed("None of the pages could be read.")
        text = "\n\n".join(f"# {url}\n\n{page}" for url, page in read.items())
        data, usage = await self.model.ask(asked.wish, self.model.bounded(text)[0])
        gathered = Gathered(data, {"pages": list(read)}, usage.total)
        event = NewEvent("data", {"tokens": usage.total})
        return Finished(gathered, events=[event])

    async def _page(self, task: Task, url: str) -> str | None:
        """Return what a page says; None if it cannot be had."""
        if self.scraper is None:
            return None
        asked: ExtractTask = task.payload
        try:
            options = PageOptions.parse(url=url, scrape=msgspec.to_builtins(asked.scrape))
            scraped = await self.scraper.scrape(Asker(task.organisation_id), options)
        except (TraplineError, VisitFailed):
            return None
        return scraped.document.markdown if scraped.document is not None else None
