-- name: AddJob :one
-- A new job.
INSERT INTO queue.job (organisation_id, options) VALUES (sqlc.arg(organisation_id), sqlc.arg(options))
RETURNING *;

-- name: GetJob :one
-- One job.
SELECT * FROM queue.job WHERE id = sqlc.arg(job_id);

-- name: AddTasks :execrows
-- New tasks of a job.
INSERT INTO queue.ready (job_id, url, lane)
SELECT sqlc.arg(job_id), url, lane
FROM unnest(sqlc.arg(urls)::text[], sqlc.narg(lanes)::text[]) AS t(url, lane)
ON CONFLICT DO NOTHING;

-- name: ClaimTasks :many
-- Lease the oldest tasks; a comment with a \backslash.
WITH gone AS (
    DELETE FROM queue.ready WHERE id IN (
        SELECT id FROM queue.ready ORDER BY id LIMIT sqlc.arg(batch) FOR UPDATE SKIP LOCKED
    ) RETURNING id, job_id, url, lane
), taken AS (
    INSERT INTO queue.leased
    SELECT id, job_id, url, sqlc.arg(lease), now() + sqlc.arg(lease_time)::interval FROM gone
    RETURNING id
)
SELECT id AS task_id, url, lane FROM taken JOIN gone USING (id) ORDER BY id;

-- name: Lanes :many
-- All lanes.
SELECT lane FROM queue.ready ORDER BY id;

-- name: CountReady :one
-- How many wait.
SELECT count(*) AS n FROM queue.ready WHERE url ~ '\d';

-- name: Forget :exec
-- Delete all.
DELETE FROM queue.leased;
