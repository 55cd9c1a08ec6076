"""Typed functions of firecrawl_inbox.sql, made by `make sql`: edit that file instead."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, SourceId, TaskId


class IntakeRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    crawl: str
    source_id: SourceId
    job_id: JobId
    task_id: TaskId
    ended: str | None
    error: str | None
    pages: int
    created_at: datetime
    ended_at: datetime | None


_GET_INTAKE: Final = """
-- name: GetIntake
SELECT * FROM knowledge.intake
WHERE organisation_id = $1 AND crawl = $2
FOR UPDATE
"""


async def get_intake(
    conn: Connection, *, organisation_id: OrganisationId, crawl: str
) -> IntakeRow | None:
    """A remote Firecrawl crawl, locked while its messages are processed."""
    row = await conn.fetchrow(_GET_INTAKE, organisation_id, crawl)
    return None if row is None else IntakeRow(*row)


_LOCK_CRAWL: Final = """
-- name: LockCrawl
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.intake ' || $1::text, 0))
"""


async def lock_crawl(conn: Connection, *, crawl: str) -> None:
    """Serialise callers that process a crawl's first message."""
    await conn.execute(_LOCK_CRAWL, crawl)


_ADD_INTAKE: Final = """
-- name: AddIntake
INSERT INTO knowledge.intake (organisation_id, crawl, source_id, job_id, task_id)
VALUES (
    $1, $2, $3, $4,
    $5
)
RETURNING *
"""


async def add_intake(
    conn: Connection,
    *,
    organisation_id: OrganisationId,
    crawl: str,
    source_id: SourceId,
    job_id: JobId,
    task_id: TaskId,
) -> IntakeRow:
    """Insert a remote crawl, and the job that indexes its pages."""
    (row,) = await conn.fetch(_ADD_INTAKE, organisation_id, crawl, source_id, job_id, task_id)
    return IntakeRow(*row)


_COUNT_INTAKE: Final = """
-- name: CountIntake
UPDATE knowledge.intake SET pages = pages + $1::bigint
WHERE organisation_id = $2 AND crawl = $3
"""


async def count_intake(
    conn: Connection, *, pages: int, organisation_id: OrganisationId, crawl: str
) -> None:
    """Add to the page count of a crawl."""
    await conn.execute(_COUNT_INTAKE, pages, organisation_id, crawl)


_END_INTAKE: Final = """
-- name: EndIntake
UPDATE knowledge.intake
SET ended = $1, error = $2, ended_at = now()
WHERE organisation_id = $3 AND crawl = $4 AND ended IS NULL
"""


async def end_intake(
    conn: Connection, *, ended: str, error: str | None, organisation_id: OrganisationId, crawl: str
) -> int:
    """Record the result of a crawl, once."""
    return int(
        (await conn.execute(_END_INTAKE, ended, error, organisation_id, crawl)).rpartition(" ")[2]
    )


_INTAKE_OF_JOB: Final = """
-- name: IntakeOfJob
SELECT * FROM knowledge.intake WHERE job_id = $1
"""


async def intake_of_job(conn: Connection, *, job_id: JobId) -> IntakeRow | None:
    """The remote crawl of a job."""
    row = await conn.fetchrow(_INTAKE_OF_JOB, job_id)
    return None if row is None else IntakeRow(*row)
