"""Dead letters: failed tasks that nobody has retried or resolved yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trapline.db.connection import Connection
from trapline.errors import Conflict, ExitCode, NotFound
from trapline.model import JobId, OrganisationId, TaskId
from trapline.queue import jobs
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.sql import dead_letters as queries
from trapline.queue.sql.dead_letters import DeadLetterRow, ResolveDeadLettersRow
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import NewTask, TaskSource


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Selects dead letters of an organisation; None leaves a condition out."""

    tasks: Sequence[TaskId] | None = None
    job_id: JobId | None = None
    kind: str | None = None
    code: ExitCode | None = None


async def list_open(
    conn: Connection, organisation_id: OrganisationId, chosen: DeadLetterFilter, *, most: int = 100
) -> list[DeadLetterRow]:
    return await queries.list_dead_letters(
        conn,
        organisation_id=organisation_id,
        job_id=chosen.job_id,
        kind=chosen.kind,
        code=chosen.code,
        most=most,
    )


async def urls_of(conn: Connection, task_ids: Sequence[TaskId]) -> dict[TaskId, str]:
    """Return the URLs of those tasks that have one."""
    rows = await queries.urls_of_tasks(conn, task_ids=task_ids)
    return {row.task_id: row.url for row in rows}


async def resolve(
    conn: Connection, organisation_id: OrganisationId, chosen: DeadLetterFilter, *, by: str | None
) -> int:
    """Mark dead letters as resolved; return how many."""
    return len(await _close(conn, organisation_id, chosen, by=by, resolution="resolved"))


@dataclass(frozen=True, slots=True)
class RetryJob:
    """The job that retries dead letters, and the dead letters."""

    job_id: JobId
    letters: Sequence[ResolveDeadLettersRow]


async def retry(  # noqa: PLR0913 (what, whose, by whom, when)
    conn: Connection,
    kinds: Kinds,
    organisation_id: OrganisationId,
    chosen: DeadLetterFilter,
    *,
    by: str | None,
    now: datetime,
) -> RetryJob:
    """Retry dead letters in a new job: their own jobs have ended and accept no more tasks."""
    job_id = jobs.new_id()
    letters = await _close(
        conn, organisation_id, chosen, by=by, resolution="retried", retried_in=job_id
    )
    if not letters:
        raise NotFound("There is no such dead letter.")
    origins = {letter.job_id for letter in letters}
    job = NewJob("retry", organisation_id, id=job_id)
    if len(origins) == 1:
        job = _copy_of(await jobs.get(conn, origins.pop()), job_id)
    await jobs.submit(conn, kinds, job, [_retry_task(letter) for letter in letters], now=now)
    return RetryJob(job_id, letters)


async def retry_job(
    conn: Connection, kinds: Kinds, job_id: JobId, *, by: str | None, now: datetime
) -> RetryJob:
    """Retry the failed tasks of a job, at most `max_retries` times."""
    old = await jobs.get(conn, job_id)
    if old.status not in jobs.ENDED:
        raise Conflict(f"The job is {old.status}: only an ended one can be retried.")
    if old.retry_count >= old.max_retries:
        raise Conflict(f"The job was retried {old.retry_count} times, which is its maximum.")
    try:
        return await retry(
            conn, kinds, old.organisation_id, DeadLetterFilter(job_id=job_id), by=by, now=now
        )
    except NotFound:
        raise Conflict("The job has no failed task that nobody has dealt with.") from None


def _copy_of(old: JobRow, job_id: JobId) -> NewJob:
    """Return a new job with the options of an old one, which it names."""
    return NewJob(
        old.kind,
        old.organisation_id,
        id=job_id,
        priority=old.priority,
        max_active=old.max_active,
        retry_of=old.id,
        retry_count=old.retry_count + 1,
        max_retries=old.max_retries,
        options=old.options,
        variables=old.variables,
        metadata=old.metadata,
        zero_data_retention=old.zero_data_retention,
        ttl=old.ttl,
        failed_ttl=old.failed_ttl,
    )


def _retry_task(letter: ResolveDeadLettersRow) -> NewTask:
    return NewTask(
        letter.kind,
        letter.payload,
        gate=None if letter.gate is None else Gate(letter.gate),
        priority=letter.priority,
        max_attempts=letter.max_attempts,
        timeout=letter.timeout,
        counted=letter.counted,
        source=TaskSource(letter.source),
    )


async def _close(  # noqa: PLR0913 (what, whose, by whom, how)
    conn: Connection,
    organisation_id: OrganisationId,
    chosen: DeadLetterFilter,
    *,
    by: str | None,
    resolution: str,
    retried_in: JobId | None = None,
) -> list[ResolveDeadLettersRow]:
    return await queries.resolve_dead_letters(
        conn,
        organisation_id=organisation_id,
        tasks=chosen.tasks,
        job_id=chosen.job_id,
        kind=chosen.kind,
        code=chosen.code,
        by_whom=by,
        resolution=resolution,
        retried_in=retried_in,
    )
