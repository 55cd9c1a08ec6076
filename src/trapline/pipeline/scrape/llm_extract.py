"""Extraction by a language model: scrapes some pages and makes one answer of all of them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from trapline.db.connection import Connection
from trapline.errors import TraplineError, VisitFailed
from trapline.model import JobId, OrganisationId
from trapline.pipeline.caller import Caller
from trapline.pipeline.kinds import EXTRACT
from trapline.pipeline.llm import LanguageModel, ModelFailed
from trapline.pipeline.options import LlmRequest, PageOptions, ScrapeOptions
from trapline.pipeline.scrape.scraper import Scraper
from trapline.queue import jobs, tasks
from trapline.queue.finish import NewEvent, TaskResult
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Handler, Kind, Kinds
from trapline.queue.retry_policy import RetryPolicy
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import NewTask, Task

_TIMEOUT: Final = timedelta(minutes=15)


class ExtractTask(msgspec.Struct, frozen=True):
    """Canonical URLs, and the request about all of their pages; stored as `wish`."""

    urls: list[str]
    request: LlmRequest = msgspec.field(name="wish")
    scrape: ScrapeOptions


class ExtractResult(msgspec.Struct, frozen=True):
    """The result of an extraction. `sources` are the pages that were read."""

    data: Any = None
    sources: dict[str, list[str]] = {}
    tokens: int = 0
    error: str | None = None


def extract_kind(handler: Handler | None = None) -> Kind:
    """Return the kind; it is retried once, because every attempt costs tokens."""
    return Kind(EXTRACT, ExtractTask, handler, RetryPolicy(max_attempts=2), timeout=_TIMEOUT)


async def submit(  # noqa: PLR0913 (the caller, the pages, the request)
    conn: Connection,
    organisation_id: OrganisationId,
    urls: Sequence[str],
    request: LlmRequest,
    scrape: ScrapeOptions,
    *,
    metadata: Mapping[str, Any],
) -> JobId:
    """Start an extraction."""
    task = ExtractTask(list(urls), request, scrape)
    job = NewJob(EXTRACT, organisation_id, metadata=metadata)
    now = datetime.now(UTC)
    await jobs.submit(conn, Kinds([extract_kind()]), job, [NewTask(EXTRACT, task)], now=now)
    return job.id


async def result(conn: Connection, job: JobRow) -> ExtractResult | None:
    """Return the result of an extraction; None while it runs."""
    for row in await tasks.list_of_job(conn, job.id, most=1):
        task = await tasks.get(conn, row.id)
        if task.result is not None:
            return msgspec.convert(task.result, ExtractResult)
        return None if task.error is None else ExtractResult(error=task.error)
    return None


@dataclass(slots=True)
class LlmExtract:
    """The handler of extractions."""

    model: LanguageModel
    scraper: Scraper

    async def extract(self, task: Task) -> TaskResult:
        """Scrape all pages, then send them to the model together."""
        payload: ExtractTask = task.payload
        pages = await asyncio.gather(*(self._scrape(task, url) for url in payload.urls))
        read = {
            url: text for url, text in zip(payload.urls, pages, strict=True) if text is not None
        }
        if not read:
            raise ModelFailed("None of the pages could be read.")
        text = "\n\n".join(f"# {url}\n\n{page}" for url, page in read.items())
        data, usage = await self.model.ask(payload.request, self.model.truncate(text)[0])
        result = ExtractResult(data, {"pages": list(read)}, usage.total)
        event = NewEvent("data", {"tokens": usage.total})
        return TaskResult(result, events=[event])

    async def _scrape(self, task: Task, url: str) -> str | None:
        """Return the markdown of a page; None if it cannot be fetched."""
        payload: ExtractTask = task.payload
        try:
            options = PageOptions.parse(url=url, scrape=msgspec.to_builtins(payload.scrape))
            scraped = await self.scraper.scrape(Caller(task.organisation_id), options)
        except (TraplineError, VisitFailed):
            return None
        return scraped.document.markdown if scraped.document is not None else None
