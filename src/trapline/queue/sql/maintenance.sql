-- name: SleepyLanes :many
-- Lanes that look empty. A closer look, under a lock, decides.
SELECT l.id FROM queue.lane l
WHERE l.open AND l.awake AND l.created_at < now() - interval '5 seconds'
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
LIMIT sqlc.arg(most)::integer;

-- name: LockLane :one
-- Hold a lane so that nobody can add a task to it; nothing when someone is about to.
SELECT id FROM queue.lane WHERE id = sqlc.arg(lane_id) FOR UPDATE SKIP LOCKED;

-- name: SleepLane :execrows
-- Put an empty lane to sleep. Its row is locked, so what is not seen here cannot be there.
UPDATE queue.lane l SET awake = false
WHERE l.id = sqlc.arg(lane_id) AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id);

-- name: ClosedLanes :many
-- Lanes of jobs that have ended: what still stands in them was cancelled.
SELECT l.id FROM queue.lane l JOIN queue.job j ON j.id = l.job_id
WHERE j.status IN ('completed', 'failed', 'cancelled') AND (j.overflow = 0 OR j.status = 'cancelled')
LIMIT sqlc.arg(most)::integer;

-- name: ClearLane :execrows
-- Remove queued rows of a lane whose job was cancelled, a part at a time.
DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(
    SELECT q.ctid FROM queue.ready q WHERE q.lane_id = sqlc.arg(lane_id) LIMIT sqlc.arg(most)::integer));

-- name: ClearWaiting :execrows
-- The same for rows that wait for their time.
DELETE FROM queue.waiting w WHERE w.lane_id = sqlc.arg(lane_id);

-- name: DropLane :execrows
-- Remove a lane that nothing names any more.
DELETE FROM queue.lane l
WHERE l.id = sqlc.arg(lane_id)
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
    AND NOT EXISTS (SELECT FROM queue.leased d WHERE d.lane_id = l.id)
    AND NOT EXISTS (SELECT FROM queue.waiting w WHERE w.lane_id = l.id);

-- name: DropExpiredKeys :execrows
-- Unique keys whose window is over, a part at a time.
DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
    SELECT e.ctid FROM queue.unique_key e WHERE e.expires_at <= now()
    ORDER BY e.expires_at LIMIT sqlc.arg(most)::integer));

-- name: DropOldAgents :execrows
-- Agents that ended long ago.
DELETE FROM queue.agent WHERE finished_at < now() - sqlc.arg(keep)::interval;

-- name: DropIdleGates :execrows
-- Gates that nothing uses and nobody touched for long.
DELETE FROM queue.gate g
WHERE g.updated_at < now() - sqlc.arg(keep)::interval AND g.in_flight = 0
    AND NOT EXISTS (SELECT FROM queue.lane l WHERE l.gate_id = g.id);

-- name: AddStatistics :exec
-- What a worker did since it last said so.
INSERT INTO queue.statistic (kind, minute, completed, failed, skipped, retried, stalled, seconds)
SELECT * FROM unnest(
    sqlc.arg(kinds)::text[], sqlc.arg(minutes)::timestamptz[], sqlc.arg(completed)::bigint[],
    sqlc.arg(failed)::bigint[], sqlc.arg(skipped)::bigint[], sqlc.arg(retried)::bigint[],
    sqlc.arg(stalled)::bigint[], sqlc.arg(seconds)::double precision[]);

-- name: FoldStatistics :one
-- Make one row a kind and minute of the deltas of minutes that are over.
WITH gone AS (
    DELETE FROM queue.statistic WHERE NOT folded AND minute < now() - interval '2 minutes' RETURNING *
),
folded AS (
    INSERT INTO queue.statistic (kind, minute, completed, failed, skipped, retried, stalled, seconds, folded)
    SELECT kind, minute, sum(completed), sum(failed), sum(skipped), sum(retried), sum(stalled),
           sum(seconds), true
    FROM gone GROUP BY kind, minute RETURNING 1
)
SELECT count(*) AS "rows!" FROM folded;

-- name: NoteDuty :exec
-- When a duty ran, and how it went.
INSERT INTO queue.duty (name, ran_at, took, did, error)
VALUES (sqlc.arg(name), now(), sqlc.arg(took), sqlc.arg(did), sqlc.narg(error))
ON CONFLICT (name) DO UPDATE
SET ran_at = excluded.ran_at, took = excluded.took, did = excluded.did, error = excluded.error;

-- name: BloatedIndexes :many
-- Indexes of the churning tables that take far more room than their rows need.
SELECT c.oid::regclass::text AS "name!", pg_relation_size(c.oid) AS "bytes!"
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = 'queue' AND t.relname IN ('ready', 'leased', 'waiting', 'lease', 'job', 'gate')
    AND pg_relation_size(c.oid) > sqlc.arg(least_bytes)::bigint
    AND pg_relation_size(c.oid) > 4 * 48 * greatest(t.reltuples, 0);

-- name: Depths :many
-- What is left to do, by kind of job, and since when.
SELECT kind, sum(remaining)::bigint AS "remaining!", min(created_at) AS "oldest!", count(*) AS "jobs!"
FROM queue.job WHERE status IN ('pending', 'running', 'paused') AND remaining > 0
GROUP BY kind;
