"""Inbox of webhooks from a remote Firecrawl: the messages of a crawl become tasks of one job.

One transaction writes a message, its text and the task that indexes it; a repeated message writes
nothing, and the order of messages does not matter. The job stays open until the crawl has ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.deliver.sql import inbox
from trapline.errors import Conflict, ExitCode, NotFound, TraplineError, VisitFailed
from trapline.knowledge import applications, progress_counters, sources
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.progress_counters import CounterChange
from trapline.knowledge.sources import NewSource
from trapline.knowledge.sql import firecrawl_inbox as queries
from trapline.knowledge.sql import sources as source_queries
from trapline.knowledge.sql.firecrawl_inbox import IntakeRow
from trapline.knowledge.sql.sources import SourceRow
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId, TaskId
from trapline.pipeline.ingest import remote_firecrawl
from trapline.pipeline.kinds import (
    AWAIT_REMOTE_CRAWL,
    FILE,
    INGEST,
    AwaitRemoteCrawl,
    FileTask,
    ingest_kinds,
)
from trapline.queue import jobs
from trapline.queue.finish import TaskResult
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.maintenance.periodic import Duty
from trapline.queue.micro_batch import MicroBatch
from trapline.queue.sql import tasks as task_queries
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import NewTask, Task
from trapline.settings import Settings
from trapline.store import blobs as packing
from trapline.store.blobs import BlobStore, PackedBlob

SENDER: Final = "firecrawl"
# The metadata key under which webhooks name the job that requested their crawl.
JOB_ID_KEY: Final = "traplineJobId"
LONGEST_CRAWL_ID: Final = 300
NO_TASK: Final = TaskId(0)
# A crawl that has not reported its end by then counts as ended.
_LONGEST_CRAWL: Final = timedelta(hours=24)
# Messages overtake each other: a job stays open for this long after the end was reported.
_GRACE: Final = timedelta(seconds=3)
_RETENTION: Final = timedelta(days=7)
_ENDS: Final = frozenset({"completed", "failed", "cancelled"})
_LONGEST_URL: Final = 16_000
_NO_TEXT: Final = "The page came without a text."


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A page in a message: either its text or an error."""

    url: str
    title: str | None = None
    text: PackedBlob | None = None
    content_type: str = "text/markdown"
    error: str | None = None


@dataclass(slots=True)
class Message:
    """A webhook after validation; the last three fields are set when it is stored."""

    organisation_id: OrganisationId
    id: UUID
    type: str
    crawl: str
    pages: Sequence[MessagePage] = ()
    error: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    refusal: TraplineError | None = None
    repeated: bool = False
    job_id: JobId | None = None

    @property
    def ending(self) -> str | None:
        word = self.type.rpartition(".")[2]
        return word if word in _ENDS else None


@dataclass(slots=True)
class FirecrawlInbox:
    """Stores messages, in micro-batches of one transaction each."""

    database: Database
    settings: Settings
    blobs: BlobStore
    _batches: MicroBatch[Message, Message] = field(init=False)

    def __post_init__(self) -> None:
        self._batches = MicroBatch(self._store)

    async def receive(self, message: Message) -> Message:
        """Store a message, unless it is a repeated one; it is durable once this returns."""
        await self._batches.add(message)
        if message.refusal is not None:
            raise message.refusal
        return message

    async def _store(self, messages: Sequence[Message]) -> Sequence[Message]:
        async with self.database.system_tx() as conn:
            texts = [page.text for one in messages for page in one.pages if page.text is not None]
            await self.blobs.put(conn, texts)
            ordered = sorted(messages, key=lambda one: (one.organisation_id, one.crawl))
            for (organisation_id, _), group in groupby(
                ordered, key=lambda one: (one.organisation_id, one.crawl)
            ):
                await self._store_crawl(conn, organisation_id, list(group))
        return messages

    async def _store_crawl(
        self, conn: Connection, organisation_id: OrganisationId, messages: list[Message]
    ) -> None:
        """Store the messages of one crawl."""
        try:
            row = await ensure_crawl(conn, messages[0], self.settings)
            new = await _add_messages(conn, organisation_id, messages)
            pages = [page for one in new for page in one.pages]
            await _add_pages(conn, row, pages)
        except (NotFound, Conflict) as error:
            for message in messages:
                message.refusal = error
            return
        for message in messages:
            message.job_id = JobId(row.job_id)
        for message in new:
            if message.ending is not None:
                await _end(conn, row, message.ending, message.error)

    async def await_end(self, task: Task) -> TaskResult:
        """Handle the task that keeps the job open: complete or fail as the crawl did."""
        async with self.database.system_tx() as conn:
            row = await queries.intake_of_job(conn, job_id=task.job_id)
        if row is None or row.ended == "completed":
            return TaskResult(None)
        reason = "It did not report its end within a day." if row.ended is None else row.error
        raise VisitFailed(
            ExitCode.CANCELLED if row.ended == "cancelled" else ExitCode.EXTRACTION_FAILED,
            f"The remote crawl: {reason or row.ended}",
        )


async def _add_messages(
    conn: Connection, organisation_id: OrganisationId, messages: Sequence[Message]
) -> list[Message]:
    """Write messages to the inbox; return those that were not in it."""
    unique = {one.id: one for one in messages}
    new_ids = await inbox.receive(
        conn,
        organisation_id=organisation_id,
        sender=SENDER,
        message_ids=list(unique),
        types=[one.type for one in unique.values()],
        subjects=[one.crawl for one in unique.values()],
        hashes=[_first_hash(one) for one in unique.values()],
    )
    new = set(new_ids)
    for one in messages:
        one.repeated = one.id not in new or unique[one.id] is not one
    return [one for one in unique.values() if one.id in new]


def _first_hash(message: Message) -> bytes | None:
    """Return the blob that the message protects from garbage collection; real messages have one page."""
    return next((page.text.sha256 for page in message.pages if page.text is not None), None)


async def ensure_crawl(conn: Connection, message: Message, settings: Settings) -> IntakeRow:
    """Return the row of a crawl, created with its first message, whichever that is."""
    crawl: dict[str, Any] = {"organisation_id": message.organisation_id, "crawl": message.crawl}
    row = await queries.get_intake(conn, **crawl)
    if row is None:
        await queries.lock_crawl(conn, crawl=f"{message.organisation_id} {message.crawl}")
        row = await queries.get_intake(conn, **crawl)
    if row is not None:
        return row
    source = await _source(conn, message, settings)
    job = await _requesting_job(conn, message, source)
    if job is None:
        return await _begin_job(conn, message, settings, source)
    return await _continue_job(conn, message, source, job)


async def _requesting_job(conn: Connection, message: Message, source: SourceRow) -> JobRow | None:
    """Return the job that requested this crawl, unless it has a crawl already."""
    try:
        job = await jobs.get(conn, JobId(UUID(str(message.metadata.get(JOB_ID_KEY)))))
    except (ValueError, NotFound):
        return None
    same_source = job.metadata.get("knowledgeSourceId") == str(source.id)
    ours = job.organisation_id == source.organisation_id and job.kind == INGEST and same_source
    other = await queries.intake_of_job(conn, job_id=job.id)
    return job if ours and other is None else None


async def _continue_job(
    conn: Connection, message: Message, source: SourceRow, job: JobRow
) -> IntakeRow:
    """Keep the requesting job open until the crawl has ended; if it was cancelled, cancel the crawl."""
    task_id = NO_TASK
    if job.status == "cancelled":
        await remote_firecrawl.queue_cancellation(conn, job.organisation_id, job.id, message.crawl)
    else:
        await sources.begin_job(conn, [source.id], job.id)
        now = datetime.now(UTC)
        (added,) = await jobs.append(conn, _kinds(), job.id, [_await_task(message, now)], now=now)
        task_id = added.task_id or NO_TASK
    return await queries.add_intake(
        conn,
        organisation_id=message.organisation_id,
        crawl=message.crawl,
        source_id=source.id,
        job_id=job.id,
        task_id=task_id,
    )


def _await_task(message: Message, now: datetime) -> NewTask:
    return NewTask(
        AWAIT_REMOTE_CRAWL,
        AwaitRemoteCrawl(message.crawl),
        run_at=now + _LONGEST_CRAWL,
        counted=False,
    )


async def _begin_job(
    conn: Connection, message: Message, settings: Settings, source: SourceRow
) -> IntakeRow:
    """Create the job that indexes the pages of a crawl."""
    ttl, _ = jobs.retention_times(settings.retention)
    job = NewJob(
        INGEST,
        message.organisation_id,
        member_id=_member(message.metadata.get("userId")),
        options={"embedding_config": source.config},
        metadata={"crawl": message.crawl, "knowledgeSourceId": str(source.id)},
        ttl=ttl,
    )
    now = datetime.now(UTC)
    # Lock sources before jobs, as the finishing transaction does.
    await sources.begin_job(conn, [source.id], job.id)
    (added,) = await jobs.submit(conn, _kinds(), job, [_await_task(message, now)], now=now)
    return await queries.add_intake(
        conn,
        organisation_id=message.organisation_id,
        crawl=message.crawl,
        source_id=source.id,
        job_id=job.id,
        task_id=added.task_id,
    )


async def _source(conn: Connection, message: Message, settings: Settings) -> SourceRow:
    """Return the source that the metadata names, else one of the crawl's own."""
    source_id = _uuid(message.metadata.get("knowledgeSourceId"))
    if source_id is not None:
        return await sources.get(conn, message.organisation_id, SourceId(source_id))
    application = message.metadata.get("applicationId")
    application_id: ApplicationId | None = None
    if isinstance(application, str) and application:
        application_id = (await applications.find(conn, message.organisation_id, application)).id
    return await sources.get_or_create(
        conn,
        NewSource(
            organisation_id=message.organisation_id,
            kind="site",
            uri=f"firecrawl:{message.crawl}",
            name=f"Firecrawl {message.crawl}",
            config=default_config(settings.embedding),
            application_id=application_id,
            provider="firecrawl",
            created_by=_member(message.metadata.get("userId")),
        ),
    )


async def _add_pages(conn: Connection, row: IntakeRow, pages: Sequence[MessagePage]) -> None:
    """Queue pages. A page that arrives after the crawl's end reopens the job."""
    if not pages:
        return
    job = await jobs.get(conn, JobId(row.job_id))
    if job.status == "cancelled":
        return
    source = await source_queries.get_source(conn, source_id=row.source_id)
    if source is None:
        raise NotFound("The source of that crawl was deleted.")
    if job.status in jobs.ENDED:
        await source_queries.begin_job(conn, source_ids=[source.id], job_id=job.id)
    tasks = [NewTask(FILE, _task(source, page)) for page in pages]
    await jobs.append(conn, _kinds(), job.id, tasks, now=datetime.now(UTC))
    await queries.count_intake(
        conn, organisation_id=row.organisation_id, crawl=row.crawl, pages=len(pages)
    )
    scopes = [source.id, *([source.application_id] if source.application_id is not None else [])]
    await progress_counters.add(
        conn,
        [
            CounterChange(row.organisation_id, scope, job.id, job.created_at, total=len(pages))
            for scope in scopes
        ],
    )


def _task(source: SourceRow, page: MessagePage) -> FileTask:
    url = page.url[:_LONGEST_URL]
    return FileTask(
        source_id=source.id,
        uri=url,
        name=urlsplit(url).path.lstrip("/") or "index",
        sha256="" if page.text is None else page.text.sha256.hex(),
        size=0 if page.text is None else page.text.size,
        application_id=source.application_id,
        content_type=page.content_type,
        title=page.title,
        error=page.error,
    )


async def _end(conn: Connection, row: IntakeRow, ending: str, error: str | None) -> None:
    """Record the end of a crawl; its job ends after a grace period for late messages."""
    await queries.end_intake(
        conn,
        organisation_id=row.organisation_id,
        crawl=row.crawl,
        ended=ending,
        error=error,
    )
    await task_queries.reschedule(conn, task_id=row.task_id, run_at=datetime.now(UTC) + _GRACE)


def read_document(document: Any, error: str | None) -> MessagePage | None:
    """Read one document of a message; None if it names no URL."""
    if not isinstance(document, dict):
        return None
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    url = (
        _text(metadata.get("url")) or _text(metadata.get("sourceURL")) or _text(document.get("url"))
    )
    if url is None:
        return None
    title = _text(metadata.get("title"))
    for name, content_type in (("markdown", "text/markdown"), ("html", "text/html")):
        text = document.get(name)
        if isinstance(text, str) and text.strip():
            body = text.encode("utf-8", "replace")
            return MessagePage(url, title, packing.pack(body), content_type)
    return MessagePage(url, title, error=error or _text(metadata.get("error")) or _NO_TEXT)


def _text(value: object) -> str | None:
    return value.replace("\x00", "").strip() or None if isinstance(value, str) else None


def _uuid(value: object) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(str(value))
    except ValueError:
        raise NotFound(f"There is no knowledge source {str(value)[:100]!r}.") from None


def _member(value: object) -> MemberId | None:
    """Return the member that a webhook names; None if the id is not one of ours."""
    try:
        return None if value is None else MemberId(UUID(str(value)))
    except ValueError:
        return None


def _kinds() -> Kinds:
    return Kinds(ingest_kinds())


def duties() -> list[Duty]:
    async def drop(database: Database) -> int:
        async with database.system_tx() as conn:
            return await inbox.drop_received(conn, before=datetime.now(UTC) - _RETENTION)

    return [Duty("inbox retention", drop, timedelta(hours=1))]
