-- name: GetIntake :one
-- The crawl of a Firecrawl elsewhere, held while its messages are taken in.
SELECT * FROM knowledge.intake
WHERE organisation_id = sqlc.arg(organisation_id) AND crawl = sqlc.arg(crawl)
FOR UPDATE;

-- name: LockCrawl :exec
-- Take in a crawl's first message one caller at a time.
SELECT pg_advisory_xact_lock(hashtextextended('knowledge.intake ' || sqlc.arg(crawl)::text, 0));

-- name: AddIntake :one
-- Note a crawl, and the job that takes in its pages.
INSERT INTO knowledge.intake (organisation_id, crawl, source_id, job_id, task_id)
VALUES (
    sqlc.arg(organisation_id), sqlc.arg(crawl), sqlc.arg(source_id), sqlc.arg(job_id),
    sqlc.arg(task_id)
)
RETURNING *;

-- name: CountIntake :exec
-- Count pages of a crawl.
UPDATE knowledge.intake SET pages = pages + sqlc.arg(pages)::bigint
WHERE organisation_id = sqlc.arg(organisation_id) AND crawl = sqlc.arg(crawl);

-- name: EndIntake :execrows
-- Note how a crawl ended; the first word counts.
UPDATE knowledge.intake
SET ended = sqlc.arg(ended), error = sqlc.narg(error), ended_at = now()
WHERE organisation_id = sqlc.arg(organisation_id) AND crawl = sqlc.arg(crawl) AND ended IS NULL;

-- name: IntakeOfJob :one
-- The crawl whose pages a job takes in.
SELECT * FROM knowledge.intake WHERE job_id = sqlc.arg(job_id);
