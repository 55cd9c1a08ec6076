-- name: CountPages :one
-- Finished and remaining pages of a job: its counters without the tasks that visit no page.
SELECT
    j.completed - u.completed AS "completed!",
    j.remaining - u.remaining AS "remaining!",
    j.failed - u.failed AS "failed!",
    j.skipped - u.skipped AS "skipped!",
    -- Only for an ended job: the status of a running one is requested often.
    CASE WHEN j.status IN ('completed', 'failed') AND j.kind = 'crawl' THEN EXISTS (
        SELECT FROM queue.job_log l
        WHERE l.job_id = j.id AND l.created_at >= j.created_at AND l.step = sqlc.arg(refusing_step)
            AND l.context ->> 'url' IS NOT NULL)
    ELSE false END AS "robots_blocked!"
FROM queue.job j
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE d.status = 0) AS completed,
        count(*) FILTER (WHERE d.status = 1) AS failed,
        count(*) FILTER (WHERE d.status = 2) AS skipped,
        count(*) FILTER (WHERE d.status IS NULL AND j.status NOT IN ('completed', 'failed', 'cancelled'))
            AS remaining
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE t.job_id = j.id AND NOT t.counted
) u
WHERE j.id = sqlc.arg(job_id);

-- name: PagesDone :many
-- The visited pages of a job after an event, in the order in which they finished.
SELECT
    e.number,
    e.task_id AS "task_id!",
    (t.payload ->> 'url')::text AS "source_url!",
    coalesce(e.data ->> 'url', t.payload ->> 'url')::text AS "url!",
    (e.data ->> 'status')::integer AS "status?",
    (e.data ->> 'version_id')::bigint AS "version_id?",
    (e.data -> 'answers')::jsonb AS "answers?",
    (e.data -> 'warnings')::jsonb AS "warnings?",
    (e.data ->> 'change')::text AS "change?",
    (e.data -> 'tracking')::jsonb AS "tracking?",
    e.created_at
FROM queue.event e JOIN queue.task t ON t.id = e.task_id
WHERE e.job_id = sqlc.arg(job_id) AND e.number > sqlc.arg(after)::bigint
    AND e.type = 'page' AND e.data ->> 'error' IS NULL
ORDER BY e.number
OFFSET sqlc.arg(skip)::bigint LIMIT sqlc.arg(most)::integer;

-- name: PageFailures :many
-- The failed pages of a job, oldest first.
SELECT
    d.task_id,
    (t.payload ->> 'url')::text AS "url!",
    d.code AS "code?",
    d.error::text AS "error!",
    d.failed_at
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = sqlc.arg(job_id) AND t.counted
ORDER BY d.task_id LIMIT sqlc.arg(most)::integer;

-- name: PagesSkipped :many
-- The URLs of a job that were skipped with one exit code.
SELECT (t.payload ->> 'url')::text AS "url!"
FROM queue.event e JOIN queue.task t ON t.id = e.task_id
WHERE e.job_id = sqlc.arg(job_id) AND e.type = 'page'
    AND (e.data ->> 'exit_code')::integer = sqlc.arg(code)::integer
ORDER BY e.number LIMIT sqlc.arg(most)::integer;

-- name: LinksRefused :many
-- The URLs of links that a job did not follow for one reason, from its log.
SELECT DISTINCT (l.context ->> 'url')::text AS "url!"
FROM queue.job_log l JOIN queue.job j ON j.id = l.job_id
WHERE l.job_id = sqlc.arg(job_id) AND l.created_at >= j.created_at AND l.step = sqlc.arg(step)
    AND l.context ->> 'url' IS NOT NULL
ORDER BY 1 LIMIT sqlc.arg(most)::integer;

-- name: LinksMapped :many
-- The URLs of a map after a key: the number of an event and a position in it.
SELECT e.number, link.position::integer AS "position!", (link.value ->> 'url')::text AS "url!",
    (link.value ->> 'title')::text AS "title?", (link.value ->> 'description')::text AS "description?"
FROM queue.event e
CROSS JOIN LATERAL jsonb_array_elements(e.data -> 'links') WITH ORDINALITY AS link (value, position)
WHERE e.job_id = sqlc.arg(job_id) AND e.type = 'links' AND e.number >= sqlc.arg(after_number)::bigint
    AND (e.number, link.position) > (sqlc.arg(after_number)::bigint, sqlc.arg(after_position)::bigint)
ORDER BY e.number, link.position
LIMIT sqlc.arg(most)::integer;

-- name: LatestPages :many
-- The pages that a job finished last, newest first, with how each ended.
SELECT
    e.number, e.task_id AS "task_id!", e.created_at,
    coalesce(e.data ->> 'url', t.payload ->> 'url')::text AS "url!",
    (e.data ->> 'status')::integer AS "status?",
    (e.data ->> 'change')::text AS "change?",
    (e.data ->> 'error')::text AS "error?",
    left(v.title, 300)::text AS "title?", v.page_id AS "page_id?"
FROM queue.event e
JOIN queue.task t ON t.id = e.task_id
LEFT JOIN store.version v ON v.id = (e.data ->> 'version_id')::bigint
WHERE e.job_id = sqlc.arg(job_id) AND e.type = 'page'
ORDER BY e.number DESC LIMIT sqlc.arg(most)::integer;

-- name: JobsOfUrl :many
-- The jobs that visited a URL, the latest visit first.
SELECT v.job_id AS "job_id!", max(v.started_at)::timestamptz AS "visited_at!"
FROM frontier.url u JOIN archive.visit v ON v.url_id = u.id
WHERE u.organisation_id = sqlc.arg(organisation_id) AND u.hash = sqlc.arg(url_hash)
    AND v.job_id IS NOT NULL
GROUP BY v.job_id ORDER BY 2 DESC LIMIT sqlc.arg(most)::integer;
