"""HTTP client of a remote Firecrawl, and the cancellation of its crawls."""

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
from trapline.pipeline.kinds import CANCEL_REMOTE_CRAWL, INGEST, CancelRemoteCrawl, ingest_kinds
from trapline.queue import jobs
from trapline.queue.finish import TaskResult
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.retry_policy import RetryLater, Skip
from trapline.queue.tasks import NewTask, Task
from trapline.settings import RemoteFirecrawlSettings

_TIMEOUT: Final = 30.0
_MAX_BYTES: Final = 2**20
_EXCERPT: Final = 300
_OK: Final = 200
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500
_MAX_PAUSE: Final = 600.0
# The crawl does not exist, or has ended already.
_ENDED: Final = frozenset({404, 409})


@dataclass(frozen=True, slots=True)
class Response:
    """The status and the first bytes of the body."""

    status: int
    body: bytes

    @property
    def excerpt(self) -> str:
        return self.body[:_EXCERPT].decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        return self.status == _OK


@dataclass(slots=True)
class RemoteFirecrawl:
    """The client, and the task handler that cancels a crawl."""

    settings: RemoteFirecrawlSettings

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request; RetryLater if Firecrawl is unreachable, busy or broken."""
        request_headers = dict(headers or {})
        if self.settings.key is not None:
            request_headers["Authorization"] = f"Bearer {self.settings.key.get_secret_value()}"
        url = f"{(self.settings.url or '').rstrip('/')}{path}"
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as session,
                session.request(
                    method, url, json=body, headers=request_headers, allow_redirects=False
                ) as received,
            ):
                content = await received.content.read(_MAX_BYTES)
                pause = retry_after(received.headers.get("Retry-After"), datetime.now(UTC))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise RetryLater(f"Firecrawl cannot be reached: {why}") from None
        response = Response(received.status, content)
        if response.status == _TOO_MANY_REQUESTS or response.status >= _SERVER_ERROR:
            raise RetryLater(
                f"Firecrawl answered {response.status}: {response.excerpt}",
                retry_after=None if pause is None else min(pause, _MAX_PAUSE),
            )
        return response

    async def cancel(self, task: Task) -> TaskResult:
        """Cancel a remote crawl after its job here was cancelled."""
        payload: CancelRemoteCrawl = task.payload
        if self.settings.url is None:
            raise Skip("FIRECRAWL_API_URL is not set any more.")
        response = await self.request("DELETE", f"/v2/crawl/{quote(payload.crawl, safe='')}")
        if not response.ok and response.status not in _ENDED:
            why = f"Firecrawl answered {response.status}: {response.excerpt}"
            raise VisitFailed(ExitCode.EXTRACTION_FAILED, why)
        return TaskResult({"crawl": payload.crawl, "was_running": response.ok})


async def queue_cancellation(
    conn: Connection, organisation_id: OrganisationId, cancelled: JobId, crawl: str
) -> JobId:
    """Queue the cancellation of a remote crawl, in a job of its own: the crawl's job has ended."""
    metadata = {"crawl": crawl, "cancelled_job_id": str(cancelled)}
    job = NewJob(INGEST, organisation_id, metadata=metadata)
    tasks = [NewTask(CANCEL_REMOTE_CRAWL, CancelRemoteCrawl(crawl), counted=False)]
    await jobs.submit(conn, Kinds(ingest_kinds()), job, tasks, now=datetime.now(UTC))
    return job.id
