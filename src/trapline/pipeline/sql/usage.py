"""Typed functions of usage.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId


class KeysOfJobsRow(Struct, frozen=True, gc=False):
    job_id: JobId
    api_key: str


class WorkloadRow(Struct, frozen=True, gc=False):
    active: int
    remaining: int
    last_success: datetime | None


_KEYS_OF_JOBS: Final = """
-- name: KeysOfJobs
SELECT id AS "job_id!", (metadata ->> 'api_key')::text AS "api_key!"
FROM queue.job WHERE id = ANY ($1::uuid[]) AND metadata ->> 'api_key' IS NOT NULL
"""


async def keys_of_jobs(conn: Connection, *, job_ids: Sequence[JobId]) -> list[KeysOfJobsRow]:
    """The API keys that submitted jobs."""
    return [KeysOfJobsRow(*row) for row in await conn.fetch(_KEYS_OF_JOBS, job_ids)]


_WORKLOAD: Final = """
-- name: Workload
SELECT
    (SELECT count(*) FROM queue.leased d JOIN queue.lane l ON l.id = d.lane_id
     WHERE l.organisation_id = $1) AS "active!",
    (SELECT coalesce(sum(j.remaining), 0)::bigint FROM queue.job j
     WHERE j.organisation_id = $1
        AND j.status IN ('pending', 'running', 'paused')) AS "remaining!",
    (SELECT max(j.finished_at) FROM queue.job j
     WHERE j.organisation_id = $1 AND j.status = 'completed') AS "last_success?"
"""


async def workload(conn: Connection, *, organisation_id: OrganisationId) -> WorkloadRow:
    """Running and remaining tasks of an organisation, and its last completed job's time."""
    (row,) = await conn.fetch(_WORKLOAD, organisation_id)
    return WorkloadRow(*row)
