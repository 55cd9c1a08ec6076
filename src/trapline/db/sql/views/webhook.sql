-- The webhook bridge of Firecrawl: sessions and what was measured. A session outlives its job.

-- A time that a client gave; null where it is none.
CREATE OR REPLACE FUNCTION webhook.moment(given text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN given::timestamptz;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- Jobs, and those that are gone, each by columns alone: so the planner sees through to the indexes of
-- both tables, also from a join. What is computed stands outside, where only who asks for it pays.
CREATE OR REPLACE VIEW webhook.crawl_sessions WITH (security_invoker = true) AS
SELECT
    s.id,
    s.job_id,
    coalesce(s.url, (
        SELECT t.payload ->> 'url' FROM queue.task t WHERE t.job_id = s.id ORDER BY t.id LIMIT 1
    ), '')::varchar AS base_url,
    CASE s.kind WHEN 'batch_scrape' THEN 'scrape_batch' ELSE s.kind END::varchar AS operation_type,
    s.started_at,
    s.finished_at AS completed_at,
    CASE WHEN s.finished_at IS NULL THEN 'in_progress' ELSE s.status END::varchar AS status,
    CASE WHEN s.finished_at IS NOT NULL THEN s.status = 'completed' END AS success,
    (s.total - s.beside[1])::integer AS total_urls,
    (s.completed - s.beside[2])::integer AS completed_urls,
    (s.failed - s.beside[3])::integer AS failed_urls,
    (s.total - s.beside[1])::integer AS total_pages,
    -- What an ingest does, it makes searchable.
    CASE s.kind WHEN 'ingest' THEN s.completed - s.beside[2] ELSE s.beside[4] END::integer AS pages_indexed,
    (s.failed - s.beside[3])::integer AS pages_failed,
    coalesce((SELECT x.milliseconds FROM measure.job_time x
              WHERE x.job_id = s.id AND x.type = 'chunking'), 0.0) AS total_chunking_ms,
    coalesce((SELECT x.milliseconds FROM measure.job_time x
              WHERE x.job_id = s.id AND x.type = 'embedding'), 0.0) AS total_embedding_ms,
    coalesce((SELECT x.milliseconds FROM measure.job_time x
              WHERE x.job_id = s.id AND x.type = 'vector'), 0.0) AS total_qdrant_ms,
    coalesce((SELECT x.milliseconds FROM measure.job_time x
              WHERE x.job_id = s.id AND x.type = 'bm25'), 0.0) AS total_bm25_ms,
    (extract(epoch FROM s.finished_at - s.started_at) * 1000)::double precision AS duration_ms,
    coalesce(webhook.moment(s.metadata ->> 'initiated_at'), s.created_at) AS initiated_at,
    (extract(epoch FROM s.finished_at
        - coalesce(webhook.moment(s.metadata ->> 'initiated_at'), s.created_at)) * 1000)
        ::double precision AS e2e_duration_ms,
    s.auto_index,
    s.expires_at,
    s.metadata AS extra_metadata,
    s.error AS error_message,
    s.created_at,
    greatest(s.created_at, s.started_at, s.finished_at) AS updated_at
FROM (
    SELECT j.id, j.id_text AS job_id, j.options ->> 'url' AS url, j.kind, j.begun_at AS started_at,
        j.finished_at, j.status, j.total, j.completed, j.failed,
        -- The few tasks that are no pages: kickoffs, sitemaps, indexing. A scrape has none.
        CASE WHEN j.kind = 'scrape' THEN '{0,0,0,0}' ELSE (
            SELECT ARRAY[
                count(*),
                count(*) FILTER (WHERE d.status = 0),
                count(*) FILTER (WHERE d.status = 1),
                count(*) FILTER (WHERE d.status = 0 AND t.kind IN ('index', 'file'))
            ]
            FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
            WHERE t.job_id = j.id AND NOT t.counted
        ) END AS beside,
        j.metadata, coalesce(j.options -> 'index' = 'true', false) AS auto_index, j.expires_at,
        j.error, j.created_at, j.standing, false AS past
    FROM queue.job j
    UNION ALL
    SELECT p.id, p.id_text, p.base_url, p.kind, p.started_at,
        p.finished_at, p.status, p.total, p.completed, p.failed,
        ARRAY[0, 0, 0, p.indexed],
        p.metadata, p.auto_index, p.expired_at,
        p.error, p.created_at, false, true
    FROM queue.past_job p
) s
WHERE NOT s.standing
    -- A large job goes in parts: from the first on, what is remembered of it stands for it.
    AND NOT (NOT s.past AND s.expires_at <= now() AND EXISTS (
        SELECT FROM queue.past_job p WHERE p.id = s.id));

CREATE OR REPLACE VIEW webhook.operation_metrics WITH (security_invoker = true) AS
SELECT
    queue.uuid_of(o.id) AS id,
    o.recorded_at AS "timestamp",
    CASE o.type WHEN 'vector' THEN 'qdrant' ELSE o.type END::varchar AS operation_type,
    o.name::varchar AS operation_name,
    o.milliseconds AS duration_ms,
    o.error IS NULL AS success,
    o.error AS error_message,
    o.request_id::text::varchar AS request_id,
    queue.uuid_of(o.task_id)::text::varchar AS job_id,
    o.job_id::text::varchar AS crawl_id,
    o.document_url::varchar AS document_url,
    o.extra AS extra_metadata,
    o.recorded_at AS created_at
FROM measure.operation o;

CREATE OR REPLACE VIEW webhook.request_metrics WITH (security_invoker = true) AS
SELECT
    queue.uuid_of(r.id) AS id,
    r.recorded_at AS "timestamp",
    r.method::varchar AS method,
    r.path::varchar AS path,
    r.status::integer AS status_code,
    r.milliseconds AS duration_ms,
    r.request_id::text::varchar AS request_id,
    r.client::varchar AS client_ip,
    r.user_agent::varchar AS user_agent,
    r.extra AS extra_metadata,
    r.recorded_at AS created_at
FROM measure.request r;

-- Changes that a watcher reported, and those that our own visits saw.
CREATE OR REPLACE VIEW webhook.change_events WITH (security_invoker = true) AS
SELECT
    c.id,
    coalesce(c.watch_id, c.page_id::text)::varchar AS watch_id,
    coalesce(c.watch_url, u.url) AS watch_url,
    c.detected_at,
    coalesce(c.diff_summary, format('%s: +%s -%s lines', c.status, coalesce(c.added_lines, 0),
                                    coalesce(c.removed_lines, 0))) AS diff_summary,
    c.snapshot_url,
    c.rescrape_job_id::text::varchar AS rescrape_job_id,
    c.rescrape_status::varchar AS rescrape_status,
    c.indexed_at,
    c.metadata,
    c.created_at
FROM store.change c
LEFT JOIN frontier.url_text u ON u.id = c.url_id
WHERE c.status <> 'same';
