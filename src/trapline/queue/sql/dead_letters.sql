-- name: ListDeadLetters :many
-- Unresolved dead letters, oldest first.
SELECT * FROM queue.dead_letter
WHERE organisation_id = sqlc.arg(organisation_id) AND resolved_at IS NULL
    AND (sqlc.narg(job_id)::uuid IS NULL OR job_id = sqlc.narg(job_id))
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (sqlc.narg(code)::smallint IS NULL OR code = sqlc.narg(code))
ORDER BY failed_at LIMIT sqlc.arg(most)::integer;

-- name: UrlsOfTasks :many
-- The URLs of tasks that have one.
SELECT id AS task_id, payload ->> 'url' AS "url!" FROM queue.task
WHERE id = ANY (sqlc.arg(task_ids)::bigint[]) AND payload ? 'url';

-- name: ResolveDeadLetters :many
-- Mark dead letters as resolved; return the fields that a retry needs.
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

-- name: NewestDeadLetters :many
-- Failed tasks that nobody has dealt with, with their payloads, newest first, after a position.
SELECT d.task_id, d.job_id, d.kind, d.code, d.error, d.failed_at, (t.payload ->> 'url')::text AS "url?"
FROM queue.dead_letter d LEFT JOIN queue.task t ON t.id = d.task_id
WHERE d.organisation_id = sqlc.arg(organisation_id) AND d.resolved_at IS NULL
    AND (d.failed_at, d.task_id) < (sqlc.arg(at)::timestamptz, sqlc.arg(before)::bigint)
    AND (sqlc.narg(job_id)::uuid IS NULL OR d.job_id = sqlc.narg(job_id))
    AND (sqlc.narg(kind)::text IS NULL OR d.kind = sqlc.narg(kind))
    AND (sqlc.narg(code)::smallint IS NULL OR d.code = sqlc.narg(code))
ORDER BY d.failed_at DESC, d.task_id DESC LIMIT sqlc.arg(most)::integer;

-- name: CountDeadLetters :one
-- How many failed tasks nobody has dealt with, counted up to a bound.
SELECT count(*) AS "letters!" FROM (
    SELECT FROM queue.dead_letter d
    WHERE d.organisation_id = sqlc.arg(organisation_id) AND d.resolved_at IS NULL
        AND (sqlc.narg(job_id)::uuid IS NULL OR d.job_id = sqlc.narg(job_id))
        AND (sqlc.narg(kind)::text IS NULL OR d.kind = sqlc.narg(kind))
        AND (sqlc.narg(code)::smallint IS NULL OR d.code = sqlc.narg(code))
    LIMIT sqlc.arg(most)::integer
) few;
