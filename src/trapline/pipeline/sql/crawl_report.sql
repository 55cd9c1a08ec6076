-- name: CountExitCodes :many
-- Pages of a crawl by exit code.
SELECT v.exit_code, count(*) AS pages
FROM archive.visit v
JOIN queue.done d ON d.task_id = v.task_id AND (d.result ->> 'visit_id')::bigint = v.id
WHERE v.job_id = sqlc.arg(job_id)
GROUP BY v.exit_code
ORDER BY count(*) DESC, v.exit_code;

-- name: SlowestVisits :many
-- The visits that took longest.
SELECT u.url::text AS "url!", v.took_ms
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
WHERE v.job_id = sqlc.arg(job_id)
ORDER BY v.took_ms DESC
LIMIT sqlc.arg(most)::integer;

-- name: FailedPages :many
-- Failed pages, with the first page that links to them.
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
-- Number of redirects in a crawl.
SELECT count(*) AS redirects
FROM archive.visit v
JOIN archive.redirect r ON r.visit_id = v.id AND r.started_at = v.started_at
WHERE v.job_id = sqlc.arg(job_id);

-- name: ExportJobPages :many
-- Pages of a job after a task, in the order of tasks: a batch bounded by rows and by bytes.
SELECT
    chosen.task_id, chosen."url!", chosen."change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM (
    SELECT few.*, sum(few.bytes) OVER (ORDER BY few.task_id) - few.bytes AS before
    FROM (
        SELECT
            t.id AS task_id, v.id AS version_id,
            (d.result ->> 'url')::text AS "url!", (d.result ->> 'change')::text AS "change?",
            -- The stored size: no value is decompressed for it.
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

-- name: ExportFinishedPages :many
-- Pages of a job after an event, in the order in which they finished.
SELECT
    e.number, e.task_id AS "task_id!",
    coalesce(e.data ->> 'url', t.payload ->> 'url')::text AS "url!", (e.data ->> 'change')::text AS "change?",
    v.status, v.title, v.language, v.page_type, v.fetched_at, v.markdown, v.text, v.metadata, v.links
FROM queue.event e
JOIN queue.task t ON t.id = e.task_id
JOIN store.version v ON v.id = (e.data ->> 'version_id')::bigint
WHERE e.job_id = sqlc.arg(job_id) AND e.number > sqlc.arg(after)::bigint
    AND e.type = 'page' AND e.data ->> 'error' IS NULL
ORDER BY e.number LIMIT sqlc.arg(most)::integer;

-- name: ExportSitePages :many
-- Pages of a site with their latest versions, after a URL id: a batch bounded by rows and by bytes.
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

-- name: RecentExitCodes :many
-- How the latest visits of a job ended, by exit code: of so many at most.
SELECT few.exit_code, count(*) AS "visits!", avg(few.took_ms)::double precision AS "mean_ms!"
FROM (
    SELECT v.exit_code, v.took_ms FROM archive.visit v
    WHERE v.job_id = sqlc.arg(job_id) ORDER BY v.id DESC LIMIT sqlc.arg(most)::integer
) few
GROUP BY few.exit_code ORDER BY count(*) DESC, few.exit_code;

-- name: SlowVisits :many
-- The slowest of a job's latest visits: of so many at most.
SELECT u.url::text AS "url!", few.took_ms, few.exit_code, few.task_id
FROM (
    SELECT v.url_id, v.took_ms, v.exit_code, v.task_id FROM archive.visit v
    WHERE v.job_id = sqlc.arg(job_id) ORDER BY v.id DESC LIMIT sqlc.arg(among)::integer
) few
JOIN frontier.url_text u ON u.id = few.url_id
ORDER BY few.took_ms DESC LIMIT sqlc.arg(most)::integer;

-- name: CompareVisits :many
-- A job's visits in their order, after one, each beside the visit of another job to the same URL.
SELECT
    few.id, u.url::text AS "url!", few.exit_code, few.took_ms, few.task_id,
    other.exit_code AS "other_exit_code?", other.took_ms AS "other_took_ms?",
    mine.content_hash AS "content_hash?", theirs.content_hash AS "other_content_hash?",
    mine.page_id AS "page_id?", mine.number AS "number?", theirs.number AS "other_number?"
FROM (
    SELECT v.id, v.url_id, v.exit_code, v.took_ms, v.task_id FROM archive.visit v
    WHERE v.job_id = sqlc.arg(job_id) AND v.id > sqlc.arg(after)::bigint
    ORDER BY v.id LIMIT sqlc.arg(most)::integer
) few
JOIN frontier.url_text u ON u.id = few.url_id
LEFT JOIN LATERAL (
    SELECT v.exit_code, v.took_ms, v.task_id FROM archive.visit v
    WHERE v.url_id = few.url_id AND v.job_id = sqlc.arg(other_job_id)
    ORDER BY v.started_at DESC LIMIT 1
) other ON true
LEFT JOIN queue.done d ON d.task_id = few.task_id
LEFT JOIN store.version mine ON mine.id = (d.result ->> 'version_id')::bigint
LEFT JOIN queue.done o ON o.task_id = other.task_id
LEFT JOIN store.version theirs ON theirs.id = (o.result ->> 'version_id')::bigint
ORDER BY few.id;
