-- name: WriteNotes :exec
-- Add lines to the logs of jobs.
INSERT INTO queue.job_log (organisation_id, job_id, site_id, step, level, message, context, trace_id)
SELECT n.organisation_id, n.job_id, n.site_id, n.step, n.level, n.message, n.context::jsonb, n.trace_id
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(job_ids)::uuid[],
    sqlc.narg(site_ids)::uuid[],
    sqlc.arg(steps)::text[],
    sqlc.arg(levels)::text[],
    sqlc.arg(messages)::text[],
    sqlc.arg(contexts)::text[],
    sqlc.narg(trace_ids)::uuid[]
) AS n (organisation_id, job_id, site_id, step, level, message, context, trace_id);

-- name: ReadNotes :many
-- Lines of a job's log after a position, oldest first.
SELECT * FROM queue.job_log
WHERE job_id = sqlc.arg(job_id)
  AND id > sqlc.arg(after)::bigint
  AND level = ANY (sqlc.arg(levels)::text[])
  AND (sqlc.narg(step)::text IS NULL OR step = sqlc.narg(step))
ORDER BY id
LIMIT sqlc.arg(most)::integer;

-- name: NotedUrls :many
-- Distinct URLs that a step of a job logged, in the order of their first line.
SELECT (context ->> 'url')::text AS "url!", min(context ->> 'found_on')::text AS "found_on?",
       min(message)::text AS "message!"
FROM queue.job_log
WHERE job_id = sqlc.arg(job_id) AND step = sqlc.arg(step) AND context ? 'url'
GROUP BY 1
ORDER BY min(id)
LIMIT sqlc.arg(most)::integer;

-- name: CountNotedUrls :one
-- Number of distinct URLs that a step of a job logged.
SELECT count(DISTINCT context ->> 'url') AS "urls!"
FROM queue.job_log
WHERE job_id = sqlc.arg(job_id) AND step = sqlc.arg(step);

-- name: Milestones :many
-- Events of a job as a whole, after a number.
SELECT number, type, data, created_at FROM queue.event
WHERE job_id = sqlc.arg(job_id) AND number > sqlc.arg(after)::bigint AND type LIKE 'job.%'
ORDER BY number;

-- name: LogOfJob :many
-- Lines of a job's log before a position, newest first.
SELECT * FROM queue.job_log
WHERE job_id = sqlc.arg(job_id)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(levels)::text[] IS NULL OR level = ANY (sqlc.narg(levels)))
    AND (sqlc.narg(step)::text IS NULL OR step = sqlc.narg(step))
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: LogLines :many
-- Lines of all job logs of an organisation before a position, newest first.
SELECT * FROM queue.job_log
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(trace)::uuid IS NULL OR trace_id = sqlc.narg(trace))
    AND (sqlc.narg(levels)::text[] IS NULL OR level = ANY (sqlc.narg(levels)))
    AND (sqlc.narg(step)::text IS NULL OR step = sqlc.narg(step))
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;
