-- name: Enqueue :many
-- Add tasks to a job; return the state of each.
SELECT task_id AS "task_id!", place AS "state!" FROM queue.enqueue(
    sqlc.arg(job_id)::uuid,
    sqlc.arg(tasks)::queue.new_task[],
    sqlc.arg(gates)::queue.new_gate[]
);

-- name: GetTask :one
-- A task and its state.
SELECT t.id, t.organisation_id AS "organisation_id!", t.job_id AS "job_id!", t.parent_id, t.kind, t.payload, t.priority,
       t.max_attempts, t.deadline, t.source, t.trace_id, t.created_at,
       CASE
           WHEN d.task_id IS NOT NULL THEN
               (ARRAY['completed', 'failed', 'skipped', 'cancelled'])[d.status + 1]
           WHEN l.task_id IS NOT NULL THEN 'active'
           WHEN w.task_id IS NOT NULL THEN 'waiting'
           WHEN o.task_id IS NOT NULL THEN 'overflow'
           WHEN j.status IN ('completed', 'failed', 'cancelled') THEN 'cancelled'
           ELSE 'queued'
       END AS "status!",
       coalesce(d.attempts, l.attempts, w.attempts) AS attempts, coalesce(d.stalls, l.stalls, w.stalls) AS stalls,
       d.code, d.error, d.result, d.agent_id, d.started_at, d.finished_at, w.run_at,
       j.status AS "job_status!"
FROM queue.task t
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN queue.done d ON d.task_id = t.id
LEFT JOIN queue.leased l ON l.task_id = t.id
LEFT JOIN queue.waiting w ON w.task_id = t.id
LEFT JOIN queue.overflow o ON o.job_id = t.job_id AND o.task_id = t.id
WHERE t.id = sqlc.arg(task_id);

-- name: ListTasks :many
-- A job's tasks after a task, in the order they were added.
SELECT t.id, t.kind, t.payload, t.priority, t.created_at,
       CASE
           WHEN d.task_id IS NOT NULL THEN
               (ARRAY['completed', 'failed', 'skipped', 'cancelled'])[d.status + 1]
           WHEN j.status IN ('completed', 'failed', 'cancelled') THEN 'cancelled'
           ELSE 'open'
       END AS "status!",
       d.attempts, d.code, d.error, d.finished_at
FROM queue.task t
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN queue.done d ON d.task_id = t.id
WHERE t.job_id = sqlc.arg(job_id) AND t.id > sqlc.arg(after)::bigint
ORDER BY t.id
LIMIT sqlc.arg(most)::integer;

-- name: Overdue :many
-- Lease ready tasks past their deadline under a lease without an agent, so that they can be finished.
WITH lease AS MATERIALIZED (
    INSERT INTO queue.lease (agent_id, expires_at) VALUES (0, now() + interval '1 minute') RETURNING id
),
gone AS MATERIALIZED (
    DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(
        SELECT q.ctid FROM queue.ready q WHERE q.deadline <= now()
        ORDER BY q.deadline LIMIT sqlc.arg(most)::integer FOR UPDATE SKIP LOCKED))
    RETURNING r.*
)
INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls)
SELECT lease.id, g.task_id, g.lane_id, g.priority, g.attempts, g.stalls FROM gone g CROSS JOIN lease
RETURNING lease_id, task_id;

-- name: OverdueWaiting :many
-- As Overdue, for waiting tasks.
WITH lease AS MATERIALIZED (
    INSERT INTO queue.lease (agent_id, expires_at) VALUES (0, now() + interval '1 minute') RETURNING id
),
gone AS MATERIALIZED (
    DELETE FROM queue.waiting w WHERE w.ctid = ANY (ARRAY(
        SELECT q.ctid FROM queue.waiting q WHERE q.deadline <= now()
        ORDER BY q.deadline LIMIT sqlc.arg(most)::integer FOR UPDATE SKIP LOCKED))
    RETURNING w.*
)
INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls)
SELECT lease.id, g.task_id, g.lane_id, g.priority, g.attempts, g.stalls FROM gone g CROSS JOIN lease
RETURNING lease_id, task_id;

-- name: TakeKey :execrows
-- Take a unique key of a running task's job; no row if another task has it.
INSERT INTO queue.unique_key AS k (scope, key, job_id, task_id)
VALUES (sqlc.arg(scope), sqlc.arg(key), sqlc.arg(job_id), sqlc.arg(task_id))
ON CONFLICT (scope, key) DO UPDATE SET task_id = excluded.task_id
WHERE k.task_id = excluded.task_id;

-- name: Reschedule :execrows
-- Change the time of a waiting task.
UPDATE queue.waiting SET run_at = sqlc.arg(run_at) WHERE task_id = sqlc.arg(task_id);
