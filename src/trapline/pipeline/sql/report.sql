-- name: CountEnds :many
-- How the pages of a crawl ended, by exit code.
SELECT v.exit_code, count(*) AS pages
FROM archive.visit v
JOIN queue.done d ON d.task_id = v.task_id AND (d.result ->> 'visit_id')::bigint = v.id
WHERE v.job_id = sqlc.arg(job_id)
GROUP BY v.exit_code
ORDER BY count(*) DESC, v.exit_code;

-- name: SlowestVisits :many
-- The pages that took longest.
SELECT u.url::text AS "url!", v.took_ms
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
WHERE v.job_id = sqlc.arg(job_id)
ORDER BY v.took_ms DESC
LIMIT sqlc.arg(most)::integer;

-- name: FailedPages :many
-- Pages that could not be had, with the first page that links to them.
SELECT
    (t.payload ->> 'url')::text AS "url!",
    (t.payload ->> 'found_on')::text AS "found_on?",
    d.code AS "code?",
    d.error::text AS "error!"
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
WHERE t.job_id = sqlc.arg(job_id) AND d.status = sqlc.arg(status)::smallint
ORDER BY t.id
LIMIT sqlc.arg(most)::integer;

-- name: CountRedirects :one
-- How many redirects a crawl met.
SELECT count(*) AS redirects
FROM archive.visit v
JOIN archive.redirect r ON r.visit_id = v.id AND r.started_at = v.started_at
WHERE v.job_id = sqlc.arg(job_id);

-- name: PagesOf :many
-- The pages of a crawl in the order in which they were finished, after a task.
SELECT
    t.id AS task_id,
    (d.result ->> 'url')::text AS "url!",
    (d.result ->> 'change')::text AS "change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
WHERE t.job_id = sqlc.arg(job_id) AND d.status = 0 AND t.id > sqlc.arg(after)::bigint
ORDER BY t.id
LIMIT sqlc.arg(most)::integer;
