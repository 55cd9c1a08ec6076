-- name: ExistingFiles :many
-- Files that exist with one of these URIs or hashes. `open`: their job has not ended.
SELECT
    s.id AS source_id, s.uri, s.sha256 AS "sha256!", s.status, s.config,
    EXISTS (
        SELECT FROM queue.job j
        WHERE j.id = s.job_id AND j.status IN ('pending', 'running', 'paused')
    ) AS "open!"
FROM knowledge.source s
WHERE s.organisation_id = sqlc.arg(organisation_id)
    AND s.application_id IS NOT DISTINCT FROM sqlc.narg(application_id)::uuid
    AND s.kind = 'file'
    AND s.sha256 IS NOT NULL
    AND (
        s.sha256 = ANY (sqlc.arg(hashes)::bytea[])
        OR md5(s.uri) = ANY (sqlc.arg(uri_digests)::text[])
    )
ORDER BY s.created_at, s.id;

-- name: ScopeProgress :one
-- Progress of a source or an application. Items that an ended job left undone count as cancelled.
WITH parts AS (
    SELECT
        t.job_id, sum(t.total) AS total, sum(t.completed) AS completed, sum(t.failed) AS failed,
        sum(t.total - t.completed - t.failed) AS rest
    FROM knowledge.tally t
    WHERE t.scope = sqlc.arg(scope)
        AND (sqlc.narg(since)::timestamptz IS NULL OR t.minute >= sqlc.narg(since))
    GROUP BY t.job_id
),
judged AS (
    SELECT p.*, EXISTS (
        SELECT FROM queue.job j
        WHERE j.id = p.job_id AND j.status IN ('pending', 'running', 'paused')
    ) AS open
    FROM parts p
),
summed AS (
    SELECT
        coalesce(sum(total), 0)::bigint AS total,
        coalesce(sum(completed), 0)::bigint AS completed,
        coalesce(sum(failed), 0)::bigint AS failed,
        coalesce(sum(rest) FILTER (WHERE NOT open), 0)::bigint AS cancelled,
        coalesce(sum(rest) FILTER (WHERE open), 0)::bigint AS rest
    FROM judged
)
SELECT
    s.total AS "total!", s.completed AS "completed!", s.failed AS "failed!",
    s.cancelled AS "cancelled!", s.rest AS "rest!",
    (
        SELECT count(*)
        FROM queue.leased d JOIN queue.task t ON t.id = d.task_id
        WHERE t.kind IN ('file', 'index')
            AND sqlc.arg(scope)::uuid::text IN (t.payload ->> 'source_id', t.payload ->> 'application_id')
            AND EXISTS (SELECT FROM judged j WHERE j.job_id = t.job_id AND j.open)
    ) AS "in_hand!"
FROM summed s;

-- name: GetSource :one
-- returns: SourceDetails
-- One source with its state.
SELECT
    s.id AS source_id, s.organisation_id, s.application_id, s.kind, s.name, s.uri, s.site_id,
    s.provider, s.error, s.config, s.fetching, s.generation, s.rescrape_every, s.job_id, s.size,
    s.content_type, s.created_by, s.created_at, s.updated_at, c.id AS "schedule_id?",
    c.every AS "fetched_every?", c.next_at AS "next_fetch_at?",
    (c.paused_at IS NOT NULL)::boolean AS "fetching_paused!", r.id AS "renewal_job_id?",
    CASE
        WHEN s.status NOT IN ('pending', 'processing') THEN s.status
        WHEN j.id IS NULL AND s.job_id IS NULL THEN s.status
        WHEN j.id IS NULL OR j.status = 'cancelled' THEN 'cancelled'
        WHEN j.status IN ('completed', 'failed') AND s.kind <> 'file' THEN j.status
        WHEN s.kind <> 'file' AND j.status = 'running' THEN 'processing'
        WHEN j.status IN ('completed', 'failed') THEN 'processing'
        WHEN h.source_id IS NOT NULL THEN 'processing'
        ELSE 'pending' END AS "status!"
FROM knowledge.source s
LEFT JOIN queue.job j ON j.id = s.job_id
LEFT JOIN queue.job r
    ON r.id = s.renewal_job_id AND r.status IN ('pending', 'running', 'paused')
LEFT JOIN queue.schedule c
    ON c.organisation_id = s.organisation_id AND c.name_key = 'source ' || s.id::text
LEFT JOIN LATERAL (
    SELECT s.id AS source_id FROM queue.leased d JOIN queue.task t ON t.id = d.task_id
    WHERE t.job_id = s.job_id AND s.kind = 'file' AND t.kind = 'file'
        AND (t.payload ->> 'source_id')::uuid = s.id
    LIMIT 1
) h ON true
WHERE s.id = sqlc.arg(source_id);

-- name: ListSources :many
-- returns: SourceDetails
-- Sources of an organisation or of one of its applications after a key, oldest first.
SELECT
    s.id AS source_id, s.organisation_id, s.application_id, s.kind, s.name, s.uri, s.site_id,
    s.provider, s.error, s.config, s.fetching, s.generation, s.rescrape_every, s.job_id, s.size,
    s.content_type, s.created_by, s.created_at, s.updated_at, c.id AS "schedule_id?",
    c.every AS "fetched_every?", c.next_at AS "next_fetch_at?",
    (c.paused_at IS NOT NULL)::boolean AS "fetching_paused!", r.id AS "renewal_job_id?",
    CASE
        WHEN s.status NOT IN ('pending', 'processing') THEN s.status
        WHEN j.id IS NULL AND s.job_id IS NULL THEN s.status
        WHEN j.id IS NULL OR j.status = 'cancelled' THEN 'cancelled'
        WHEN j.status IN ('completed', 'failed') AND s.kind <> 'file' THEN j.status
        WHEN s.kind <> 'file' AND j.status = 'running' THEN 'processing'
        WHEN j.status IN ('completed', 'failed') THEN 'processing'
        WHEN h.source_id IS NOT NULL THEN 'processing'
        ELSE 'pending' END AS "status!"
FROM knowledge.source s
LEFT JOIN queue.job j ON j.id = s.job_id
LEFT JOIN queue.job r
    ON r.id = s.renewal_job_id AND r.status IN ('pending', 'running', 'paused')
LEFT JOIN queue.schedule c
    ON c.organisation_id = s.organisation_id AND c.name_key = 'source ' || s.id::text
LEFT JOIN (
    SELECT DISTINCT (t.payload ->> 'source_id')::uuid AS source_id
    FROM queue.leased d JOIN queue.task t ON t.id = d.task_id
    WHERE t.kind = 'file'
) h ON h.source_id = s.id
WHERE s.organisation_id = sqlc.arg(organisation_id)
    AND (sqlc.narg(application_id)::uuid IS NULL OR s.application_id = sqlc.narg(application_id))
    AND (sqlc.narg(status)::text IS NULL OR s.status = sqlc.narg(status))
    AND (sqlc.narg(kind)::text IS NULL OR s.kind = sqlc.narg(kind))
    AND (s.created_at, s.id) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::uuid)
ORDER BY s.created_at, s.id
LIMIT sqlc.arg(most)::integer;

-- name: CountPassages :one
-- Texts and passages of a source in its current generation, and texts in the next one.
SELECT
    (SELECT count(*) FROM knowledge.entry e WHERE e.source_id = s.id AND e.generation > s.generation)
        AS "renewed!",
    (SELECT count(*) FROM knowledge.entry e WHERE e.source_id = s.id AND e.generation = s.generation)
        AS "texts!",
    (
        SELECT count(*) FROM knowledge.chunk c JOIN knowledge.entry e ON e.id = c.entry_id
        WHERE e.source_id = s.id AND e.generation = s.generation
    ) AS "passages!"
FROM knowledge.source s WHERE s.id = sqlc.arg(source_id);

-- name: SourcesToUpgrade :many
-- Completed sources with another embedding model than the current one and no re-embedding in progress. A
-- failed re-embedding is repeated after a while.
SELECT s.id AS source_id, s.organisation_id, s.config
FROM knowledge.source s LEFT JOIN queue.job j ON j.id = s.renewal_job_id
WHERE s.config ->> 'model' <> sqlc.arg(model)::text AND s.status = 'completed'
    AND (j.id IS NULL OR j.finished_at < now() - sqlc.arg(after)::interval)
ORDER BY s.id
LIMIT sqlc.arg(most)::integer;

-- name: OpenJobs :many
-- Those of these jobs that are open.
SELECT id AS job_id FROM queue.job
WHERE id = ANY (sqlc.arg(job_ids)::uuid[]) AND status IN ('pending', 'running', 'paused');

-- name: SourcesByModel :many
-- Number of sources of an organisation by embedding model, and of those being re-embedded.
SELECT
    (s.config ->> 'model')::text AS "model!", count(*) AS "sources!",
    count(*) FILTER (WHERE r.id IS NOT NULL) AS "renewing!"
FROM knowledge.source s
LEFT JOIN queue.job r
    ON r.id = s.renewal_job_id AND r.status IN ('pending', 'running', 'paused')
WHERE s.organisation_id = sqlc.arg(organisation_id)
GROUP BY 1
ORDER BY 1;

-- name: JobsOfItems :many
-- Creation time and member of jobs.
SELECT id AS job_id, created_at, member_id FROM queue.job WHERE id = ANY (sqlc.arg(job_ids)::uuid[]);

-- name: FailedItems :many
-- The errors of failed items of a job.
SELECT
    (t.payload ->> 'source_id')::uuid AS "source_id!",
    (t.payload ->> 'application_id')::uuid AS "application_id?",
    d.task_id, t.kind, d.error
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = sqlc.arg(job_id) AND t.kind IN ('file', 'index')
ORDER BY d.task_id;

-- name: LostItems :many
-- Failed items of an ended job that no counter has, by the scope that counts them. An item that was counted
-- has an event.
WITH lost AS (
    SELECT (t.payload ->> 'source_id')::uuid AS source_id,
        (t.payload ->> 'application_id')::uuid AS application_id
    FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
    WHERE d.job_id = sqlc.arg(job_id) AND t.kind IN ('file', 'index')
        AND d.task_id NOT IN (
            SELECT e.task_id FROM queue.event e
            WHERE e.job_id = sqlc.arg(job_id) AND e.type = 'item' AND e.task_id IS NOT NULL
        )
),
scopes AS (
    SELECT l.source_id AS scope FROM lost l JOIN knowledge.source s ON s.id = l.source_id
    WHERE s.kind <> 'file'
    UNION ALL
    SELECT l.application_id FROM lost l WHERE l.application_id IS NOT NULL
)
SELECT counted.scope::uuid AS "scope!", least(counted.items, open.rest)::bigint AS "items!"
FROM (SELECT s.scope, count(*) AS items FROM scopes s GROUP BY s.scope) counted
-- What an earlier round of the job lost was counted then.
JOIN LATERAL (
    SELECT sum(t.total - t.completed - t.failed) AS rest FROM knowledge.tally t
    WHERE t.scope = counted.scope AND t.job_id = sqlc.arg(job_id)
) open ON open.rest > 0;

-- name: VersionText :one
-- The text and metadata of a version.
SELECT
    v.id AS version_id, v.markdown, v.title, v.language, v.content_type, v.fetched_at,
    v.metadata
FROM store.version v
WHERE v.id = sqlc.arg(version_id);

-- name: JobsWithItems :many
-- Those of these jobs that index something.
SELECT wanted.id::uuid AS "job_id!"
FROM unnest(sqlc.arg(job_ids)::uuid[]) AS wanted (id)
WHERE EXISTS (SELECT FROM knowledge.source s WHERE s.job_id = wanted.id)
    OR EXISTS (SELECT FROM knowledge.tally t WHERE t.job_id = wanted.id);

-- name: FailedFiles :many
-- The failed files of a job by name, with their errors.
SELECT (t.payload ->> 'name')::text AS "name!", d.error
FROM queue.dead_letter d JOIN queue.task t ON t.id = d.task_id
WHERE d.job_id = sqlc.arg(job_id) AND t.kind = 'file'
ORDER BY 1;

-- name: LastPageError :one
-- The error of the last failed page of a job.
SELECT (e.data ->> 'error')::text AS "error!"
FROM queue.event e
WHERE e.job_id = sqlc.arg(job_id) AND e.type = 'page' AND e.data ->> 'error' IS NOT NULL
ORDER BY e.number DESC
LIMIT 1;
