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

-- What operations of one type took for a job.
CREATE OR REPLACE FUNCTION webhook.took(job uuid, kind text) RETURNS double precision
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(
    (SELECT x.milliseconds FROM measure.job_time x WHERE x.job_id = job AND x.type = kind), 0.0);

CREATE OR REPLACE VIEW webhook.crawl_sessions WITH (security_invoker = true) AS
SELECT
    j.id,
    j.id::text::varchar AS job_id,
    coalesce(j.options ->> 'url', (
        SELECT t.payload ->> 'url' FROM queue.task t WHERE t.job_id = j.id ORDER BY t.id LIMIT 1
    ), '')::varchar AS base_url,
    CASE j.kind WHEN 'batch_scrape' THEN 'scrape_batch' ELSE j.kind END::varchar AS operation_type,
    coalesce(j.started_at, j.created_at) AS started_at,
    j.finished_at AS completed_at,
    CASE WHEN j.finished_at IS NULL THEN 'in_progress' ELSE j.status END::varchar AS status,
    CASE WHEN j.finished_at IS NOT NULL THEN j.status = 'completed' END AS success,
    (j.total - u.total)::integer AS total_urls,
    (j.completed - u.completed)::integer AS completed_urls,
    (j.failed - u.failed)::integer AS failed_urls,
    (j.total - u.total)::integer AS total_pages,
    u.indexed::integer AS pages_indexed,
    (j.failed - u.failed)::integer AS pages_failed,
    webhook.took(j.id, 'chunking') AS total_chunking_ms,
    webhook.took(j.id, 'embedding') AS total_embedding_ms,
    webhook.took(j.id, 'vector') AS total_qdrant_ms,
    webhook.took(j.id, 'bm25') AS total_bm25_ms,
    (extract(epoch FROM j.finished_at - coalesce(j.started_at, j.created_at)) * 1000)
        ::double precision AS duration_ms,
    coalesce(webhook.moment(j.metadata ->> 'initiated_at'), j.created_at) AS initiated_at,
    (extract(epoch FROM j.finished_at
        - coalesce(webhook.moment(j.metadata ->> 'initiated_at'), j.created_at)) * 1000)
        ::double precision AS e2e_duration_ms,
    coalesce(j.options -> 'index' = 'true', false) AS auto_index,
    j.expires_at,
    j.metadata AS extra_metadata,
    j.error AS error_message,
    j.created_at,
    greatest(j.created_at, j.started_at, j.finished_at) AS updated_at
FROM queue.job j
-- The few tasks that are no pages: kickoffs, sitemaps, indexing. A scrape has none.
CROSS JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(*) FILTER (WHERE d.status = 0) AS completed,
        count(*) FILTER (WHERE d.status = 1) AS failed,
        count(*) FILTER (WHERE d.status = 0 AND t.kind IN ('index', 'file')) AS indexed
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE j.kind <> 'scrape' AND t.job_id = j.id AND NOT t.counted
) u
WHERE NOT j.standing
UNION ALL
SELECT
    p.id,
    p.id::text::varchar AS job_id,
    p.base_url::varchar AS base_url,
    CASE p.kind WHEN 'batch_scrape' THEN 'scrape_batch' ELSE p.kind END AS operation_type,
    p.started_at,
    p.finished_at AS completed_at,
    p.status,
    p.status = 'completed' AS success,
    p.total::integer AS total_urls,
    p.completed::integer AS completed_urls,
    p.failed::integer AS failed_urls,
    p.total::integer AS total_pages,
    p.indexed::integer AS pages_indexed,
    p.failed::integer AS pages_failed,
    webhook.took(p.id, 'chunking') AS total_chunking_ms,
    webhook.took(p.id, 'embedding') AS total_embedding_ms,
    webhook.took(p.id, 'vector') AS total_qdrant_ms,
    webhook.took(p.id, 'bm25') AS total_bm25_ms,
    (extract(epoch FROM p.finished_at - p.started_at) * 1000)::double precision AS duration_ms,
    coalesce(webhook.moment(p.metadata ->> 'initiated_at'), p.created_at) AS initiated_at,
    (extract(epoch FROM p.finished_at
        - coalesce(webhook.moment(p.metadata ->> 'initiated_at'), p.created_at)) * 1000)
        ::double precision AS e2e_duration_ms,
    p.auto_index,
    p.expired_at AS expires_at,
    p.metadata AS extra_metadata,
    p.error AS error_message,
    p.created_at,
    p.finished_at AS updated_at
FROM queue.past_job p
-- A large job goes in parts; until the last one it is there itself.
WHERE NOT EXISTS (SELECT FROM queue.job j WHERE j.id = p.id);

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
