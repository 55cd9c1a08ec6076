"""Typed functions of sites.sql, made by `make sql`: edit that file instead."""

from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId


class OpenJobsOfRow(Struct, frozen=True, gc=False):
    job_id: JobId
    status: str


_OPEN_JOBS_OF: Final = """
-- name: OpenJobsOf
SELECT id AS job_id, status FROM queue.job
WHERE organisation_id = $1
    AND status IN ('pending', 'running', 'paused')
    AND options ->> 'site_id' = $2::text
ORDER BY id
"""


async def open_jobs_of(
    conn: Connection, *, organisation_id: OrganisationId, site_id: str
) -> list[OpenJobsOfRow]:
    """Open jobs of a site."""
    return [
        OpenJobsOfRow(*row) for row in await conn.fetch(_OPEN_JOBS_OF, organisation_id, site_id)
    ]


_ENDED_JOBS_OF: Final = """
-- name: EndedJobsOf
SELECT id AS job_id FROM queue.job
WHERE organisation_id = $1
    AND status IN ('completed', 'failed', 'cancelled')
    AND options ->> 'site_id' = $2::text
ORDER BY id
LIMIT $3::integer
"""


async def ended_jobs_of(
    conn: Connection, *, organisation_id: OrganisationId, site_id: str, most: int
) -> list[JobId]:
    """Ended jobs of a site that have not expired."""
    return [row[0] for row in await conn.fetch(_ENDED_JOBS_OF, organisation_id, site_id, most)]
