-- name: CheckSummaries :many
-- Counts of page states by job: pages with a visit, and pages that a complete crawl did not find.
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
-- returns: CheckedPageRow
-- The visited pages of a job with their states, after an event.
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
-- Number of pages that CheckPages returns.
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
-- returns: CheckedPageRow
-- Pages that a complete crawl did not find again, after an id.
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
-- The texts of versions and of their predecessors of the same variant.
SELECT v.id, v.markdown::text AS "markdown!", b.markdown::text AS "before!"
FROM store.version v
JOIN LATERAL (
    SELECT b.markdown FROM store.version b
    WHERE b.page_id = v.page_id AND b.number < v.number AND b.variant = v.variant
    ORDER BY b.number DESC LIMIT 1
) b ON true
WHERE v.id = ANY (sqlc.arg(version_ids)::bigint[]);
