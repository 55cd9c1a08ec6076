-- name: GetIntake :one
-- A remote Firecrawl crawl, locked while its messages are processed.
SELECT * FROM knowledge.intake
WHERE organisation_id = sqlc.arg(organisation_id) AND crawl = sqlc.arg(crawl)
FOR UPDATE;

-- name: LockCrawl :exec
-- Serialise callers that process a crawl's first message.
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.intake ' || sqlc.arg(crawl)::text, 0));

-- name: AddIntake :one
-- Insert a remote crawl, and the job that indexes its pages.
INSERT INTO knowledge.intake (organisation_id, crawl, source_id, job_id, task_id)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(crawl), sqlc.arg(source_id), sqlc.arg(job_id),
    sqlc.arg(task_id)
)
RETURNING *;

-- name: CountIntake :exec
-- Add to the page count of a crawl.
UPDATE knowledge.intake SET pages = pages + sqlc.arg(pages)::bigint
WHERE organisation_id = sqlc.arg(organisation_id) AND crawl = sqlc.arg(crawl);

-- name: EndIntake :execrows
-- Record the result of a crawl, once.
UPDATE knowledge.intake
SET ended = sqlc.arg(ended), error = sqlc.narg(error), ended_at = now()
WHERE organisation_id = sqlc.arg(organisation_id) AND crawl = sqlc.arg(crawl) AND ended IS NULL;

-- name: IntakeOfJob :one
-- The remote crawl of a job.
SELECT * FROM knowledge.intake WHERE job_id = sqlc.arg(job_id);
