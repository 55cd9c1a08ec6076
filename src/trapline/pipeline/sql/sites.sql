-- name: OpenJobsOf :many
-- Open jobs of a site.
SELECT id AS job_id, status FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND status IN ('pending', 'running', 'paused')
    AND options ->> 'site_id' = sqlc.arg(site_id)::text
ORDER BY id;

-- name: EndedJobsOf :many
-- Ended jobs of a site that have not expired.
SELECT id AS job_id FROM queue.job
WHERE organisation_id = sqlc.arg(organisation_id)
    AND status IN ('completed', 'failed', 'cancelled')
    AND options ->> 'site_id' = sqlc.arg(site_id)::text
ORDER BY id
LIMIT sqlc.arg(most)::integer;
