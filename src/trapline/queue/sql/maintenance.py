"""Typed functions of maintenance.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection


class BloatedIndexesRow(Struct, frozen=True, gc=False):
    name: str
    bytes: int


class QueueDepthsRow(Struct, frozen=True, gc=False):
    kind: str
    remaining: int
    oldest: datetime
    jobs: int


_IDLE_LANES: Final = """
-- name: IdleLanes
SELECT l.id FROM queue.lane l
WHERE l.open AND l.awake AND l.created_at < now() - interval '5 seconds'
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
LIMIT $1::integer
"""


async def idle_lanes(conn: Connection, *, most: int) -> list[int]:
    """Lanes that seem empty; SleepLane decides under a lock."""
    return [row[0] for row in await conn.fetch(_IDLE_LANES, most)]


_LOCK_LANE: Final = """
-- name: LockLane
SELECT id FROM queue.lane WHERE id = $1 FOR UPDATE SKIP LOCKED
"""


async def lock_lane(conn: Connection, *, lane_id: int) -> int | None:
    """Lock a lane against new tasks; no row while another transaction adds one."""
    value: int | None = await conn.fetchval(_LOCK_LANE, lane_id)
    return value


_SLEEP_LANE: Final = """
-- name: SleepLane
UPDATE queue.lane l SET awake = false
WHERE l.id = $1 AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
"""


async def sleep_lane(conn: Connection, *, lane_id: int) -> int:
    """Put an empty lane to sleep. The caller has locked its row, so no task can be added unseen."""
    return int((await conn.execute(_SLEEP_LANE, lane_id)).rpartition(" ")[2])


_CLOSED_LANES: Final = """
-- name: ClosedLanes
SELECT l.id FROM queue.lane l JOIN queue.job j ON j.id = l.job_id
WHERE j.status IN ('completed', 'failed', 'cancelled') AND (j.overflow = 0 OR j.status = 'cancelled')
LIMIT $1::integer
"""


async def closed_lanes(conn: Connection, *, most: int) -> list[int]:
    """Lanes of ended jobs; their queued rows were cancelled."""
    return [row[0] for row in await conn.fetch(_CLOSED_LANES, most)]


_CLEAR_LANE: Final = """
-- name: ClearLane
DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(
    SELECT q.ctid FROM queue.ready q WHERE q.lane_id = $1 LIMIT $2::integer))
"""


async def clear_lane(conn: Connection, *, lane_id: int, most: int) -> int:
    """Delete ready rows of the lane of a cancelled job, in batches."""
    return int((await conn.execute(_CLEAR_LANE, lane_id, most)).rpartition(" ")[2])


_CLEAR_WAITING: Final = """
-- name: ClearWaiting
DELETE FROM queue.waiting w WHERE w.lane_id = $1
"""


async def clear_waiting(conn: Connection, *, lane_id: int) -> int:
    """As ClearLane, for waiting rows."""
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
    """Delete a lane without references."""
    return int((await conn.execute(_DROP_LANE, lane_id)).rpartition(" ")[2])


_DROP_EXPIRED_KEYS: Final = """
-- name: DropExpiredKeys
DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
    SELECT e.ctid FROM queue.unique_key e WHERE e.expires_at <= now()
    ORDER BY e.expires_at LIMIT $1::integer))
"""


async def drop_expired_keys(conn: Connection, *, most: int) -> int:
    """Delete unique keys whose window is over, in batches."""
    return int((await conn.execute(_DROP_EXPIRED_KEYS, most)).rpartition(" ")[2])


_DROP_OLD_AGENTS: Final = """
-- name: DropOldAgents
DELETE FROM queue.agent WHERE finished_at < now() - $1::interval
"""


async def drop_old_agents(conn: Connection, *, keep: timedelta) -> int:
    """Delete agents that ended long ago."""
    return int((await conn.execute(_DROP_OLD_AGENTS, keep)).rpartition(" ")[2])


_DROP_IDLE_GATES: Final = """
-- name: DropIdleGates
DELETE FROM queue.gate g
WHERE g.updated_at < now() - $1::interval AND g.in_flight = 0
    AND NOT EXISTS (SELECT FROM queue.lane l WHERE l.gate_id = g.id)
"""


async def drop_idle_gates(conn: Connection, *, keep: timedelta) -> int:
    """Delete gates without lanes that were not used for long."""
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
    """Add a worker's statistics since its last flush."""
    await conn.execute(
        _ADD_STATISTICS, kinds, minutes, completed, failed, skipped, retried, stalled, seconds
    )


_MERGE_STATISTICS: Final = """
-- name: MergeStatistics
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


async def merge_statistics(conn: Connection) -> int:
    """Merge the deltas of past minutes into one row for each kind and minute."""
    value: int = await conn.fetchval(_MERGE_STATISTICS)
    return value


_RECORD_DUTY: Final = """
-- name: RecordDuty
INSERT INTO queue.duty (name, ran_at, took, did, error)
VALUES ($1, now(), $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET ran_at = excluded.ran_at, took = excluded.took, did = excluded.did, error = excluded.error
"""


async def record_duty(
    conn: Connection, *, name: str, took: timedelta, did: int, error: str | None
) -> None:
    """Record a run of a duty."""
    await conn.execute(_RECORD_DUTY, name, took, did, error)


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
    """Indexes of the churning tables that are far larger than their rows need."""
    return [BloatedIndexesRow(*row) for row in await conn.fetch(_BLOATED_INDEXES, least_bytes)]


_QUEUE_DEPTHS: Final = """
-- name: QueueDepths
SELECT kind, sum(remaining)::bigint AS "remaining!", min(created_at) AS "oldest!", count(*) AS "jobs!"
FROM queue.job WHERE status IN ('pending', 'running', 'paused') AND remaining > 0
GROUP BY kind
"""


async def queue_depths(conn: Connection) -> list[QueueDepthsRow]:
    """Remaining tasks by kind of job, and the age of the oldest job."""
    return [QueueDepthsRow(*row) for row in await conn.fetch(_QUEUE_DEPTHS)]
