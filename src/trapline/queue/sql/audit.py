"""Typed functions of audit.sql, made by `make sql`: edit that file instead."""

from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import JobId, OrganisationId, TaskId


class JobDifferencesRow(Struct, frozen=True, gc=False):
    id: JobId
    counter: str
    counter_says: int
    rows_say: int


class GateDifferencesRow(Struct, frozen=True, gc=False):
    name: str
    in_flight: int
    rows_say: int


class QuotaDifferencesRow(Struct, frozen=True, gc=False):
    organisation_id: OrganisationId
    active: int
    rows_say: int


class LostTasksRow(Struct, frozen=True, gc=False):
    id: int
    problem: str


class RepeatedEventsRow(Struct, frozen=True, gc=False):
    job_id: JobId
    task_id: TaskId
    type: str
    events: int


class StuckTasksRow(Struct, frozen=True, gc=False):
    task_id: TaskId
    problem: str


_JOB_DIFFERENCES: Final = """
-- name: JobDifferences
SELECT j.id, x.name AS "counter!", x.counted AS "counter_says!", x.actual AS "rows_say!"
FROM queue.job j
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE d.status = 0) AS completed,
           count(*) FILTER (WHERE d.status = 1) AS failed,
           count(*) FILTER (WHERE d.status = 2) AS skipped,
           count(*) FILTER (WHERE o.task_id IS NULL) AS total,
           count(*) FILTER (WHERE o.task_id IS NOT NULL) AS overflow,
           count(*) FILTER (WHERE t.counted AND o.task_id IS NULL AND d.status IS DISTINCT FROM 2) AS reserved,
           count(*) FILTER (WHERE t.source = 1 AND o.task_id IS NULL) AS found,
           count(*) FILTER (WHERE t.source = 2 AND o.task_id IS NULL) AS from_sitemap
    FROM queue.task t
    LEFT JOIN queue.done d ON d.task_id = t.id
    LEFT JOIN queue.overflow o ON o.job_id = t.job_id AND o.task_id = t.id
    WHERE t.job_id = j.id
) r
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM queue.ready q WHERE q.lane_id IN (SELECT l.id FROM queue.lane l WHERE l.job_id = j.id))
         + (SELECT count(*) FROM queue.waiting w WHERE w.lane_id IN (SELECT l.id FROM queue.lane l WHERE l.job_id = j.id))
         AS queued,
           (SELECT count(*) FROM queue.leased d WHERE d.lane_id IN (SELECT l.id FROM queue.lane l WHERE l.job_id = j.id))
         AS active,
           (SELECT count(*) FROM queue.leased d WHERE d.slots & 2 > 0
            AND d.lane_id IN (SELECT l.id FROM queue.lane l WHERE l.job_id = j.id)) AS slots
) n
CROSS JOIN LATERAL (VALUES
    ('completed', j.completed, r.completed),
    ('failed', j.failed, r.failed),
    ('skipped', j.skipped, r.skipped),
    ('total', j.total, r.total),
    ('overflow', j.overflow, r.overflow),
    ('found', j.found, r.found),
    ('from sitemap', j.from_sitemap, r.from_sitemap),
    ('reserved', j.reserved, r.reserved),
    ('remaining', j.remaining,
        CASE WHEN j.status IN ('pending', 'running', 'paused') THEN n.queued + n.active ELSE 0 END),
    ('cancelled', j.cancelled, j.total - r.completed - r.failed - r.skipped - j.remaining),
    ('active', j.active::bigint, n.slots),
    ('events', j.last_event, (SELECT count(*) FROM queue.event e WHERE e.job_id = j.id)),
    ('last event', j.last_event,
        coalesce((SELECT max(e.number) FROM queue.event e WHERE e.job_id = j.id), 0))
) x(name, counted, actual)
WHERE x.counted <> x.actual AND ($1::uuid IS NULL OR j.id = $1)
ORDER BY j.id, x.name
"""


async def job_differences(conn: Connection, *, job_id: JobId | None) -> list[JobDifferencesRow]:
    """Jobs whose counters differ from the rows they count."""
    return [JobDifferencesRow(*row) for row in await conn.fetch(_JOB_DIFFERENCES, job_id)]


_GATE_DIFFERENCES: Final = """
-- name: GateDifferences
SELECT g.name, g.in_flight, n.actual AS "rows_say!"
FROM queue.gate g
CROSS JOIN LATERAL (
    SELECT count(*) AS actual FROM queue.leased d JOIN queue.lane l ON l.id = d.lane_id
    WHERE l.gate_id = g.id AND d.slots & 1 > 0
) n
WHERE g.in_flight <> n.actual
ORDER BY g.name
"""


async def gate_differences(conn: Connection) -> list[GateDifferencesRow]:
    """Gates whose tasks in flight differ from the leased rows."""
    return [GateDifferencesRow(*row) for row in await conn.fetch(_GATE_DIFFERENCES)]


_QUOTA_DIFFERENCES: Final = """
-- name: QuotaDifferences
SELECT q.organisation_id AS "organisation_id!", q.active, n.actual AS "rows_say!"
FROM queue.quota q
CROSS JOIN LATERAL (
    SELECT count(*) AS actual FROM queue.leased d JOIN queue.lane l ON l.id = d.lane_id
    WHERE l.organisation_id = q.organisation_id AND d.slots & 4 > 0
) n
WHERE q.active <> n.actual
ORDER BY q.organisation_id
"""


async def quota_differences(conn: Connection) -> list[QuotaDifferencesRow]:
    """Organisations whose slots differ from the leased rows."""
    return [QuotaDifferencesRow(*row) for row in await conn.fetch(_QUOTA_DIFFERENCES)]


_LOST_TASKS: Final = """
-- name: LostTasks
SELECT t.id, 'is in no table' AS "problem!"
FROM queue.task t JOIN queue.job j ON j.id = t.job_id
WHERE j.status IN ('pending', 'running', 'paused')
    AND NOT EXISTS (SELECT FROM queue.done d WHERE d.task_id = t.id)
    AND NOT EXISTS (SELECT FROM queue.leased d WHERE d.task_id = t.id)
    AND NOT EXISTS (SELECT FROM queue.waiting d WHERE d.task_id = t.id)
    AND NOT EXISTS (SELECT FROM queue.overflow d WHERE d.task_id = t.id)
    AND NOT EXISTS (SELECT FROM queue.ready d WHERE d.task_id = t.id)
UNION ALL
SELECT r.task_id, 'is ready in a lane that is not there'
FROM queue.ready r WHERE NOT EXISTS (SELECT FROM queue.lane l WHERE l.id = r.lane_id)
ORDER BY 1 LIMIT 1000
"""


async def lost_tasks(conn: Connection) -> list[LostTasksRow]:
    """Tasks of open jobs that are in no table, and ready rows without a lane."""
    return [LostTasksRow(*row) for row in await conn.fetch(_LOST_TASKS)]


_REPEATED_EVENTS: Final = """
-- name: RepeatedEvents
SELECT e.job_id, e.task_id AS "task_id!", e.type, count(*) AS "events!"
FROM queue.event e
WHERE e.task_id IS NOT NULL AND e.type IN ('page', 'item')
    AND ($1::uuid IS NULL OR e.job_id = $1)
GROUP BY e.job_id, e.task_id, e.type
HAVING count(*) > 1
ORDER BY e.job_id, e.task_id
LIMIT 1000
"""


async def repeated_events(conn: Connection, *, job_id: JobId | None) -> list[RepeatedEventsRow]:
    """Tasks whose result is in the event log more than once."""
    return [RepeatedEventsRow(*row) for row in await conn.fetch(_REPEATED_EVENTS, job_id)]


_STUCK_TASKS: Final = """
-- name: StuckTasks
SELECT d.task_id AS "task_id!", CASE
    WHEN l.expires_at < now() THEN 'its lease expired and was not swept'
    ELSE 'its agent has ended and its lease is still renewed' END AS "problem!"
FROM queue.leased d
JOIN queue.lease l ON l.id = d.lease_id
LEFT JOIN queue.agent a ON a.id = l.agent_id
WHERE l.expires_at < now() - interval '5 minutes'
    OR a.finished_at < now() - interval '5 minutes' AND l.claimed_at < a.finished_at
        AND l.expires_at > now()
ORDER BY d.task_id
LIMIT 1000
"""


async def stuck_tasks(conn: Connection) -> list[StuckTasksRow]:
    """Leased tasks that nobody will finish: their lease expired long ago and was not swept, or is renewed though its agent has ended."""
    return [StuckTasksRow(*row) for row in await conn.fetch(_STUCK_TASKS)]
