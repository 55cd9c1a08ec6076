-- name: CreateJob :one
-- Create a job; no row if the id is taken.
INSERT INTO queue.job (
    id, organisation_id, member_id, kind, priority, parent_id, retry_of, retry_count,
    max_retries, options, variables, metadata, trace_id, zero_data_retention, task_limit, max_active,
    required_workers, scheduled_at, ttl, failed_ttl
) VALUES (
    sqlc.arg(id), sqlc.arg(organisation_id), sqlc.narg(member_id), sqlc.arg(kind),
    sqlc.arg(priority), sqlc.narg(parent_id), sqlc.narg(retry_of),
    sqlc.arg(retry_count), sqlc.arg(max_retries), sqlc.arg(options), sqlc.arg(variables),
    sqlc.arg(metadata), sqlc.narg(trace_id), sqlc.arg(zero_data_retention), sqlc.narg(task_limit),
    sqlc.narg(max_active), sqlc.arg(required_workers), sqlc.narg(scheduled_at), sqlc.arg(ttl),
    sqlc.narg(failed_ttl)
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: GetJob :one
-- A job with its counters.
SELECT * FROM queue.job WHERE id = sqlc.arg(job_id);

-- name: JobIdsInRange :many
-- The first two jobs whose ids lie in a range.
SELECT id FROM queue.job WHERE id BETWEEN sqlc.arg(low)::uuid AND sqlc.arg(high)::uuid ORDER BY id LIMIT 2;

-- name: ActiveTasks :one
-- Number of running tasks of a job. It reads leased rows, never queued ones.
SELECT count(*) AS "active!"
FROM queue.lane l JOIN queue.leased d ON d.lane_id = l.id
WHERE l.job_id = sqlc.arg(job_id);

-- name: CancelJob :one
-- Cancel a job; false if it had ended.
SELECT queue.cancel_job(sqlc.arg(job_id), sqlc.narg(by_whom)::text, sqlc.narg(reason)::text) AS "done!";

-- name: PauseJob :one
-- Pause a job; false if it is not open.
SELECT queue.pause_job(sqlc.arg(job_id), sqlc.narg(by_whom)::text) AS "done!";

-- name: ResumeJob :one
-- Resume a paused job; false if it is not paused.
SELECT queue.resume_job(sqlc.arg(job_id), sqlc.narg(by_whom)::text) AS "done!";

-- name: ReopenJob :one
-- Start the next round of an ended job; false if it is open.
SELECT queue.reopen_job(sqlc.arg(job_id)) AS "done!";

-- name: EndIfEmpty :one
-- Complete a job without tasks.
SELECT queue.end_if_empty(sqlc.arg(job_id)) AS "done!";

-- name: Ancestors :many
-- The ancestors of a job, nearest first.
WITH RECURSIVE up AS (
    SELECT j.id, j.parent_id, 1 AS depth FROM queue.job j WHERE j.id = sqlc.arg(job_id)
    UNION
    SELECT j.id, j.parent_id, up.depth + 1 FROM queue.job j JOIN up ON j.id = up.parent_id
    WHERE up.depth < 100
)
SELECT id AS "id!" FROM up ORDER BY depth;

-- name: ExpiredJobs :many
-- Ended jobs whose retention is over.
SELECT id FROM queue.job WHERE expires_at <= now()
ORDER BY expires_at LIMIT sqlc.arg(most)::integer;

-- name: ForgetJob :one
-- Delete a job and its rows, in batches.
SELECT queue.forget_job(sqlc.arg(job_id), sqlc.arg(most)::integer) AS "rows!";

-- name: JobsNewest :many
-- An organisation's jobs before a key, newest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: JobsOldest :many
-- As JobsNewest, after a key, oldest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (created_at, id) > (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at < sqlc.arg(until)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at, id LIMIT sqlc.arg(most)::integer;

-- name: JobsNewestByStatus :many
-- An organisation's jobs of one status before a key, newest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id) AND status = sqlc.arg(status)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: JobsOldestByStatus :many
-- As JobsNewestByStatus, after a key, oldest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id) AND status = sqlc.arg(status)
    AND (created_at, id) > (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at < sqlc.arg(until)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at, id LIMIT sqlc.arg(most)::integer;

-- name: DeleteJob :execrows
-- Expire an ended job now; no row if it is open.
UPDATE queue.job SET expires_at = now()
WHERE id = sqlc.arg(job_id) AND status IN ('completed', 'failed', 'cancelled');

-- name: ErrorsOfJob :many
-- Failed tasks of a job after a task.
SELECT d.task_id, t.kind, t.payload, d.code, d.error, d.failed_at, d.resolution
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = sqlc.arg(job_id) AND d.task_id > sqlc.arg(after)::bigint
ORDER BY d.task_id LIMIT sqlc.arg(most)::integer;

-- name: NextTask :one
-- An open task of a job: the next one of a lane, a waiting or a running one.
SELECT coalesce(
    (SELECT r.task_id FROM queue.lane l CROSS JOIN LATERAL (
         SELECT r.task_id FROM queue.ready r WHERE r.lane_id = l.id
         ORDER BY r.priority, r.turn LIMIT 1) r
     WHERE l.job_id = sqlc.arg(job_id) LIMIT 1),
    (SELECT w.task_id FROM queue.lane l JOIN queue.waiting w ON w.lane_id = l.id
     WHERE l.job_id = sqlc.arg(job_id) ORDER BY w.run_at LIMIT 1),
    (SELECT d.task_id FROM queue.lane l JOIN queue.leased d ON d.lane_id = l.id
     WHERE l.job_id = sqlc.arg(job_id) LIMIT 1)
) AS "task_id?";

-- name: UrlsOfJobs :many
-- The URL of each job's first task.
SELECT j.id AS "job_id!", (first.payload ->> 'url')::text AS "url?"
FROM unnest(sqlc.arg(job_ids)::uuid[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT t.payload FROM queue.task t WHERE t.job_id = j.id ORDER BY t.id LIMIT 1
) first;
