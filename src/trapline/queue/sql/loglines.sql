-- name: LogOfJob :many
-- Lines of a job's log before a position, latest first.
SELECT * FROM queue.job_log
WHERE job_id = sqlc.arg(job_id)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(levels)::text[] IS NULL OR level = ANY (sqlc.narg(levels)))
    AND (sqlc.narg(step)::text IS NULL OR step = sqlc.narg(step))
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;

-- name: LogLines :many
-- Lines of the logs of all jobs of an organisation before a position, latest first.
SELECT * FROM queue.job_log
WHERE organisation_id = sqlc.arg(organisation_id)
    AND (created_at, id) < (sqlc.arg(at)::timestamptz, sqlc.arg(id)::bigint)
    AND created_at >= sqlc.arg(since)::timestamptz
    AND (sqlc.narg(site)::uuid IS NULL OR site_id = sqlc.narg(site))
    AND (sqlc.narg(trace)::uuid IS NULL OR trace_id = sqlc.narg(trace))
    AND (sqlc.narg(levels)::text[] IS NULL OR level = ANY (sqlc.narg(levels)))
    AND (sqlc.narg(step)::text IS NULL OR step = sqlc.narg(step))
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most)::integer;
