-- name: IdleLanes :many
-- Lanes that seem empty; SleepLane decides under a lock.
SELECT l.id FROM queue.lane l
WHERE l.open AND l.awake AND l.created_at < now() - interval '5 seconds'
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
LIMIT sqlc.arg(most)::integer;

-- name: LockLane :one
-- Lock a lane against new tasks; no row while another transaction adds one.
SELECT id FROM queue.lane WHERE id = sqlc.arg(lane_id) FOR UPDATE SKIP LOCKED;

-- name: SleepLane :execrows
-- Put an empty lane to sleep. The caller has locked its row, so no task can be added unseen.
UPDATE queue.lane l SET awake = false
WHERE l.id = sqlc.arg(lane_id) AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id);

-- name: ClosedLanes :many
-- Lanes of ended jobs; their queued rows were cancelled.
SELECT l.id FROM queue.lane l JOIN queue.job j ON j.id = l.job_id
WHERE j.status IN ('completed', 'failed', 'cancelled') AND (j.overflow = 0 OR j.status = 'cancelled')
LIMIT sqlc.arg(most)::integer;

-- name: ClearLane :execrows
-- Delete ready rows of the lane of a cancelled job, in batches.
DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(
    SELECT q.ctid FROM queue.ready q WHERE q.lane_id = sqlc.arg(lane_id) LIMIT sqlc.arg(most)::integer));

-- name: ClearWaiting :execrows
-- As ClearLane, for waiting rows.
DELETE FROM queue.waiting w WHERE w.lane_id = sqlc.arg(lane_id);

-- name: DropLane :execrows
-- Delete a lane without references.
DELETE FROM queue.lane l
WHERE l.id = sqlc.arg(lane_id)
    AND NOT EXISTS (SELECT FROM queue.ready r WHERE r.lane_id = l.id)
    AND NOT EXISTS (SELECT FROM queue.leased d WHERE d.lane_id = l.id)
    AND NOT EXISTS (SELECT FROM queue.waiting w WHERE w.lane_id = l.id);

-- name: DropExpiredKeys :execrows
-- Delete unique keys whose window is over, in batches.
DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
    SELECT e.ctid FROM queue.unique_key e WHERE e.expires_at <= now()
    ORDER BY e.expires_at LIMIT sqlc.arg(most)::integer));

-- name: DropOldAgents :execrows
-- Delete agents that ended long ago.
DELETE FROM queue.agent WHERE finished_at < now() - sqlc.arg(keep)::interval;

-- name: DropIdleGates :execrows
-- Delete gates without lanes that were not used for long.
DELETE FROM queue.gate g
WHERE g.updated_at < now() - sqlc.arg(keep)::interval AND g.in_flight = 0
    AND NOT EXISTS (SELECT FROM queue.lane l WHERE l.gate_id = g.id);

-- name: AddStatistics :exec
-- Add a worker's statistics since its last flush.
INSERT INTO queue.statistic (kind, minute, completed, failed, skipped, retried, stalled, seconds)
SELECT * FROM unnest(
    sqlc.arg(kinds)::text[], sqlc.arg(minutes)::timestamptz[], sqlc.arg(completed)::bigint[],
    sqlc.arg(failed)::bigint[], sqlc.arg(skipped)::bigint[], sqlc.arg(retried)::bigint[],
    sqlc.arg(stalled)::bigint[], sqlc.arg(seconds)::double precision[]);

-- name: MergeStatistics :one
-- Merge the deltas of past minutes into one row for each kind and minute.
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

-- name: RecordDuty :exec
-- Record a run of a duty.
INSERT INTO queue.duty (name, ran_at, took, did, error)
VALUES (sqlc.arg(name), now(), sqlc.arg(took), sqlc.arg(did), sqlc.narg(error))
ON CONFLICT (name) DO UPDATE
SET ran_at = excluded.ran_at, took = excluded.took, did = excluded.did, error = excluded.error;

-- name: BloatedIndexes :many
-- Indexes of the churning tables that are far larger than their rows need.
SELECT c.oid::regclass::text AS "name!", pg_relation_size(c.oid) AS "bytes!"
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = 'queue' AND t.relname IN ('ready', 'leased', 'waiting', 'lease', 'job', 'gate')
    AND pg_relation_size(c.oid) > sqlc.arg(least_bytes)::bigint
    AND pg_relation_size(c.oid) > 4 * 48 * greatest(t.reltuples, 0);

-- name: QueueDepths :many
-- Remaining tasks by kind of job, and the age of the oldest job.
SELECT kind, sum(remaining)::bigint AS "remaining!", min(created_at) AS "oldest!", count(*) AS "jobs!"
FROM queue.job WHERE status IN ('pending', 'running', 'paused') AND remaining > 0
GROUP BY kind;
