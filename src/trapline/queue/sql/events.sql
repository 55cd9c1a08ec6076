-- name: JobEvents :many
-- A job's events after a number, in order.
SELECT * FROM queue.event
WHERE job_id = sqlc.arg(job_id) AND number > sqlc.arg(after)::bigint
ORDER BY number LIMIT sqlc.arg(most)::integer;

-- name: OpenConsumer :exec
-- Add a consumer at the start of the event log.
INSERT INTO queue.consumer (name) VALUES (sqlc.arg(name)) ON CONFLICT DO NOTHING;

-- name: LockConsumer :one
-- The position of a consumer; no row while another process holds it.
SELECT xid::text AS "xid!", event_id FROM queue.consumer
WHERE name = sqlc.arg(name) FOR UPDATE SKIP LOCKED;

-- name: EventsSince :many
-- Events of all jobs after a position, without those of transactions that may still commit.
SELECT e.xid::text AS "xid!", e.id, e.job_id, e.number, e.organisation_id, e.type, e.task_id, e.data, e.created_at
FROM queue.event e
WHERE (e.xid, e.id) > (sqlc.arg(xid)::text::xid8, sqlc.arg(event_id)::bigint)
    AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
    AND (sqlc.narg(types)::text[] IS NULL OR e.type = ANY (sqlc.narg(types)))
ORDER BY e.xid, e.id LIMIT sqlc.arg(most)::integer;

-- name: MoveConsumer :exec
-- Store the position of a consumer.
UPDATE queue.consumer
SET xid = sqlc.arg(xid)::text::xid8, event_id = sqlc.arg(event_id), updated_at = now()
WHERE name = sqlc.arg(name);
