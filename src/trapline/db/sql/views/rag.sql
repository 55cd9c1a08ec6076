-- The processing queue of a RAG application: what is made searchable, one row a file or page.
-- Here a higher priority comes first.

CREATE OR REPLACE VIEW rag.processing_jobs WITH (security_invoker = true) AS
SELECT
    queue.uuid_of((p.task).id) AS id,
    ((p.task).payload ->> 'application_id')::uuid AS application_id,
    ((p.task).payload ->> 'source_id')::uuid AS knowledge_source_id,
    -- Pages that a Firecrawl elsewhere tells of come as files, but are pages.
    CASE coalesce(s.kind, (p.task).kind)
        WHEN 'site' THEN 'crawl_page' WHEN 'file' THEN 'file' ELSE 'url'
    END::varchar AS type,
    CASE p.state
        WHEN 'queued' THEN 'pending' WHEN 'running' THEN 'processing' WHEN 'skipped' THEN 'cancelled'
        ELSE p.state
    END::varchar AS status,
    -(p.task).priority::integer AS priority,
    (p.task).payload AS payload,
    p.attempts,
    (p.task).max_attempts::integer AS max_attempts,
    p.error AS last_error,
    (p.task).created_at AS created_at,
    p.started_at,
    p.finished_at AS completed_at,
    p.heartbeat_at,
    s.config AS embedding_config,
    (p.job).member_id AS user_id
FROM queue.place p
LEFT JOIN knowledge.source s ON s.id = ((p.task).payload ->> 'source_id')::uuid
WHERE (p.task).kind IN ('file', 'index');

CREATE OR REPLACE VIEW rag.knowledge_sources WITH (security_invoker = true) AS
SELECT
    s.id,
    s.application_id,
    CASE s.kind WHEN 'site' THEN 'site_crawl' ELSE s.kind END::varchar AS type,
    s.name,
    s.uri AS url,
    s.status::varchar AS status,
    s.error,
    s.config AS embedding_config,
    s.created_by AS user_id,
    s.created_at,
    s.updated_at
FROM knowledge.source s;
