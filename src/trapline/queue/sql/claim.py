"""Typed functions of claim.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import AgentId, JobId, OrganisationId, TaskId, TraceId


class FinishAndClaimRow(Struct, frozen=True, gc=False):
    task_id: TaskId | None
    lane_id: int | None
    lease_id: int | None
    priority: int | None
    turn: int | None
    attempts: int | None
    stalls: int | None
    kind: str | None
    payload: str | None
    max_attempts: int | None
    timeout: timedelta | None
    deadline: datetime | None
    trace_id: TraceId | None
    blocked_by: str | None
    blocked_until: datetime | None
    job_id: JobId | None
    job_status: str | None


class ServedLanesRow(Struct, frozen=True, gc=False):
    id: int
    organisation_id: OrganisationId
    job_id: JobId
    gate_id: int
    priority: int
    limited: bool
    ready_at: datetime
    pending: bool
    zero_data_retention: bool


class PromoteRow(Struct, frozen=True, gc=False):
    promoted: int
    next_at: datetime | None


class StatesOfJobsRow(Struct, frozen=True, gc=False):
    id: JobId
    status: str


_FINISH_AND_CLAIM: Final = """
-- name: FinishAndClaim
SELECT * FROM queue.finish_and_claim(
    $1::bigint[],
    $2::bigint[],
    $3::text[],
    $4::queue.verdict[],
    $5::integer,
    $6::bigint,
    $7::queue.want[],
    $8::uuid[],
    $9::interval
)
"""


async def finish_and_claim(
    conn: Connection,
    *,
    leases: Sequence[int],
    tasks: Sequence[int],
    results: Sequence[str],
    outcomes: Sequence[
        tuple[
            int | None, int | None, int | None, int | None, str | None, str | None, datetime | None
        ]
    ],
    most_stalls: int,
    agent_id: AgentId,
    requests: Sequence[
        tuple[int | None, int | None, int | None, int | None, int | None, bool | None]
    ],
    starting: Sequence[UUID],
    lease_time: timedelta,
) -> list[FinishAndClaimRow]:
    """Finish attempts and claim tasks, in one round trip."""
    return [
        FinishAndClaimRow(*row)
        for row in await conn.fetch(
            _FINISH_AND_CLAIM,
            leases,
            tasks,
            results,
            outcomes,
            most_stalls,
            agent_id,
            requests,
            starting,
            lease_time,
        )
    ]


_SERVED_LANES: Final = """
-- name: ServedLanes
WITH RECURSIVE organisations AS (
    (SELECT l.organisation_id AS id FROM queue.lane l WHERE l.open AND l.awake
     ORDER BY l.organisation_id LIMIT 1)
    UNION ALL
    SELECT (SELECT l.organisation_id FROM queue.lane l
            WHERE l.open AND l.awake AND l.organisation_id > o.id
            ORDER BY l.organisation_id LIMIT 1)
    FROM organisations o WHERE o.id IS NOT NULL
)
SELECT l.id, l.organisation_id AS "organisation_id!", l.job_id AS "job_id!", l.gate_id, l.priority,
       (g.gap > interval '0' OR g.floor > interval '0' OR g.bound IS NOT NULL
        OR l.gap > interval '0' OR l.bound IS NOT NULL OR j.max_active IS NOT NULL
        OR t.max_concurrency IS NOT NULL OR t.max_pages_per_day IS NOT NULL) IS TRUE AS "limited!",
       g.ready_at, j.status = 'pending' AS "pending!",
       j.zero_data_retention AS "zero_data_retention!"
FROM organisations o
JOIN tenancy.organisation t ON t.id = o.id
CROSS JOIN LATERAL (
    SELECT * FROM queue.lane l
    WHERE l.organisation_id = o.id AND l.open AND l.awake
    ORDER BY l.priority, l.id LIMIT $1::integer
) l
CROSS JOIN LATERAL (SELECT * FROM queue.gate g WHERE g.id = l.gate_id OFFSET 0) g
CROSS JOIN LATERAL (
    SELECT j.max_active, j.status, j.zero_data_retention FROM queue.job j
    WHERE j.id = l.job_id OFFSET 0
) j
"""


async def served_lanes(conn: Connection, *, most_per_organisation: int) -> list[ServedLanesRow]:
    """The lanes that a worker may claim from: the best of each organisation."""
    return [ServedLanesRow(*row) for row in await conn.fetch(_SERVED_LANES, most_per_organisation)]


_PROMOTE: Final = """
-- name: Promote
SELECT promoted AS "promoted!", next_at FROM queue.promote($1::integer)
"""


async def promote(conn: Connection, *, most: int) -> PromoteRow | None:
    """Make due waiting tasks ready; return when the next one is due."""
    row = await conn.fetchrow(_PROMOTE, most)
    return None if row is None else PromoteRow(*row)


_STATES_OF_JOBS: Final = """
-- name: StatesOfJobs
SELECT id, status FROM queue.job
WHERE id = ANY ($1::uuid[]) AND status IN ('paused', 'cancelled', 'completed', 'failed')
"""


async def states_of_jobs(conn: Connection, *, jobs: Sequence[UUID]) -> list[StatesOfJobsRow]:
    """The states of those of these jobs whose tasks must not run."""
    return [StatesOfJobsRow(*row) for row in await conn.fetch(_STATES_OF_JOBS, jobs)]
