"""The list of an organisation's jobs: keyset pagination, of one state or of all; and leaving the list."""

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Literal
from uuid import UUID

from trapline.db.connection import Connection
from trapline.db.keyset import (
    EARLIEST,
    FIRST_ID,
    FIRST_TIME,
    LAST_TIME,
    LATEST,
    KeysetList,
    Order,
)
from trapline.errors import Conflict, NotFound
from trapline.model import JobId, OrganisationId
from trapline.queue import jobs
from trapline.queue.sql import jobs as queries
from trapline.queue.sql.jobs import JobRow

Sort = Literal["newest", "oldest"]


async def _newest(
    conn: Connection,
    *,
    at: datetime,
    job_id: UUID,
    until: datetime,
    status: str | None,
    **filters: Any,
) -> list[JobRow]:
    # `until` moves the key instead of being a condition: the scan of the index starts there.
    filters["at"], filters["job_id"] = min((at, job_id), (until, FIRST_ID.key))
    if status is None:
        return await queries.jobs_newest(conn, **filters)
    return await queries.jobs_newest_by_status(conn, status=status, **filters)


async def _oldest(
    conn: Connection,
    *,
    at: datetime,
    job_id: UUID,
    since: datetime,
    status: str | None,
    **filters: Any,
) -> list[JobRow]:
    filters["at"], filters["job_id"] = max((at, job_id), (since, FIRST_ID.key))
    if status is None:
        return await queries.jobs_oldest(conn, **filters)
    return await queries.jobs_oldest_by_status(conn, status=status, **filters)


_KEY: Final = ("at", "job_id"), attrgetter("created_at", "id")
_ORDERS: Final[Mapping[Sort, Order[JobRow]]] = {
    "newest": Order(_newest, *_KEY, LAST_TIME),
    "oldest": Order(_oldest, *_KEY, FIRST_TIME),
}


def jobs_of(
    organisation_id: OrganisationId,
    *,
    status: jobs.Status | None = None,
    kind: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> KeysetList[Sort, JobRow]:
    """Select jobs that were created within a time."""
    since, until = within(since, until)
    filters = {"status": status, "kind": kind, "since": since, "until": until}
    return KeysetList(_ORDERS, {"organisation_id": organisation_id} | filters)


def within(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """Return both bounds of a time; the database cannot compute with what is far outside them."""
    return max(since or EARLIEST, EARLIEST), min(until or LATEST, LATEST)


async def find(conn: Connection, job_id: JobId, *, now: datetime) -> JobRow:
    """Return a job that has not expired yet."""
    row = await jobs.get(conn, job_id)
    if row.expires_at is not None and row.expires_at <= now:
        raise NotFound(f"There is no job {job_id}; it has expired.")
    return row


async def delete(conn: Connection, job_id: JobId) -> None:
    """Delete an ended job: readers no longer see it at once, its rows go within about a minute."""
    if not await queries.delete_job(conn, job_id=job_id):
        status = (await jobs.get(conn, job_id)).status
        raise Conflict(f"The job is {status}: cancel it first.")
