-- name: KeysOfJobs :many
-- Which API keys asked for some jobs.
SELECT id AS "job_id!", (metadata ->> 'api_key')::text AS "api_key!"
FROM queue.job WHERE id = ANY (sqlc.arg(job_ids)::uuid[]) AND metadata ->> 'api_key' IS NOT NULL;

-- name: AtWork :one
-- How much of an organisation's work runs, how much waits, and when a job last went well.
SELECT
    (SELECT count(*) FROM queue.leased d JOIN queue.lane l ON l.id = d.lane_id
     WHERE l.organisation_id = sqlc.arg(organisation_id)) AS "active!",
    (SELECT coalesce(sum(j.remaining), 0)::bigint FROM queue.job j
     WHERE j.organisation_id = sqlc.arg(organisation_id)
        AND j.status IN ('pending', 'running', 'paused')) AS "remaining!",
    (SELECT max(j.finished_at) FROM queue.job j
     WHERE j.organisation_id = sqlc.arg(organisation_id) AND j.status = 'completed') AS "last_success?";
