"""A Firecrawl elsewhere, asked over HTTP: for a crawl, and to end one that nobody wants any more."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from trapline.db.connection import Connection
from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.headers import retry_after
from trapline.model import JobId, OrganisationId
from trapline.pipeline.kinds import CALL_OFF, INGEST, CallOffTask, ingest_kinds
from trapline.queue import jobs
from trapline.queue.finishing import Finished
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.retries import RetryLater, Skip
from trapline.queue.tasks import NewTask, Task
from trapline.settings import Settings

_SECONDS: Final = 30.0
_LARGEST: Final = 2**20
_SHOWN: Final = 300
_OK: Final = 200
_BUSY: Final = 429
_THEIRS: Final = 500
_LONGEST_WAIT: Final = 600.0
# It is not there, or has ended already: what was wanted is so.
_OVER: Final = frozenset({404, 409})


@dataclass(frozen=True, slots=True)
class Answer:
    """What it said."""

    status: int
    body: bytes
    wait: float | None

    @property
    def shown(self) -> str:
        return self.body[:_SHOWN].decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        return self.status == _OK


@dataclass(slots=True)
class Elsewhere:
    """The client."""

    settings: Settings

    async def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask once. RetryLater if it is away, busy or broken."""
        sent = dict(headers or {})
        if self.settings.firecrawl_key is not None:
            sent["Authorization"] = f"Bearer {self.settings.firecrawl_key.get_secret_value()}"
        url = f"{(self.settings.firecrawl_url or '').rstrip('/')}{path}"
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as session,
                session.request(
                    method, url, json=body, headers=sent, allow_redirects=False
                ) as answer,
            ):
                said = await answer.content.read(_LARGEST)
                wait = retry_after(answer.headers.get("Retry-After"), datetime.now(UTC))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise RetryLater(f"Firecrawl cannot be asked: {why}") from None
        found = Answer(answer.status, said, wait)
        if found.status == _BUSY or found.status >= _THEIRS:
            pause = None if wait is None else min(wait, _LONGEST_WAIT)
            raise RetryLater(f"Firecrawl answered {found.status}: {found.shown}", retry_after=pause)
        return found

    async def call_off(self, task: Task) -> Finished:
        """End a crawl there, whose job here was cancelled."""
        payload: CallOffTask = task.payload
        if self.settings.firecrawl_url is None:
            raise Skip("FIRECRAWL_API_URL is not set any more.")
        answer = await self.ask("DELETE", f"/v2/crawl/{quote(payload.crawl, safe='')}")
        if not answer.ok and answer.status not in _OVER:
            why = f"Firecrawl answered {answer.status}: {answer.shown}"
            raise VisitFailed(ExitCode.EXTRACTION_FAILED, why)
        return Finished({"crawl": payload.crawl, "was_running": answer.ok})


async def call_off(
    conn: Connection, organisation_id: OrganisationId, cancelled: JobId, crawl: str
) -> JobId:
    """Queue the request that ends a crawl. In a job of its own: the one that asked for it is over."""
    told = {"crawl": crawl, "cancelled_job_id": str(cancelled)}
    job = NewJob(INGEST, organisation_id, metadata=told)
    tasks = [NewTask(CALL_OFF, CallOffTask(crawl), counted=False)]
    await jobs.submit(conn, Kinds(ingest_kinds()), job, tasks, now=datetime.now(UTC))
    return job.id
