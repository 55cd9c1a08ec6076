"""Taking in the pages of a Firecrawl elsewhere: its webhooks become tasks of one job for each crawl.

A message, the text that came with it and the task that reads it are written together, once for each
message, in whatever order they come. The job stays open until the crawl has said that it ended.
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
from trapline.knowledge import applications, sources, tally
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.sources import NewSource
from trapline.knowledge.sql import intake as queries
from trapline.knowledge.sql import sources as source_queries
from trapline.knowledge.sql.intake import IntakeRow
from trapline.knowledge.sql.sources import SourceRow
from trapline.knowledge.tally import Change
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId, TaskId
from trapline.pipeline import remote_firecrawl
from trapline.pipeline.kinds import AWAIT, FILE, INGEST, AwaitTask, FileTask, ingest_kinds
from trapline.queue import jobs
from trapline.queue.finishing import Finished
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.maintenance.duty import Duty
from trapline.queue.sql import tasks as task_queries
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import NewTask, Task
from trapline.queue.together import Together
from trapline.settings import Settings
from trapline.store import blobs as packing
from trapline.store.blobs import Blobs, Packed

SENDER: Final = "firecrawl"
# Under this name the messages of a crawl that we asked for say which job asked.
JOB: Final = "traplineJobId"
LONGEST_CRAWL_ID: Final = 300
NO_TASK: Final = TaskId(0)
# A crawl that never says that it ended is taken to have ended then.
_LONGEST_CRAWL: Final = timedelta(hours=24)
# Messages overtake each other: so long a job stays open after its crawl's last word.
_GRACE: Final = timedelta(seconds=3)
_KEEP: Final = timedelta(days=7)
_ENDS: Final = frozenset({"completed", "failed", "cancelled"})
_LONGEST_URL: Final = 16_000


@dataclass(frozen=True, slots=True)
class Page:
    """A page that came with a message; without a text there is an error."""

    url: str
    title: str | None = None
    text: Packed | None = None
    content_type: str = "text/markdown"
    error: str | None = None


@dataclass(slots=True)
class Message:
    """One webhook, read and checked. What became of it is set when it is stored."""

    organisation_id: OrganisationId
    id: UUID
    type: str
    crawl: str
    pages: Sequence[Page] = ()
    error: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # What became of it.
    refusal: TraplineError | None = None
    repeated: bool = False
    job_id: JobId | None = None

    @property
    def ending(self) -> str | None:
        word = self.type.rpartition(".")[2]
        return word if word in _ENDS else None


@dataclass(slots=True)
class Intake:
    """Stores messages; those that come at the same time go into one transaction."""

    database: Database
    settings: Settings
    blobs: Blobs
    _together: Together[Message] = field(init=False)

    def __post_init__(self) -> None:
        self._together = Together(self._store)

    async def receive(self, message: Message) -> Message:
        """Store a message, or find that it was stored; it is safe once this returns."""
        await self._together.add(message)
        if message.refusal is not None:
            raise message.refusal
        return message

    async def _store(self, messages: Sequence[Message]) -> None:
        async with self.database.system_tx() as conn:
            texts = [page.text for one in messages for page in one.pages if page.text is not None]
            await self.blobs.put(conn, texts)
            ordered = sorted(messages, key=lambda one: (one.organisation_id, one.crawl))
            for (organisation_id, _), group in groupby(
                ordered, key=lambda one: (one.organisation_id, one.crawl)
            ):
                await self._crawl(conn, organisation_id, list(group))

    async def _crawl(
        self, conn: Connection, organisation_id: OrganisationId, group: list[Message]
    ) -> None:
        """Take in messages of one crawl."""
        try:
            row = await ensure(conn, group[0], self.settings)
            new = await _unseen(conn, organisation_id, group)
            pages = [page for one in new for page in one.pages]
            await _add_pages(conn, row, pages)
        except (NotFound, Conflict) as error:
            for one in group:
                one.refusal = error
            return
        for one in group:
            one.job_id = JobId(row.job_id)
        for one in new:
            if one.ending is not None:
                await _end(conn, row, one.ending, one.error)

    # What keeps the job open

    async def awaited(self, task: Task) -> Finished:
        """End with the crawl: well, or with what it said was wrong."""
        async with self.database.system_tx() as conn:
            row = await queries.intake_of_job(conn, job_id=task.job_id)
        if row is None or row.ended == "completed":
            return Finished(None)
        reason = "It did not say within a day that it ended." if row.ended is None else row.error
        raise VisitFailed(
            ExitCode.CANCELLED if row.ended == "cancelled" else ExitCode.EXTRACTION_FAILED,
            f"The crawl elsewhere: {reason or row.ended}",
        )


async def _unseen(
    conn: Connection, organisation_id: OrganisationId, group: Sequence[Message]
) -> list[Message]:
    """Note messages; return those that were not noted before."""
    once = {one.id: one for one in group}
    noted = await inbox.receive(
        conn,
        organisation_id=organisation_id,
        sender=SENDER,
        message_ids=list(once),
        types=[one.type for one in once.values()],
        subjects=[one.crawl for one in once.values()],
        hashes=[_first_hash(one) for one in once.values()],
    )
    fresh = set(noted)
    for one in group:
        one.repeated = one.id not in fresh or once[one.id] is not one
    return [one for one in once.values() if one.id in fresh]


def _first_hash(message: Message) -> bytes | None:
    """The bytes that a message keeps from being swept; more than one page comes from tests alone."""
    return next((page.text.sha256 for page in message.pages if page.text is not None), None)


async def ensure(conn: Connection, message: Message, settings: Settings) -> IntakeRow:
    """Return what takes in a crawl's pages, begun with its first message, whichever that is."""
    asked: dict[str, Any] = {"organisation_id": message.organisation_id, "crawl": message.crawl}
    row = await queries.get_intake(conn, **asked)
    if row is None:
        await queries.lock_crawl(conn, crawl=f"{message.organisation_id} {message.crawl}")
        row = await queries.get_intake(conn, **asked)
    if row is not None:
        return row
    source = await _source(conn, message, settings)
    job = await _asking_job(conn, message, source)
    if job is None:
        return await _begin(conn, message, settings, source)
    return await _go_on(conn, message, source, job)


async def _asking_job(conn: Connection, message: Message, source: SourceRow) -> JobRow | None:
    """Return the job that asked for this crawl, if one did and no other crawl is its."""
    try:
        job = await jobs.get(conn, JobId(UUID(str(message.metadata.get(JOB)))))
    except (ValueError, NotFound):
        return None
    for_it = job.metadata.get("knowledgeSourceId") == str(source.id)
    ours = job.organisation_id == source.organisation_id and job.kind == INGEST and for_it
    taken = await queries.intake_of_job(conn, job_id=job.id)
    return job if ours and taken is None else None


async def _go_on(conn: Connection, message: Message, source: SourceRow, job: JobRow) -> IntakeRow:
    """Keep the job that asked open until the crawl has ended. If it was cancelled, so is the crawl."""
    task_id = NO_TASK
    if job.status == "cancelled":
        await remote_firecrawl.call_off(conn, job.organisation_id, job.id, message.crawl)
    else:
        await sources.begin(conn, [source.id], job.id)
        now = datetime.now(UTC)
        (added,) = await jobs.append(conn, _kinds(), job.id, [_waiting(message, now)], now=now)
        task_id = added.task_id or NO_TASK
    return await queries.add_intake(
        conn,
        organisation_id=message.organisation_id,
        crawl=message.crawl,
        source_id=source.id,
        job_id=job.id,
        task_id=task_id,
    )


def _waiting(message: Message, now: datetime) -> NewTask:
    return NewTask(AWAIT, AwaitTask(message.crawl), run_at=now + _LONGEST_CRAWL, counted=False)


async def _begin(
    conn: Connection, message: Message, settings: Settings, source: SourceRow
) -> IntakeRow:
    """Make the job that takes in a crawl's pages."""
    ttl, _ = jobs.times_kept(settings)
    job = NewJob(
        INGEST,
        message.organisation_id,
        member_id=_member(message.metadata.get("userId")),
        options={"embedding_config": source.config},
        metadata={"crawl": message.crawl, "knowledgeSourceId": str(source.id)},
        ttl=ttl,
    )
    now = datetime.now(UTC)
    # Sources before jobs, as in the finishing transaction.
    await sources.begin(conn, [source.id], job.id)
    (added,) = await jobs.submit(conn, _kinds(), job, [_waiting(message, now)], now=now)
    return await queries.add_intake(
        conn,
        organisation_id=message.organisation_id,
        crawl=message.crawl,
        source_id=source.id,
        job_id=job.id,
        task_id=added.task_id,
    )


async def _source(conn: Connection, message: Message, settings: Settings) -> SourceRow:
    """Find where a crawl's pages go: where its metadata says, else a source of its own."""
    named = _uuid(message.metadata.get("knowledgeSourceId"))
    if named is not None:
        return await sources.get(conn, message.organisation_id, SourceId(named))
    application = message.metadata.get("applicationId")
    application_id: ApplicationId | None = None
    if isinstance(application, str) and application:
        found = await applications.find(conn, message.organisation_id, application)
        application_id = found.id
    return await sources.ensure(
        conn,
        NewSource(
            organisation_id=message.organisation_id,
            kind="site",
            uri=f"firecrawl:{message.crawl}",
            name=f"Firecrawl {message.crawl}",
            config=default_config(settings),
            application_id=application_id,
            provider="firecrawl",
            created_by=_member(message.metadata.get("userId")),
        ),
    )


async def _add_pages(conn: Connection, row: IntakeRow, pages: Sequence[Page]) -> None:
    """Queue pages. One that comes after the crawl's end opens the job's next round."""
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
    await tally.add(
        conn,
        [
            Change(row.organisation_id, scope, job.id, job.created_at, total=len(pages))
            for scope in scopes
        ],
    )


def _task(source: SourceRow, page: Page) -> FileTask:
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
    """Note a crawl's end, and let its job end once the messages under way have come."""
    await queries.end_intake(
        conn,
        organisation_id=row.organisation_id,
        crawl=row.crawl,
        ended=ending,
        error=error,
    )
    await task_queries.hasten(conn, task_id=row.task_id, run_at=datetime.now(UTC) + _GRACE)


def page_of(document: Any, error: str | None) -> Page | None:
    """Read one document of a message; None if it says nothing."""
    if not isinstance(document, dict):
        return None
    about = document.get("metadata")
    metadata = about if isinstance(about, dict) else {}
    url = (
        _text(metadata.get("url")) or _text(metadata.get("sourceURL")) or _text(document.get("url"))
    )
    if url is None:
        return None
    reason = error or _text(metadata.get("error"))
    title = _text(metadata.get("title"))
    for name, content_type in (("markdown", "text/markdown"), ("html", "text/html")):
        text = document.get(name)
        if isinstance(text, str) and text.strip():
            body = text.encode("utf-8", "replace")
            return Page(url, title, packing.pack(body), content_type)
    return Page(url, title, error=reason or "The page came without a text.")


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
    """Who asked, by our id for them; another system's name for them is not ours."""
    try:
        return None if value is None else MemberId(UUID(str(value)))
    except ValueError:
        return None


def _kinds() -> Kinds:
    return Kinds(ingest_kinds())


def duties() -> list[Duty]:
    async def drop(database: Database) -> int:
        async with database.system_tx() as conn:
            return await inbox.drop_received(conn, before=datetime.now(UTC) - _KEEP)

    return [Duty("inbox retention", drop, timedelta(hours=1))]
