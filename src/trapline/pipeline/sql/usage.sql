-- name: KeysOfJobs :many
-- The API keys that submitted jobs.
SELECT id AS "job_id!", (metadata ->> 'api_key')::text AS "api_key!"
FROM queue.job WHERE id = ANY (sqlc.arg(job_ids)::uuid[]) AND metadata ->> 'api_key' IS NOT NULL;

-- name: Workload :one
-- Running and remaining tasks of an organisation, and its last completed job's time.
SELECT
    (SELECT count(*) FROM queue.leased d JOIN queue.lane l ON l.id = d.lane_id
     WHERE l.organisation_id = sqlc.arg(organisation_id)) AS "active!",
    (SELECT coalesce(sum(j.remaining), 0)::bigint FROM queue.job j
     WHERE j.organisation_id = sqlc.arg(organisation_id)
        AND j.status IN ('pending', 'running', 'paused')) AS "remaining!",
    (SELECT max(j.finished_at) FROM queue.job j
     WHERE j.organisation_id = sqlc.arg(organisation_id) AND j.status = 'completed') AS "last_success?";
