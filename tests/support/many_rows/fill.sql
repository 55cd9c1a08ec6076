-- Rows as 90 days of use leave them, in the order of time. Called with session_replication_role =
-- replica, so what the triggers would have counted is counted here.

-- name: applications
INSERT INTO knowledge.application (id, organisation_id, name)
SELECT md5('application' || o)::uuid, o, 'Library' FROM unnest($1::uuid[]) o;

-- name: sources
INSERT INTO knowledge.source (id, organisation_id, application_id, kind, name, uri)
SELECT md5('source' || o)::uuid, o, md5('application' || o)::uuid, 'file', 'books', 'file:books'
FROM unnest($1::uuid[]) o;

-- Sixteen of twenty are single scrapes, three crawls, one an ingest. Of those with many tasks nine of
-- ten are small, nine of a hundred ten times as large, one of a hundred fifty times.
-- name: jobs
INSERT INTO queue.job (id, organisation_id, kind, status, options, metadata, total, completed, failed,
    reserved, created_at, started_at, finished_at, expires_at)
SELECT gen_random_uuid(), o.id, k.kind, CASE WHEN n % 20 = 7 THEN 'failed' ELSE 'completed' END,
    jsonb_build_object('url', 'https://host' || n % 1000 || '.example/' || n), '{"origin": "api"}',
    k.tasks, k.tasks - k.tasks / 20, k.tasks / 20, k.tasks, w.at, w.at + interval '20 ms',
    w.at + interval '2 s' * k.tasks, w.at + interval '100 days'
FROM generate_series(1, $1::integer) n
CROSS JOIN LATERAL (SELECT ($2::uuid[])[1 + n / 20 % 10] AS id) o
CROSS JOIN LATERAL (
    SELECT CASE WHEN n % 20 < 16 THEN 'scrape' WHEN n % 20 < 19 THEN 'crawl' ELSE 'ingest' END AS kind,
        CASE WHEN n % 20 < 16 THEN 1 WHEN n / 200 % 100 = 0 THEN 1000
            WHEN n / 200 % 100 < 10 THEN 200 ELSE 20 END AS tasks
) k
CROSS JOIN LATERAL (SELECT now() - interval '90 days' * (1 - (n - 1)::float8 / $1) AS at) w;

-- Open crawls, begun in the last 30 days, each with a line of its own.
-- name: open jobs
WITH job AS (
    INSERT INTO queue.job (id, organisation_id, kind, status, options, total, remaining, reserved,
        created_at, started_at)
    SELECT gen_random_uuid(), ($2::uuid[])[1 + n % 10], 'crawl', 'running',
        jsonb_build_object('url', 'https://open' || n || '.example/'), $3::bigint, $3, $3, w.at, w.at
    FROM generate_series(1, $1::integer) n
    CROSS JOIN LATERAL (SELECT now() - interval '30 days' * (1 - (n - 1)::float8 / $1) AS at) w
    RETURNING id, organisation_id
),
gate AS (
    INSERT INTO queue.gate (name) SELECT 'host:open' || n || '.example'
    FROM generate_series(1, $1::integer) n RETURNING id
)
INSERT INTO queue.lane (organisation_id, job_id, gate_id)
SELECT j.organisation_id, j.id, g.id
FROM (SELECT *, row_number() OVER () AS n FROM job) j
JOIN (SELECT id, row_number() OVER () AS n FROM gate) g USING (n);

-- What the jobs of one day did: the first task of a crawl is its kickoff.
-- name: finished
WITH new AS (
    INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts,
        source, counted, created_at)
    SELECT j.organisation_id, j.id, 0, 0,
        CASE j.kind WHEN 'ingest' THEN 'file' WHEN 'scrape' THEN 'single_urls'
            ELSE CASE n WHEN 1 THEN 'kickoff' ELSE 'single_urls' END END,
        CASE j.kind WHEN 'ingest' THEN jsonb_build_object('name', n || '.pdf',
            'application_id', md5('application' || j.organisation_id)::uuid,
            'source_id', md5('source' || j.organisation_id)::uuid)
            ELSE jsonb_build_object('url', (j.options ->> 'url') || '/' || n) END,
        3, CASE WHEN n > 1 THEN 1 ELSE 0 END, j.kind <> 'crawl' OR n > 1,
        j.created_at + interval '200 ms' * n
    FROM (
        SELECT * FROM queue.job WHERE created_at >= $1 AND created_at < $2
            AND status IN ('completed', 'failed') ORDER BY created_at
    ) j CROSS JOIN LATERAL generate_series(1, j.total) n
    RETURNING id, created_at, job_id, organisation_id, payload, kind
),
lost AS (
    INSERT INTO queue.dead_letter (task_id, organisation_id, job_id, kind, error, failed_at)
    SELECT id, organisation_id, job_id, kind, 'The server refused.', created_at + interval '2 s'
    FROM new WHERE id % 20 = 0
)
INSERT INTO queue.done (task_id, status, attempts, stalls, agent_id, started_at, finished_at, error, result)
SELECT id, CASE WHEN id % 20 = 0 THEN 1 WHEN id % 100 = 1 THEN 2 ELSE 0 END, 1, 0, 1,
    created_at + interval '1 s', created_at + interval '2 s',
    CASE WHEN id % 20 = 0 THEN 'The server refused.' WHEN id % 100 = 1 THEN 'robots.txt' END,
    CASE WHEN kind = 'single_urls' AND id % 20 <> 0 AND id % 100 <> 1 THEN jsonb_build_object(
        'url', payload ->> 'url', 'status', 200, 'visit_id', id, 'version_id', id) END
FROM new;

-- name: queued
WITH new AS (
    INSERT INTO queue.task (organisation_id, job_id, lane_id, gate_id, kind, payload, max_attempts,
        source, created_at)
    SELECT l.organisation_id, l.job_id, l.id, l.gate_id, 'single_urls',
        jsonb_build_object('url', (j.options ->> 'url') || n), 3, 1,
        j.created_at + interval '1 hour' * n / j.total
    FROM queue.job j JOIN queue.lane l ON l.job_id = j.id CROSS JOIN LATERAL generate_series(1, j.total) n
    WHERE j.status = 'running' AND j.created_at >= $1 AND j.created_at < $2
    ORDER BY n
    RETURNING id, lane_id
)
INSERT INTO queue.ready (lane_id, priority, task_id) SELECT lane_id, 0, id FROM new;

-- The pages of the last day are there to be read.
-- name: versions
INSERT INTO store.version (id, organisation_id, page_id, number, visit_id, job_id, fetched_at,
    content_hash, extractor_version, status, content_type, title, language, page_type, text, markdown,
    metadata, links)
OVERRIDING SYSTEM VALUE
SELECT t.id, t.organisation_id, md5('page' || t.id)::uuid, 1, t.id, t.job_id, d.finished_at,
    sha256(t.id::text::bytea), 1, 200, 'text/html', 'Page ' || t.id, 'en', 'article', p.words, p.words,
    '{"description": "A page"}', '["https://host.example/1", "https://host.example/2"]'
FROM queue.task t JOIN queue.done d ON d.task_id = t.id
CROSS JOIN LATERAL (
    SELECT string_agg(md5(t.id || ' ' || n), E'\n\n') AS words FROM generate_series(1, 100) n) p
WHERE t.created_at > now() - interval '1 day' AND d.status = 0 AND t.kind = 'single_urls';

-- name: tally
INSERT INTO queue.job_tally (organisation_id, hour, kind, status, jobs, folded)
SELECT organisation_id, date_trunc('hour', created_at, 'UTC'), kind, status, count(*), true
FROM queue.job GROUP BY 1, 2, 3, 4;

-- Jobs that are gone, as many as are there.
-- name: past jobs
INSERT INTO queue.past_job (id, organisation_id, kind, status, base_url, total, completed, failed,
    indexed, auto_index, metadata, created_at, started_at, finished_at)
SELECT gen_random_uuid(), ($2::uuid[])[1 + n % 10], 'crawl', 'completed', 'https://gone.example/' || n,
    20, 19, 1, 0, false, '{}', w.at, w.at, w.at + interval '40 s'
FROM generate_series(1, $1::integer) n
CROSS JOIN LATERAL (SELECT now() - interval '90 days' * (1 - (n - 1)::float8 / $1) AS at) w;

-- name: job times
INSERT INTO measure.job_time (job_id, type, organisation_id, operations, failures, milliseconds, created_at)
SELECT j.id, k, j.organisation_id, 10, 0, 100, j.created_at
FROM queue.job j CROSS JOIN unnest(ARRAY['chunking', 'embedding', 'vector', 'bm25']) k
WHERE j.kind <> 'scrape' AND j.status <> 'running';

-- name: operations
INSERT INTO measure.operation (recorded_at, organisation_id, type, name, milliseconds, job_id, document_url)
SELECT now() - interval '90 days' * (1 - n::float8 / $1), ($2::uuid[])[1 + n % 10],
    (ARRAY['chunking', 'embedding', 'vector', 'bm25'])[1 + n % 4], 'page', n % 50,
    md5((n / 50)::text)::uuid, 'https://example.com/' || n
FROM generate_series(1, $1::integer) n;

-- name: requests
INSERT INTO measure.request (recorded_at, organisation_id, method, path, route, status, milliseconds,
    request_id, client, user_agent)
SELECT now() - interval '90 days' * (1 - n::float8 / $1), ($2::uuid[])[1 + n % 10], 'POST',
    '/v2/scrape', '/v2/scrape', 200, n % 90, gen_random_uuid(), '10.0.0.1', 'firecrawl-py/4'
FROM generate_series(1, $1::integer) n;

-- name: sizes
SELECT c.relname, pg_total_relation_size(c.oid) AS bytes, greatest(c.reltuples, 1) AS rows
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname IN ('queue.task', 'queue.done', 'queue.ready', 'queue.job') ORDER BY 1;

-- name: counts
SELECT (SELECT count(*) FROM queue.done) AS finished, (SELECT count(*) FROM queue.ready) AS queued,
    (SELECT count(*) FROM queue.job) AS jobs,
    (SELECT count(*) FROM measure.operation) + (SELECT count(*) FROM measure.request) AS measured;

-- A crawl of some size that has ended within the last day, whose pages are there.
-- name: a crawl
SELECT id FROM queue.job WHERE kind = 'crawl' AND status = 'completed' AND organisation_id = $1
    AND created_at > now() - interval '20 hours' ORDER BY total DESC, id LIMIT 1;

-- Indexes that no constraint needs: dropped before a large fill, made again after it.
-- name: plain indexes
SELECT format('%I.%I', n.nspname, c.relname) AS name, pg_get_indexdef(c.oid) AS definition
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.indrelid = ANY ($1::text[]::regclass[]) AND NOT i.indisunique;

-- name: organisations
SELECT id FROM tenancy.organisation WHERE name LIKE 'Organisation _' ORDER BY name;
