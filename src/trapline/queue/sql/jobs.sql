-- name: CreateJob :one
-- Write a job; nothing comes back when the id is taken, or a standing job of that kind is there.
INSERT INTO queue.job (
    id, organisation_id, member_id, kind, standing, priority, parent_id, retry_of, retry_count,
    max_retries, options, variables, metadata, trace_id, zero_data_retention, task_limit, max_active,
    required_workers, scheduled_at, ttl, failed_ttl
) VALUES (
    sqlc.arg(id), sqlc.arg(organisation_id), sqlc.narg(member_id), sqlc.arg(kind),
    sqlc.arg(standing), sqlc.arg(priority), sqlc.narg(parent_id), sqlc.narg(retry_of),
    sqlc.arg(retry_count), sqlc.arg(max_retries), sqlc.arg(options), sqlc.arg(variables),
    sqlc.arg(metadata), sqlc.narg(trace_id), sqlc.arg(zero_data_retention), sqlc.narg(task_limit),
    sqlc.narg(max_active), sqlc.arg(required_workers), sqlc.narg(scheduled_at), sqlc.arg(ttl),
    sqlc.narg(failed_ttl)
)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: GetJob :one
-- A job with all of its counters.
SELECT * FROM queue.job WHERE id = sqlc.arg(job_id);

-- name: StandingJob :one
-- The standing job of this kind.
SELECT id FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id) AND kind = sqlc.arg(kind) AND standing;

-- name: ActiveTasks :one
-- How many tasks of a job run now. It reads what is in flight, not what is queued.
SELECT count(*) AS "active!"
FROM queue.lane l JOIN queue.leased d ON d.lane_id = l.id
WHERE l.job_id = sqlc.arg(job_id);

-- name: CancelJob :one
-- End a job now; false when it had already ended.
SELECT queue.cancel_job(sqlc.arg(job_id), sqlc.narg(by_whom)::text, sqlc.narg(reason)::text) AS "done!";

-- name: PauseJob :one
-- Let no more of a job's tasks start; false when it does not run.
SELECT queue.pause_job(sqlc.arg(job_id), sqlc.narg(by_whom)::text) AS "done!";

-- name: ResumeJob :one
-- Go on with a paused job; false when it is not paused.
SELECT queue.resume_job(sqlc.arg(job_id), sqlc.narg(by_whom)::text) AS "done!";

-- name: ReopenJob :one
-- Begin the next round of a job that has ended; false when it has not.
SELECT queue.reopen_job(sqlc.arg(job_id)) AS "done!";

-- name: EndIfEmpty :one
-- Complete a job that was given nothing to do.
SELECT queue.end_if_empty(sqlc.arg(job_id)) AS "done!";

-- name: Ancestors :many
-- The jobs above this one, nearest first.
WITH RECURSIVE up AS (
    SELECT j.id, j.parent_id, 1 AS depth FROM queue.job j WHERE j.id = sqlc.arg(job_id)
    UNION
    SELECT j.id, j.parent_id, up.depth + 1 FROM queue.job j JOIN up ON j.id = up.parent_id
    WHERE up.depth < 100
)
SELECT id AS "id!" FROM up ORDER BY depth;

-- name: ExpiredJobs :many
-- Ended jobs whose time to be kept is over.
SELECT id FROM queue.job WHERE expires_at <= now()
ORDER BY expires_at LIMIT sqlc.arg(most)::integer;

-- name: ForgetJob :one
-- Delete a job with all that is its own, a part at a time.
SELECT queue.forget_job(sqlc.arg(job_id), sqlc.arg(most)::integer) AS "rows!";

-- name: JobsNewest :many
-- An organisation's jobs after a position, newest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: JobsOldest :many
-- The same, oldest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (created_at, id) > (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at < sqlc.arg(until)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at, id LIMIT sqlc.arg(most)::integer;

-- name: JobsNewestByStatus :many
-- An organisation's jobs in one state after a position, newest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id) AND status = sqlc.arg(status)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: JobsOldestByStatus :many
-- The same, oldest first.
SELECT * FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id) AND status = sqlc.arg(status)
    AND (created_at, id) > (sqlc.arg(at)::timestamptz, sqlc.arg(job_id)::uuid)
    AND created_at < sqlc.arg(until)::timestamptz
    AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind))
    AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at, id LIMIT sqlc.arg(most)::integer;

-- name: DeleteJob :execrows
-- Let an ended job be forgotten now; nothing when it has not ended.
UPDATE queue.job SET expires_at = now()
WHERE id = sqlc.arg(job_id) AND status IN ('completed', 'failed', 'cancelled');

-- name: ErrorsOfJob :many
-- A job's tasks that failed for good, after a task.
SELECT d.task_id, t.kind, t.payload, d.code, d.error, d.failed_at, d.resolution
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = sqlc.arg(job_id) AND d.task_id > sqlc.arg(after)::bigint
ORDER BY d.task_id LIMIT sqlc.arg(most)::integer;

-- name: NextTask :one
-- A task of a job that has not ended: one that is next in its lane, waits, or runs.
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
