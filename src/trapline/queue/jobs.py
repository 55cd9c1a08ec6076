"""Jobs: requests with their tasks, counters, limit and end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from trapline.db.connection import Connection
from trapline.db.id_prefix import id_range, only_match
from trapline.errors import Conflict, InvalidInput, NotFound
from trapline.model import JobId, MemberId, OrganisationId, TraceId, new_uuid
from trapline.queue import tasks
from trapline.queue.kinds import Kinds, check_json
from trapline.queue.sql import jobs as queries
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import EnqueueResult, NewTask, TaskState
from trapline.settings import RetentionSettings

Status = Literal["pending", "running", "paused", "completed", "failed", "cancelled"]
ENDED = frozenset({"completed", "failed", "cancelled"})
TTL = timedelta(hours=24)

# One worker for so many tasks in flight, and five without a limit.
_TASKS_PER_WORKER = 10
_WORKERS_WITHOUT_LIMIT = 5


def new_id() -> JobId:
    return JobId(new_uuid())


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be created. `limit` bounds its counted tasks; None means no limit."""

    kind: str
    organisation_id: OrganisationId
    id: JobId = field(default_factory=new_id)
    member_id: MemberId | None = None
    priority: int = 0
    limit: int | None = None
    max_active: int | None = None
    required_workers: int | None = None
    parent_id: JobId | None = None
    retry_of: JobId | None = None
    retry_count: int = 0
    max_retries: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    trace_id: TraceId | None = None
    zero_data_retention: bool = False
    scheduled_at: datetime | None = None
    ttl: timedelta = TTL
    failed_ttl: timedelta | None = None


def retention_times(
    settings: RetentionSettings, *, single: bool = False
) -> tuple[timedelta, timedelta | None]:
    """Return the time to live of completed jobs and of failed ones (None: the same).

    `single` means a job of one task whose caller waits, such as a scrape.
    """
    if not single:
        return timedelta(seconds=settings.job_ttl_seconds), None
    return (
        timedelta(seconds=settings.scrape_ttl_seconds),
        timedelta(seconds=settings.scrape_failed_ttl_seconds),
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job. Skipped tasks count as progress."""

    total: int
    queued: int
    active: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    found: int
    from_sitemap: int
    percent: float


async def create(conn: Connection, job: NewJob) -> JobRow:
    """Write a job without tasks."""
    check(job)
    await _check_parent(conn, job)
    row = await queries.create_job(
        conn,
        id=job.id,
        organisation_id=job.organisation_id,
        member_id=job.member_id,
        kind=job.kind,
        priority=job.priority,
        parent_id=job.parent_id,
        retry_of=job.retry_of,
        retry_count=job.retry_count,
        max_retries=job.max_retries,
        options=dict(job.options),
        variables=dict(job.variables),
        metadata=dict(job.metadata),
        trace_id=job.trace_id,
        zero_data_retention=job.zero_data_retention,
        task_limit=job.limit,
        max_active=job.max_active,
        required_workers=job.required_workers or required_workers(job.max_active),
        scheduled_at=job.scheduled_at,
        ttl=job.ttl,
        failed_ttl=job.failed_ttl,
    )
    if row is None:
        raise Conflict(f"There already is a job {job.id}.")
    return row


async def submit(
    conn: Connection, kinds: Kinds, job: NewJob, new: Iterable[NewTask], *, now: datetime
) -> list[EnqueueResult]:
    """Create a job with its first tasks. One that has nothing to do is complete at once."""
    await create(conn, job)
    first = [_at(task, job.scheduled_at) for task in new]
    added = await tasks.enqueue(conn, kinds, job.id, job.organisation_id, first, now=now)
    if not any(answer.state is TaskState.QUEUED for answer in added):
        await queries.end_if_empty(conn, job_id=job.id)
    return added


def _at(task: NewTask, scheduled_at: datetime | None) -> NewTask:
    if scheduled_at is None or task.run_at is not None:
        return task
    values = {name: getattr(task, name) for name in NewTask.__dataclass_fields__}
    return NewTask(**values | {"run_at": scheduled_at})


async def get(conn: Connection, job_id: JobId) -> JobRow:
    """Return a job; one that expired is not found."""
    row = await queries.get_job(conn, job_id=job_id)
    if row is None:
        raise NotFound(f"There is no job {job_id}; jobs are forgotten some time after their end.")
    return row


async def find_id(conn: Connection, prefix: str) -> JobId:
    """Return the id of the one job that begins with a prefix."""
    low, high = id_range(prefix)
    ids = await queries.job_ids_in_range(conn, low=low, high=high)
    return only_match(ids, prefix, "job", "; jobs are forgotten some time after their end")


async def progress(conn: Connection, job: JobRow) -> Progress:
    """Return the counters of a status call."""
    active = await queries.active_tasks(conn, job_id=job.id) if job.status not in ENDED else 0
    active = min(active, job.remaining)
    return Progress(
        total=job.total,
        queued=job.remaining - active,
        active=active,
        completed=job.completed,
        failed=job.failed,
        skipped=job.skipped,
        cancelled=job.cancelled,
        found=job.found,
        from_sitemap=job.from_sitemap,
        percent=percent(job),
    )


def percent(job: JobRow) -> float:
    """Return the percentage of a job's tasks that have ended, with any outcome."""
    if job.status in ENDED:
        return 100.0
    return round(100 * (job.total - job.remaining) / max(job.total, 1), 1)


async def cancel(
    conn: Connection, job_id: JobId, *, by: str | None = None, reason: str | None = None
) -> None:
    """End a job now: queued tasks at once, running ones within seconds."""
    if not await queries.cancel_job(conn, job_id=job_id, by_whom=by, reason=reason):
        raise Conflict(f"The job is {(await get(conn, job_id)).status} already.")


async def pause(conn: Connection, job_id: JobId, *, by: str | None = None) -> None:
    """Start no more tasks; the running ones finish."""
    if not await queries.pause_job(conn, job_id=job_id, by_whom=by):
        raise Conflict(f"The job is {(await get(conn, job_id)).status}, so it cannot be paused.")


async def resume(conn: Connection, job_id: JobId, *, by: str | None = None) -> None:
    if not await queries.resume_job(conn, job_id=job_id, by_whom=by):
        raise Conflict(f"The job is {(await get(conn, job_id)).status}, not paused.")


async def append(
    conn: Connection, kinds: Kinds, job_id: JobId, new: Iterable[NewTask], *, now: datetime
) -> list[EnqueueResult]:
    """Add tasks to a job; if it has ended, its next round begins."""
    job = await get(conn, job_id)
    if job.status == "cancelled":
        raise Conflict("The job was cancelled: it accepts no more tasks.")
    if job.status in ENDED:
        await queries.reopen_job(conn, job_id=job_id)
    added = await tasks.enqueue(conn, kinds, job_id, job.organisation_id, new, now=now)
    if not any(answer.state is TaskState.QUEUED for answer in added):
        await queries.end_if_empty(conn, job_id=job_id)
    return added


def required_workers(max_active: int | None) -> int:
    """Return how many workers a job of this concurrency asks for."""
    if max_active is None:
        return _WORKERS_WITHOUT_LIMIT
    return max(1, -(-max_active // _TASKS_PER_WORKER))


def check(job: NewJob) -> None:
    """Refuse invalid values."""
    if not job.kind:
        raise InvalidInput("A job needs a kind.")
    if job.limit is not None and job.limit < 0:
        raise InvalidInput("A limit cannot be negative.")
    if job.max_active is not None and job.max_active < 1:
        raise InvalidInput("A job runs at least one task at a time.")
    if job.max_retries < 0:
        raise InvalidInput("A job's retries cannot be negative.")
    if job.ttl <= timedelta():
        raise InvalidInput("A job's time to live must be longer than nothing.")
    described = [dict(job.options), dict(job.variables), dict(job.metadata)]
    check_json(msgspec.json.encode(described), "The job's options, variables and metadata together")


async def _check_parent(conn: Connection, job: NewJob) -> None:
    if job.parent_id is None:
        return
    if job.parent_id == job.id:
        raise InvalidInput("A job cannot be its own parent.")
    above = await queries.ancestors(conn, job_id=job.parent_id)
    if not above:
        raise NotFound(f"There is no job {job.parent_id} to be the parent.")
    if job.id in above:
        raise InvalidInput("A job cannot be above its own parent.")
