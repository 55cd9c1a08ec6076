"""Dead letters: failed tasks until someone retries or resolves them."""

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
from trapline.queue.sql import deadletters as queries
from trapline.queue.sql.deadletters import DeadLetterRow, ResolveDeadLettersRow
from trapline.queue.sql.jobs import JobRow
from trapline.queue.tasks import NewTask, Source


@dataclass(frozen=True, slots=True)
class Filter:
    """Which dead letters: all of an organisation's when nothing is said."""

    tasks: Sequence[TaskId] | None = None
    job_id: JobId | None = None
    kind: str | None = None
    code: ExitCode | None = None


async def list_open(
    conn: Connection, organisation_id: OrganisationId, chosen: Filter, *, most: int = 100
) -> list[DeadLetterRow]:
    return await queries.list_dead_letters(
        conn,
        organisation_id=organisation_id,
        job_id=chosen.job_id,
        kind=chosen.kind,
        code=chosen.code,
        most=most,
    )


async def resolve(
    conn: Connection, organisation_id: OrganisationId, chosen: Filter, *, by: str | None
) -> int:
    """Mark dead letters as dealt with; return how many."""
    return len(await _close(conn, organisation_id, chosen, by=by, resolution="resolved"))


@dataclass(frozen=True, slots=True)
class Retried:
    """The job in which dead letters run again, and which they were."""

    job_id: JobId
    letters: Sequence[ResolveDeadLettersRow]


async def retry(  # noqa: PLR0913 (what, whose, by whom, when)
    conn: Connection,
    kinds: Kinds,
    organisation_id: OrganisationId,
    chosen: Filter,
    *,
    by: str | None,
    now: datetime,
) -> Retried:
    """Run dead letters again, in a new job: theirs have ended, and accept no more tasks."""
    job_id = jobs.new_id()
    letters = await _close(
        conn, organisation_id, chosen, by=by, resolution="retried", retried_in=job_id
    )
    if not letters:
        raise NotFound("There is no such dead letter.")
    origins = {letter.job_id for letter in letters}
    job = NewJob("retry", organisation_id, id=job_id)
    if len(origins) == 1:
        job = _like(await jobs.get(conn, origins.pop()), job_id)
    await jobs.submit(conn, kinds, job, [_again(letter) for letter in letters], now=now)
    return Retried(job_id, letters)


async def retry_job(
    conn: Connection, kinds: Kinds, job_id: JobId, *, by: str | None, now: datetime
) -> Retried:
    """Run what failed in a job again, as often as the job may be retried."""
    old = await jobs.get(conn, job_id)
    if old.status not in jobs.ENDED:
        raise Conflict(f"The job is {old.status}: only an ended one can be retried.")
    if old.retry_count >= old.max_retries:
        raise Conflict(f"The job was retried {old.retry_count} times, which is its maximum.")
    try:
        return await retry(conn, kinds, old.organisation_id, Filter(job_id=job_id), by=by, now=now)
    except NotFound:
        raise Conflict("The job has no failed task that nobody has dealt with.") from None


def _like(old: JobRow, job_id: JobId) -> NewJob:
    """A new job that names an old one and is like it."""
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


def _again(letter: ResolveDeadLettersRow) -> NewTask:
    return NewTask(
        letter.kind,
        letter.payload,
        gate=None if letter.gate is None else Gate(letter.gate),
        priority=letter.priority,
        max_attempts=letter.max_attempts,
        timeout=letter.timeout,
        counted=letter.counted,
        source=Source(letter.source),
    )


async def _close(  # noqa: PLR0913 (what, whose, by whom, how)
    conn: Connection,
    organisation_id: OrganisationId,
    chosen: Filter,
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
