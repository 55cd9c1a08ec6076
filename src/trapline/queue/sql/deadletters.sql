-- name: ListDeadLetters :many
-- Failed tasks that nobody has dealt with, oldest first.
SELECT * FROM queue.dead_letter
WHERE organisation_id = sqlc.arg(organisation_id) AND resolved_at IS NULL
    AND (sqlc.narg(job_id)::uuid IS NULL OR job_id = sqlc.narg(job_id))
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (sqlc.narg(code)::smallint IS NULL OR code = sqlc.narg(code))
ORDER BY failed_at LIMIT sqlc.arg(most)::integer;

-- name: ResolveDeadLetters :many
-- Mark dead letters as dealt with, and return what it takes to run them again.
WITH chosen AS MATERIALIZED (
    UPDATE queue.dead_letter d
    SET resolved_at = now(), resolved_by = sqlc.narg(by_whom)::text,
        resolution = sqlc.arg(resolution)::text, retried_in = sqlc.narg(retried_in)::uuid
    WHERE d.organisation_id = sqlc.arg(organisation_id) AND d.resolved_at IS NULL
        AND (sqlc.narg(tasks)::bigint[] IS NULL OR d.task_id = ANY (sqlc.narg(tasks)))
        AND (sqlc.narg(job_id)::uuid IS NULL OR d.job_id = sqlc.narg(job_id))
        AND (sqlc.narg(kind)::text IS NULL OR d.kind = sqlc.narg(kind))
        AND (sqlc.narg(code)::smallint IS NULL OR d.code = sqlc.narg(code))
    RETURNING d.task_id
)
SELECT t.id, t.job_id AS "job_id!", t.kind, t.payload, t.priority, t.max_attempts, t.timeout, t.counted, t.source,
       g.name AS gate
FROM chosen c
JOIN queue.task t ON t.id = c.task_id
LEFT JOIN queue.gate g ON g.id = t.gate_id
ORDER BY t.id;
