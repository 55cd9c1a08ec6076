-- The processing queue of a RAG application: what is made searchable, one row a file or page.
-- Here a higher priority comes first.

CREATE OR REPLACE VIEW rag.processing_jobs WITH (security_invoker = true) AS
SELECT
    queue.uuid_of(t.id) AS id,
    (t.payload ->> 'application_id')::uuid AS application_id,
    (t.payload ->> 'source_id')::uuid AS knowledge_source_id,
    CASE WHEN t.kind = 'file' THEN 'file' WHEN s.kind = 'site' THEN 'crawl_page' ELSE 'url' END
        ::varchar AS type,
    x.status::varchar AS status,
    -t.priority::integer AS priority,
    t.payload,
    x.attempts::integer AS attempts,
    t.max_attempts::integer AS max_attempts,
    x.error AS last_error,
    t.created_at,
    x.started_at,
    x.finished_at AS completed_at,
    x.heartbeat_at,
    s.config AS embedding_config,
    j.member_id AS user_id
FROM (
    SELECT d.task_id,
        CASE d.status WHEN 0 THEN 'completed' WHEN 1 THEN 'failed' ELSE 'cancelled' END AS status,
        d.attempts, d.error, d.started_at, d.finished_at, NULL::timestamptz AS heartbeat_at
    FROM queue.done d
    UNION ALL
    SELECT l.task_id, 'processing' AS status, l.attempts, NULL AS error,
        e.claimed_at AS started_at, NULL AS finished_at,
        greatest(a.heartbeat_at, e.claimed_at) AS heartbeat_at
    FROM queue.leased l
    JOIN queue.lease e ON e.id = l.lease_id
    LEFT JOIN queue.agent a ON a.id = e.agent_id
    UNION ALL
    SELECT r.task_id, 'pending' AS status, r.attempts, NULL AS error, NULL AS started_at,
        NULL AS finished_at, NULL AS heartbeat_at
    FROM queue.ready r
    UNION ALL
    SELECT w.task_id, 'pending' AS status, w.attempts, NULL AS error, NULL AS started_at,
        NULL AS finished_at, NULL AS heartbeat_at
    FROM queue.waiting w
) x
JOIN queue.task t ON t.id = x.task_id
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN knowledge.source s ON s.id = (t.payload ->> 'source_id')::uuid
WHERE t.kind IN ('file', 'index')
    AND (x.status <> 'pending' OR j.status IN ('pending', 'running', 'paused'));

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
