"""Typed functions of maintenance.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class BloatedIndexesRow(Struct, frozen=True, gc=False):
    name: str
    bytes: int


class DepthsRow(Struct, frozen=True, gc=False):
    kind: str
    remaining: int
    oldest: datetime
    jobs: int


_SLEEPY_LANES: Final = """
-- name: SleepyLanes
SELECT l.id FROM queue.lane l
WHERE l.open AND l.awake AND l.created_at < now() - interval '5 seconds'
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
LIMIT $1::integer
"""


async def sleepy_lanes(conn: Connection, *, most: int) -> list[int]:
    """Lanes that look empty. A closer look, under a lock, decides."""
    return [row[0] for row in await conn.fetch(_SLEEPY_LANES, most)]


_LOCK_LANE: Final = """
-- name: LockLane
SELECT id FROM queue.lane WHERE id = $1 FOR UPDATE SKIP LOCKED
"""


async def lock_lane(conn: Connection, *, lane_id: int) -> int | None:
    """Hold a lane so that nobody can add a task to it; nothing when someone is about to."""
    value: int | None = await conn.fetchval(_LOCK_LANE, lane_id)
    return value


_SLEEP_LANE: Final = """
-- name: SleepLane
UPDATE queue.lane l SET awake = false
WHERE l.id = $1 AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
"""


async def sleep_lane(conn: Connection, *, lane_id: int) -> int:
    """Put an empty lane to sleep. Its row is locked, so what is not seen here cannot be there."""
    return int((await conn.execute(_SLEEP_LANE, lane_id)).rpartition(" ")[2])


_CLOSED_LANES: Final = """
-- name: ClosedLanes
SELECT l.id FROM queue.lane l JOIN queue.job j ON j.id = l.job_id
WHERE j.status IN ('completed', 'failed', 'cancelled') AND (j.overflow = 0 OR j.status = 'cancelled')
LIMIT $1::integer
"""


async def closed_lanes(conn: Connection, *, most: int) -> list[int]:
    """Lanes of jobs that have ended: what still stands in them was cancelled."""
    return [row[0] for row in await conn.fetch(_CLOSED_LANES, most)]


_CLEAR_LANE: Final = """
-- name: ClearLane
DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(
    SELECT q.ctid FROM queue.ready q WHERE q.lane_id = $1 LIMIT $2::integer))
"""


async def clear_lane(conn: Connection, *, lane_id: int, most: int) -> int:
    """Remove queued rows of a lane whose job was cancelled, a part at a time."""
    return int((await conn.execute(_CLEAR_LANE, lane_id, most)).rpartition(" ")[2])


_CLEAR_WAITING: Final = """
-- name: ClearWaiting
DELETE FROM queue.waiting w WHERE w.lane_id = $1
"""


async def clear_waiting(conn: Connection, *, lane_id: int) -> int:
    """The same for rows that wait for their time."""
    return int((await conn.execute(_CLEAR_WAITING, lane_id)).rpartition(" ")[2])


_DROP_LANE: Final = """
-- name: DropLane
DELETE FROM queue.lane l
WHERE l.id = $1
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
    AND NOT EXISTS (SELECT FROM queue.leased d WHERE d.lane_id = l.id)
    AND NOT EXISTS (SELECT FROM queue.waiting w WHERE w.lane_id = l.id)
"""


async def drop_lane(conn: Connection, *, lane_id: int) -> int:
    """Remove a lane that nothing names any more."""
    return int((await conn.execute(_DROP_LANE, lane_id)).rpartition(" ")[2])


_DROP_EXPIRED_KEYS: Final = """
-- name: DropExpiredKeys
DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
    SELECT e.ctid FROM queue.unique_key e WHERE e.expires_at <= now()
    ORDER BY e.expires_at LIMIT $1::integer))
"""


async def drop_expired_keys(conn: Connection, *, most: int) -> int:
    """Unique keys whose window is over, a part at a time."""
    return int((await conn.execute(_DROP_EXPIRED_KEYS, most)).rpartition(" ")[2])


_DROP_OLD_AGENTS: Final = """
-- name: DropOldAgents
DELETE FROM queue.agent WHERE finished_at < now() - $1::interval
"""


async def drop_old_agents(conn: Connection, *, keep: timedelta) -> int:
    """Agents that ended long ago."""
    return int((await conn.execute(_DROP_OLD_AGENTS, keep)).rpartition(" ")[2])


_DROP_IDLE_GATES: Final = """
-- name: DropIdleGates
DELETE FROM queue.gate g
WHERE g.updated_at < now() - $1::interval AND g.in_flight = 0
    AND NOT EXISTS (SELECT FROM queue.lane l WHERE l.gate_id = g.id)
"""


async def drop_idle_gates(conn: Connection, *, keep: timedelta) -> int:
    """Gates that nothing uses and nobody touched for long."""
    return int((await conn.execute(_DROP_IDLE_GATES, keep)).rpartition(" ")[2])


_ADD_STATISTICS: Final = """
-- name: AddStatistics
INSERT INTO queue.statistic (kind, minute, completed, failed, skipped, retried, stalled, seconds)
SELECT * FROM unnest(
    $1::text[], $2::timestamptz[], $3::bigint[],
    $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::double precision[])
"""


async def add_statistics(
    conn: Connection,
    *,
    kinds: Sequence[str],
    minutes: Sequence[datetime],
    completed: Sequence[int],
    failed: Sequence[int],
    skipped: Sequence[int],
    retried: Sequence[int],
    stalled: Sequence[int],
    seconds: Sequence[float],
) -> None:
    """What a worker did since it last said so."""
    await conn.execute(
        _ADD_STATISTICS, kinds, minutes, completed, failed, skipped, retried, stalled, seconds
    )


_FOLD_STATISTICS: Final = """
-- name: FoldStatistics
WITH gone AS (
    DELETE FROM queue.statistic WHERE NOT folded AND minute < now() - interval '2 minutes' RETURNING *
),
folded AS (
    INSERT INTO queue.statistic (kind, minute, completed, failed, skipped, retried, stalled, seconds, folded)
    SELECT kind, minute, sum(completed), sum(failed), sum(skipped), sum(retried), sum(stalled),
           sum(seconds), true
    FROM gone GROUP BY kind, minute RETURNING 1
)
SELECT count(*) AS "rows!" FROM folded
"""


async def fold_statistics(conn: Connection) -> int:
    """Make one row a kind and minute of the deltas of minutes that are over."""
    value: int = await conn.fetchval(_FOLD_STATISTICS)
    return value


_NOTE_DUTY: Final = """
-- name: NoteDuty
INSERT INTO queue.duty (name, ran_at, took, did, error)
VALUES ($1, now(), $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET ran_at = excluded.ran_at, took = excluded.took, did = excluded.did, error = excluded.error
"""


async def note_duty(
    conn: Connection, *, name: str, took: timedelta, did: int, error: str | None
) -> None:
    """When a duty ran, and how it went."""
    await conn.execute(_NOTE_DUTY, name, took, did, error)


_BLOATED_INDEXES: Final = """
-- name: BloatedIndexes
SELECT c.oid::regclass::text AS "name!", pg_relation_size(c.oid) AS "bytes!"
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = 'queue' AND t.relname IN ('ready', 'leased', 'waiting', 'lease', 'job', 'gate')
    AND pg_relation_size(c.oid) > $1::bigint
    AND pg_relation_size(c.oid) > 4 * 48 * greatest(t.reltuples, 0)
"""


async def bloated_indexes(conn: Connection, *, least_bytes: int) -> list[BloatedIndexesRow]:
    """Indexes of the churning tables that take far more room than their rows need."""
    return [BloatedIndexesRow(*row) for row in await conn.fetch(_BLOATED_INDEXES, least_bytes)]


_DEPTHS: Final = """
-- name: Depths
SELECT kind, sum(remaining)::bigint AS "remaining!", min(created_at) AS "oldest!", count(*) AS "jobs!"
FROM queue.job WHERE status IN ('pending', 'running', 'paused') AND remaining > 0
GROUP BY kind
"""


async def depths(conn: Connection) -> list[DepthsRow]:
    """What is left to do, by kind of job, and since when."""
    return [DepthsRow(*row) for row in await conn.fetch(_DEPTHS)]
