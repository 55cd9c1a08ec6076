"""Having a Firecrawl elsewhere crawl for a source: one request here, its webhooks bring the pages.

The request carries our address for webhooks, and in their metadata the source and the job that they
are for (`intake`). It is made by a task, so that it is tried again; its key keeps a second try from
beginning a second crawl.
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
from trapline.knowledge.sql import intake as queries
from trapline.knowledge.sql import sources as source_queries
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import JobId, OrganisationId
from trapline.pipeline import intake
from trapline.pipeline.intake import JOB, Message
from trapline.pipeline.kinds import ASK, INGEST, AskTask, ingest_kinds
from trapline.pipeline.remote_firecrawl import Answer, Elsewhere
from trapline.queue import jobs
from trapline.queue.finishing import Finished, NewEvent
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.retries import RetryLater, Skip
from trapline.queue.tasks import NewTask, Task
from trapline.settings import Settings

_TAKEN: Final = 409


def require(settings: Settings) -> None:
    """Refuse, before any work is done, what cannot be asked for; say which settings are missing."""
    needed = {
        "FIRECRAWL_API_URL": settings.firecrawl_url,
        "FIRECRAWL_WEBHOOK_SECRET": settings.firecrawl_webhook_secret,
        "TRAPLINE_PUBLIC_URL": settings.public_url,
    }
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise Unavailable(f"To have a Firecrawl crawl for you, set {' and '.join(missing)}.")


async def commission(
    conn: Connection, organisation_id: OrganisationId, asked: AskTask, how: Mapping[str, Any]
) -> JobId:
    """Queue the request for a crawl; its job stays open until the crawl has ended."""
    job = NewJob(INGEST, organisation_id, **how)
    tasks = [NewTask(ASK, asked, counted=False)]
    await jobs.submit(conn, Kinds(ingest_kinds()), job, tasks, now=datetime.now(UTC))
    return job.id


@dataclass(slots=True)
class Commissioning:
    """The handler that asks."""

    database: Database
    settings: Settings

    async def ask(self, task: Task) -> Finished:
        """Ask for a crawl, and note that its messages belong to the task's job."""
        payload: AskTask = task.payload
        require(self.settings)
        async with self.database.system_tx() as conn:
            source = await source_queries.get_source(conn, source_id=payload.source_id)
            begun = await queries.intake_of_job(conn, job_id=task.job_id)
        if source is None:
            raise Skip("The source was deleted.")
        if begun is None:
            crawl = await self._post(task, source)
            message = Message(source.organisation_id, task_id(task), "asked", crawl)
            message.metadata = routing(source, task.job_id)
            async with self.database.system_tx() as conn:
                begun = await intake.ensure(conn, message, self.settings)
        told = {"crawl": begun.crawl, "source_id": str(source.id)}
        return Finished(told, events=[NewEvent("asked", told)])

    async def _post(self, task: Task, source: SourceRow) -> str:
        """Send the request; return the crawl's id."""
        answer = await Elsewhere(self.settings).ask(
            "POST",
            "/v2/crawl",
            self._request(task, source),
            {"x-idempotency-key": str(task_id(task))},
        )
        return _crawl(answer)

    def _request(self, task: Task, source: SourceRow) -> dict[str, Any]:
        payload: AskTask = task.payload
        public = (self.settings.public_url or "").rstrip("/")
        return {
            "url": payload.url,
            "limit": payload.limit,
            "maxDiscoveryDepth": payload.max_depth,
            "scrapeOptions": {"formats": ["markdown"], "onlyMainContent": True},
            "webhook": {
                "url": f"{public}/api/webhooks/firecrawl?organisation={source.organisation_id}",
                "metadata": routing(source, task.job_id),
            },
        }


def routing(source: SourceRow, job_id: JobId) -> dict[str, str]:
    """What every webhook of the crawl carries, so that its pages come to the right place."""
    told = {"knowledgeSourceId": str(source.id), JOB: str(job_id)}
    if source.application_id is not None:
        told["applicationId"] = str(source.application_id)
    if source.created_by is not None:
        told["userId"] = str(source.created_by)
    return told


def task_id(task: Task) -> UUID:
    """What stays the same when a task is tried again."""
    return uuid5(NAMESPACE_OID, f"trapline {task.job_id} {task.id}")


def _crawl(answer: Answer) -> str:
    """Read the id of the crawl, or say what is wrong and whether to ask again."""
    if answer.status == _TAKEN:
        raise RetryLater("Firecrawl has begun the crawl, but has not told of it yet.")
    if not answer.ok:
        why = f"Firecrawl answered {answer.status}: {answer.shown}"
        raise VisitFailed(ExitCode.EXTRACTION_FAILED, why)
    try:
        crawl = msgspec.json.decode(answer.body)["id"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        crawl = None
    if not isinstance(crawl, str) or not 0 < len(crawl) <= intake.LONGEST_CRAWL_ID:
        why = f"Firecrawl's answer cannot be read: {answer.shown}"
        raise VisitFailed(ExitCode.EXTRACTION_FAILED, why)
    return crawl.replace("\x00", "")
