-- Lexicon: sites as websites, jobs that visit pages as crawl jobs, pages as they are now.

DO $$
BEGIN
    IF to_regtype('lexicon.job_type_enum') IS NULL THEN
        CREATE TYPE lexicon.job_type_enum AS ENUM ('one_time', 'scheduled', 'recurring');
        CREATE TYPE lexicon.status_enum AS ENUM (
            'pending', 'running', 'completed', 'failed', 'cancelled', 'active', 'inactive');
        CREATE TYPE lexicon.log_level_enum AS ENUM ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL');
    END IF;
END
$$;

CREATE OR REPLACE VIEW lexicon.website WITH (security_invoker = true) AS
SELECT
    s.id,
    s.name::varchar AS name,
    s.base_url::varchar AS base_url,
    s.config,
    s.status::lexicon.status_enum AS status,
    s.created_at,
    s.updated_at,
    s.created_by::varchar AS created_by
FROM store.site s
WHERE s.deleted_at IS NULL;

-- Priorities are 1 to 10 here, higher first. A job without a site has the one of its URL's origin.
CREATE OR REPLACE VIEW lexicon.crawl_job WITH (security_invoker = true) AS
SELECT
    j.id,
    coalesce((j.options ->> 'site_id')::uuid, (
        SELECT s.id FROM store.site s
        WHERE s.organisation_id = j.organisation_id AND s.implicit AND s.deleted_at IS NULL
            AND s.base_url = substring(j.options ->> 'url' FROM '^https?://[^/]+')
        ORDER BY s.variant LIMIT 1
    )) AS website_id,
    coalesce((
        SELECT h.kind FROM queue.schedule h WHERE h.id::text = j.metadata ->> 'schedule_id'
    ), 'one_time')::lexicon.job_type_enum AS job_type,
    coalesce(j.options ->> 'url', (
        SELECT t.payload ->> 'url' FROM queue.task t WHERE t.job_id = j.id ORDER BY t.id LIMIT 1
    ))::varchar AS seed_url,
    j.options AS embedded_config,
    CASE j.status WHEN 'paused' THEN 'pending' ELSE j.status END::lexicon.status_enum AS status,
    least(greatest(5 - j.priority, 1), 10)::integer AS priority,
    j.scheduled_at,
    j.started_at,
    CASE WHEN j.status <> 'cancelled' THEN j.finished_at END AS completed_at,
    CASE WHEN j.status = 'cancelled' THEN j.finished_at END AS cancelled_at,
    j.cancelled_by::varchar AS cancelled_by,
    j.cancel_reason AS cancellation_reason,
    j.error AS error_message,
    j.retry_count,
    j.max_retries,
    j.metadata,
    j.variables,
    jsonb_build_object(
        'pages_crawled', j.completed - u.completed, 'pages_pending', j.remaining - u.open,
        'errors', j.failed - u.failed, 'pages_skipped', j.skipped, 'total', j.total - u.total,
        'last_update', greatest(j.created_at, j.started_at, j.finished_at)
    ) AS progress,
    j.created_at,
    greatest(j.created_at, j.started_at, j.finished_at) AS updated_at
FROM queue.job j
-- The few tasks that are no pages. A scrape has none. Who does not ask for them does not count them.
LEFT JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(*) FILTER (WHERE d.status = 0) AS completed,
        count(*) FILTER (WHERE d.status = 1) AS failed,
        -- Of a job that has ended, nothing is open.
        count(*) FILTER (WHERE d.task_id IS NULL AND j.finished_at IS NULL) AS open
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE j.kind <> 'scrape' AND t.job_id = j.id AND NOT t.counted
) u ON true
WHERE j.kind IN ('crawl', 'batch_scrape', 'scrape', 'ingest', 'warm') AND NOT j.standing;

-- A page with its latest version; store.version has those before.
CREATE OR REPLACE VIEW lexicon.crawled_page WITH (security_invoker = true) AS
SELECT
    p.id,
    p.site_id AS website_id,
    v.job_id,
    ((CASE WHEN u.secure THEN 'https://' ELSE 'http://' END) || h.name || u.path)::varchar AS url,
    encode(u.hash, 'hex')::varchar AS url_hash,
    encode(p.content_hash, 'hex')::varchar AS content_hash,
    v.title::varchar AS title,
    v.text AS extracted_content,
    v.metadata || jsonb_build_object(
        'status_code', v.status, 'content_type', v.content_type, 'language', v.language
    ) AS metadata,
    ('sha256:' || encode(v.sha256, 'hex'))::varchar AS gcs_html_path,
    CASE WHEN v.page_type = 'document' THEN jsonb_build_array('sha256:' || encode(v.sha256, 'hex'))
        ELSE '[]' END AS gcs_documents,
    coalesce(o.page_id <> p.id, false) AS is_duplicate,
    nullif(o.page_id, p.id) AS duplicate_of,
    CASE WHEN o.page_id <> p.id THEN l.similarity::integer END AS similarity_score,
    p.last_seen_at AS crawled_at,
    p.first_seen_at AS created_at
FROM store.page p
JOIN frontier.url u ON u.id = p.url_id
JOIN frontier.host h ON h.id = u.host_id
LEFT JOIN store.version v ON v.id = p.version_id
LEFT JOIN store.likeness l ON l.page_id = p.id
-- The first page of a group is its original.
LEFT JOIN LATERAL (
    SELECT g.page_id FROM store.likeness g
    WHERE g.site_id = l.site_id AND g.group_id = l.group_id
    ORDER BY g.by_hand, g.page_id LIMIT 1
) o ON true;

CREATE OR REPLACE VIEW lexicon.content_hash WITH (security_invoker = true) AS
SELECT
    encode(c.content_hash, 'hex')::varchar AS content_hash,
    c.first_seen_page_id,
    c.occurrence_count::integer AS occurrence_count,
    c.last_seen_at,
    c.created_at
FROM store.content_hash c;

CREATE OR REPLACE VIEW lexicon.crawl_log WITH (security_invoker = true) AS
SELECT
    l.id,
    l.job_id,
    l.site_id AS website_id,
    l.step::varchar AS step_name,
    l.level::lexicon.log_level_enum AS log_level,
    l.message,
    l.context,
    l.trace_id,
    l.created_at
FROM queue.job_log l;
