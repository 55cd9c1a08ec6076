"""Crawls by a remote Firecrawl: a task requests one for a source, and webhooks bring its pages.

The request names our webhook endpoint (`firecrawl_inbox`), and in the metadata of the webhooks the
source and the job. Its idempotency key keeps a retry of the task from starting a second crawl.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import ExitCode, Unavailable, VisitFailed
from trapline.knowledge.sql import firecrawl_inbox as queries
from trapline.knowledge.sql import sources as source_queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import JobId, OrganisationId
from trapline.pipeline.ingest import firecrawl_inbox
from trapline.pipeline.ingest.firecrawl_inbox import JOB_ID_KEY, Message
from trapline.pipeline.ingest.remote_firecrawl import RemoteFirecrawl, Response
from trapline.pipeline.kinds import INGEST, START_REMOTE_CRAWL, StartRemoteCrawl, ingest_kinds
from trapline.queue import jobs
from trapline.queue.finish import NewEvent, TaskResult
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.retry_policy import RetryLater, Skip
from trapline.queue.tasks import NewTask, Task
from trapline.settings import RemoteFirecrawlSettings, Settings

_CONFLICT: Final = 409


def require_settings(settings: RemoteFirecrawlSettings) -> None:
    """Raise Unavailable, before any work is done, if settings are missing; name them."""
    required = {
        "FIRECRAWL_API_URL": settings.url,
        "FIRECRAWL_WEBHOOK_SECRET": settings.webhook_secret,
        "TRAPLINE_PUBLIC_URL": settings.public_url,
    }
    missing = [name for name, value in required.items() if value is None]
    if missing:
        raise Unavailable(f"To have a Firecrawl crawl for you, set {' and '.join(missing)}.")


async def queue_crawl(
    conn: Connection,
    organisation_id: OrganisationId,
    crawl: StartRemoteCrawl,
    job: Mapping[str, Any],
) -> JobId:
    """Queue the task that requests a crawl; its job stays open until the crawl has ended."""
    new = NewJob(INGEST, organisation_id, **job)
    tasks = [NewTask(START_REMOTE_CRAWL, crawl, counted=False)]
    await jobs.submit(conn, Kinds(ingest_kinds()), new, tasks, now=datetime.now(UTC))
    return new.id


@dataclass(slots=True)
class RemoteCrawls:
    """The task handler."""

    database: Database
    settings: Settings
    remote: RemoteFirecrawl

    async def start(self, task: Task) -> TaskResult:
        """Request a crawl, and register that its webhooks belong to the task's job."""
        payload: StartRemoteCrawl = task.payload
        require_settings(self.remote.settings)
        async with self.database.system_tx() as conn:
            source = await source_queries.get_source(conn, source_id=payload.source_id)
            crawl = await queries.intake_of_job(conn, job_id=task.job_id)
        if source is None:
            raise Skip("The source was deleted.")
        if crawl is None:
            crawl_id = await self._post(task, source)
            message = Message(source.organisation_id, idempotency_key(task), "asked", crawl_id)
            message.metadata = webhook_metadata(source, task.job_id)
            async with self.database.system_tx() as conn:
                crawl = await firecrawl_inbox.ensure_crawl(conn, message, self.settings)
        result = {"crawl": crawl.crawl, "source_id": str(source.id)}
        return TaskResult(result, events=[NewEvent("asked", result)])

    async def _post(self, task: Task, source: SourceRow) -> str:
        """Send the request; return the id of the crawl."""
        response = await self.remote.request(
            "POST",
            "/v2/crawl",
            self._request(task, source),
            {"x-idempotency-key": str(idempotency_key(task))},
        )
        return _crawl_id(response)

    def _request(self, task: Task, source: SourceRow) -> dict[str, Any]:
        payload: StartRemoteCrawl = task.payload
        public = (self.remote.settings.public_url or "").rstrip("/")
        return {
            "url": payload.url,
            "limit": payload.limit,
            "maxDiscoveryDepth": payload.max_depth,
            "scrapeOptions": {"formats": ["markdown"], "onlyMainContent": True},
            "webhook": {
                "url": f"{public}/api/webhooks/firecrawl?organisation={source.organisation_id}",
                "metadata": webhook_metadata(source, task.job_id),
            },
        }


def webhook_metadata(source: SourceRow, job_id: JobId) -> dict[str, str]:
    """Return the metadata of the crawl's webhooks: the source and the job of its pages."""
    metadata = {"knowledgeSourceId": str(source.id), JOB_ID_KEY: str(job_id)}
    if source.application_id is not None:
        metadata["applicationId"] = str(source.application_id)
    if source.created_by is not None:
        metadata["userId"] = str(source.created_by)
    return metadata


def idempotency_key(task: Task) -> UUID:
    """Return a UUID that is the same in every attempt at a task."""
    return uuid5(NAMESPACE_OID, f"trapline {task.job_id} {task.id}")


def _crawl_id(response: Response) -> str:
    """Return the id of the crawl; RetryLater or VisitFailed if there is none."""
    if response.status == _CONFLICT:
        raise RetryLater("Firecrawl has started the crawl, but has not given its id yet.")
    if not response.ok:
        why = f"Firecrawl answered {response.status}: {response.excerpt}"
        raise VisitFailed(ExitCode.EXTRACTION_FAILED, why)
    try:
        crawl = msgspec.json.decode(response.body)["id"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        crawl = None
    if not isinstance(crawl, str) or not 0 < len(crawl) <= firecrawl_inbox.LONGEST_CRAWL_ID:
        why = f"Firecrawl's answer cannot be read: {response.excerpt}"
        raise VisitFailed(ExitCode.EXTRACTION_FAILED, why)
    return crawl.replace("\x00", "")
