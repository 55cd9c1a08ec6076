"""Jobs in pages: newest or oldest first, of one state or of all, each read by its own index."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal
from uuid import UUID

from trapline.db.connection import Connection
from trapline.errors import Conflict, NotFound
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs
from trapline.queue.sql import jobs as queries
from trapline.queue.sql.jobs import JobRow

Order = Literal["newest", "oldest"]
Position = tuple[datetime, UUID]

EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEVER: Final = datetime(9000, 1, 1, tzinfo=UTC)
_FIRST: Final = (EVER, UUID(int=0))
_LAST: Final = (NEVER, UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs of an organisation, made within which time."""

    organisation_id: OrganisationId
    status: jobs.Status | None = None
    kind: str | None = None
    since: datetime = EVER
    until: datetime = NEVER
    order: Order = "newest"


async def listed(
    conn: Connection, wanted: Wanted, *, after: Position | None = None, most: int
) -> list[JobRow]:
    """Return the next jobs after a position. Four queries, so that each reads along one index."""
    if wanted.order == "newest":
        return await _newest(conn, wanted, min(after or _LAST, (wanted.until, UUID(int=0))), most)
    return await _oldest(conn, wanted, max(after or _FIRST, (wanted.since, UUID(int=0))), most)


async def _newest(conn: Connection, wanted: Wanted, place: Position, most: int) -> list[JobRow]:
    if wanted.status is None:
        return await queries.jobs_newest(
            conn,
            organisation_id=wanted.organisation_id,
            at=place[0],
            job_id=JobId(place[1]),
            since=wanted.since,
            kind=wanted.kind,
            most=most,
        )
    return await queries.jobs_newest_by_status(
        conn,
        organisation_id=wanted.organisation_id,
        status=wanted.status,
        at=place[0],
        job_id=JobId(place[1]),
        since=wanted.since,
        kind=wanted.kind,
        most=most,
    )


async def _oldest(conn: Connection, wanted: Wanted, place: Position, most: int) -> list[JobRow]:
    if wanted.status is None:
        return await queries.jobs_oldest(
            conn,
            organisation_id=wanted.organisation_id,
            at=place[0],
            job_id=JobId(place[1]),
            until=wanted.until,
            kind=wanted.kind,
            most=most,
        )
    return await queries.jobs_oldest_by_status(
        conn,
        organisation_id=wanted.organisation_id,
        status=wanted.status,
        at=place[0],
        job_id=JobId(place[1]),
        until=wanted.until,
        kind=wanted.kind,
        most=most,
    )


async def find(conn: Connection, job_id: JobId, *, now: datetime) -> JobRow:
    """Return a job that has not expired yet."""
    row = await jobs.get(conn, job_id)
    if row.expires_at is not None and row.expires_at <= now:
        raise NotFound(f"There is no job {job_id}; it has expired.")
    return row


async def delete(conn: Connection, job_id: JobId) -> None:
    """Let an ended job be forgotten: gone for readers at once, its rows within a minute or so."""
    if not await queries.delete_job(conn, job_id=job_id):
        status = (await jobs.get(conn, job_id)).status
        raise Conflict(f"The job is {status}: cancel it first.")
