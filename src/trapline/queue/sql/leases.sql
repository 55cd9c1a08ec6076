-- name: RenewLeases :many
-- Extend leases; those that are not returned are lost.
UPDATE queue.lease
SET expires_at = clock_timestamp() + sqlc.arg(lease_time)::interval
WHERE id = ANY (sqlc.arg(leases)::bigint[]) AND expires_at > clock_timestamp()
RETURNING id;

-- name: ExpiredTasks :many
-- Tasks whose lease has expired, oldest first.
SELECT d.lease_id, d.task_id, t.kind
FROM (
    SELECT l.id FROM queue.lease l WHERE l.expires_at <= now()
    ORDER BY l.expires_at LIMIT sqlc.arg(most)::integer
) l
CROSS JOIN LATERAL (
    SELECT d.lease_id, d.task_id FROM queue.leased d WHERE d.lease_id = l.id OFFSET 0
) d
CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = d.task_id OFFSET 0) t
ORDER BY d.lease_id, d.task_id;

-- name: TasksOfAgents :many
-- Leased tasks of dead agents.
SELECT d.lease_id, d.task_id, t.kind
FROM queue.lease l
CROSS JOIN LATERAL (
    SELECT d.lease_id, d.task_id FROM queue.leased d WHERE d.lease_id = l.id OFFSET 0
) d
CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = d.task_id OFFSET 0) t
WHERE l.agent_id = ANY (sqlc.arg(agents)::bigint[])
ORDER BY d.lease_id, d.task_id;

-- name: DropExpiredLeases :execrows
-- Delete expired leases without tasks.
DELETE FROM queue.lease l
WHERE l.id = ANY (ARRAY(
    SELECT o.id FROM (
        SELECT i.id FROM queue.lease i WHERE i.expires_at <= now() - interval '1 second'
        ORDER BY i.expires_at LIMIT sqlc.arg(most)::integer
    ) o
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks FROM (
            SELECT FROM queue.leased d WHERE d.lease_id = o.id LIMIT 1) d
    ) d
    WHERE d.tasks = 0));

-- name: ReleaseGates :exec
-- Release the gate slots of tasks whose requests are over. Their gates open no earlier than not_before.
SELECT queue.release_gates(sqlc.arg(lease_ids)::bigint[], sqlc.arg(task_ids)::bigint[],
                           sqlc.narg(not_before)::timestamptz[]);
