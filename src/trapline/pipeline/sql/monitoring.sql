-- name: CheckSummaries :many
-- What the pages of jobs came to, counted: those that visits told of, and those that a whole crawl missed.
SELECT
    s.job_id AS "job_id!",
    count(*) FILTER (WHERE s.status = 'same') AS "same!",
    count(*) FILTER (WHERE s.status = 'changed') AS "changed!",
    count(*) FILTER (WHERE s.status = 'new') AS "new!",
    count(*) FILTER (WHERE s.status = 'removed') AS "removed!",
    count(*) FILTER (WHERE s.status = 'error') AS "error!"
FROM (
    SELECT
        e.job_id,
        CASE
            WHEN (e.data ->> 'exit_code')::integer = ANY (sqlc.arg(gone)::integer[]) THEN 'removed'
            WHEN e.data ->> 'error' IS NOT NULL OR (e.data ->> 'exit_code')::integer >= 20 THEN 'error'
            ELSE coalesce(e.data ->> 'change', 'same')
        END AS status
    FROM queue.event e
    WHERE e.job_id = ANY (sqlc.arg(job_ids)::uuid[]) AND e.type = 'page'
        AND NOT (e.data ->> 'exit_code')::integer = ANY (sqlc.arg(skipped)::integer[])
    UNION ALL
    SELECT c.job_id, c.status
    FROM store.change c
    WHERE c.job_id = ANY (sqlc.arg(job_ids)::uuid[]) AND c.source = 'sweep'
) s
GROUP BY s.job_id;

-- name: CheckPages :many
-- returns: WatchedRow
-- The pages of a job that visits told of, with what became of each, after an event.
SELECT
    p.place AS "place!", p.id AS "id!", p.url AS "url!", p.status AS "status!",
    p.status_code AS "status_code?", p.error AS "error?", p.version_id AS "version_id?", p.at AS "at!"
FROM (
    SELECT
        e.number AS place, e.task_id::text AS id, (t.payload ->> 'url')::text AS url,
        CASE
            WHEN (e.data ->> 'exit_code')::integer = ANY (sqlc.arg(gone)::integer[]) THEN 'removed'
            WHEN e.data ->> 'error' IS NOT NULL OR (e.data ->> 'exit_code')::integer >= 20 THEN 'error'
            ELSE coalesce(e.data ->> 'change', 'same')
        END AS status,
        (e.data ->> 'status')::integer AS status_code,
        (e.data ->> 'error')::text AS error,
        (e.data ->> 'version_id')::bigint AS version_id,
        e.created_at AS at
    FROM queue.event e JOIN queue.task t ON t.id = e.task_id
    WHERE e.job_id = sqlc.arg(job_id) AND e.number > sqlc.arg(after)::bigint AND e.type = 'page'
        AND NOT (e.data ->> 'exit_code')::integer = ANY (sqlc.arg(skipped)::integer[])
) p
WHERE sqlc.narg(status)::text IS NULL OR p.status = sqlc.narg(status)
ORDER BY p.place
OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: CountCheckPages :one
-- How many pages of a job CheckPages would give.
SELECT count(*) FROM (
    SELECT CASE
        WHEN (e.data ->> 'exit_code')::integer = ANY (sqlc.arg(gone)::integer[]) THEN 'removed'
        WHEN e.data ->> 'error' IS NOT NULL OR (e.data ->> 'exit_code')::integer >= 20 THEN 'error'
        ELSE coalesce(e.data ->> 'change', 'same')
    END AS status
    FROM queue.event e
    WHERE e.job_id = sqlc.arg(job_id) AND e.type = 'page'
        AND NOT (e.data ->> 'exit_code')::integer = ANY (sqlc.arg(skipped)::integer[])
) p
WHERE sqlc.narg(status)::text IS NULL OR p.status = sqlc.narg(status);

-- name: MissedPages :many
-- returns: WatchedRow
-- The pages that a whole crawl did not find again, after one.
SELECT
    c.id AS "place!", ('change-' || c.id)::text AS "id!", u.url::text AS "url!", c.status AS "status!",
    NULL::integer AS "status_code?", NULL::text AS "error?", NULL::bigint AS "version_id?",
    c.detected_at AS "at!"
FROM store.change c JOIN frontier.url_text u ON u.id = c.url_id
WHERE c.job_id = sqlc.arg(job_id) AND c.source = 'sweep' AND c.id > sqlc.arg(after)::bigint
    AND (sqlc.narg(status)::text IS NULL OR c.status = sqlc.narg(status))
ORDER BY c.id
OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: TextsBefore :many
-- The text of versions and of those before them, for their difference.
SELECT v.id, v.markdown::text AS "markdown!", b.markdown::text AS "before!"
FROM store.version v JOIN store.version b ON b.page_id = v.page_id AND b.number = v.number - 1
WHERE v.id = ANY (sqlc.arg(version_ids)::bigint[]);
