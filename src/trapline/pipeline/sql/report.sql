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
-- The pages of a crawl in the order of its tasks, after one: so many, or fewer if they are large.
SELECT
    chosen.task_id, chosen."url!", chosen."change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM (
    SELECT few.*, sum(few.bytes) OVER (ORDER BY few.task_id) - few.bytes AS before
    FROM (
        SELECT
            t.id AS task_id, v.id AS version_id,
            (d.result ->> 'url')::text AS "url!", (d.result ->> 'change')::text AS "change?",
            -- As it is stored: nothing is unpacked for this.
            pg_column_size(v.markdown) + pg_column_size(v.text) + pg_column_size(v.links) AS bytes
        FROM queue.task t
        JOIN queue.done d ON d.task_id = t.id
        JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
        WHERE t.job_id = sqlc.arg(job_id) AND d.status = 0 AND t.id > sqlc.arg(after)::bigint
        ORDER BY t.id
        LIMIT sqlc.arg(most)::integer
    ) few
) chosen
JOIN store.version v ON v.id = chosen.version_id
WHERE chosen.before < sqlc.arg(bytes)::bigint
ORDER BY chosen.task_id;

-- name: PagesOfSite :many
-- The pages that a site has, with their latest versions, in the order in which their URLs were
-- found, after one: so many, or fewer if they are large.
SELECT
    chosen.page_id, chosen.url_id, u.url::text AS "url!", chosen.first_seen_at, chosen.last_seen_at,
    chosen.changed_at, v.number, v.status, v.title, v.language, v.page_type, v.fetched_at,
    v.markdown, v.text, v.metadata, v.links
FROM (
    SELECT few.*, sum(few.bytes) OVER (ORDER BY few.url_id) - few.bytes AS before
    FROM (
        SELECT
            p.id AS page_id, p.url_id, p.first_seen_at, p.last_seen_at, p.changed_at, p.version_id,
            pg_column_size(v.markdown) + pg_column_size(v.text) + pg_column_size(v.links) AS bytes
        FROM store.page p
        JOIN store.version v ON v.id = p.version_id
        WHERE p.site_id = sqlc.arg(site_id) AND p.url_id > sqlc.arg(after)::bigint
            AND p.gone_at IS NULL
        ORDER BY p.url_id
        LIMIT sqlc.arg(most)::integer
    ) few
) chosen
JOIN store.version v ON v.id = chosen.version_id
JOIN frontier.url_text u ON u.id = chosen.url_id
WHERE chosen.before < sqlc.arg(bytes)::bigint
ORDER BY chosen.url_id;
