-- name: OpenJobsOf :many
-- The jobs of a site that have not ended.
SELECT id AS job_id, status FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND status IN ('pending', 'running', 'paused')
    AND options ->> 'site_id' = sqlc.arg(site_id)::text
ORDER BY id;

-- name: EndedJobsOf :many
-- Jobs of a site that have ended and are still known.
SELECT id AS job_id FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND status IN ('completed', 'failed', 'cancelled')
    AND options ->> 'site_id' = sqlc.arg(site_id)::text
ORDER BY id
LIMIT sqlc.arg(most)::integer;
