-- name: recent completed scrapes
SELECT
  id,
  created_at,
  finished_at,
  data->>'url' as url,
  data->>'team_id' as team_id,
  returnvalue->'metadata'->>'title' as title,
  LENGTH(returnvalue->>'content') as content_length,
  status
FROM nuq.queue_scrape
WHERE status = 'completed'
  AND created_at > NOW() - INTERVAL '1 hour'
  AND group_id IS NULL  -- exclude crawl jobs
ORDER BY created_at DESC
LIMIT 100;

-- name: crawl results by group
SELECT
  id,
  data->>'url' as url,
  returnvalue->'metadata'->>'title' as title,
  returnvalue->>'markdown' as markdown,
  finished_at
FROM nuq.queue_scrape
WHERE group_id = '<crawl_uuid>'
  AND status = 'completed'
  AND (data->>'mode') = 'single_urls'
ORDER BY finished_at ASC, created_at ASC;

-- name: failed jobs
SELECT
  id,
  data->>'url' as url,
  failedreason,
  stalls,
  created_at,
  finished_at
FROM nuq.queue_scrape
WHERE status = 'failed'
  AND created_at > NOW() - INTERVAL '6 hours'
ORDER BY created_at DESC;

-- name: session metrics
SELECT
  job_id,
  operation_type,
  base_url,
  total_urls,
  completed_urls,
  failed_urls,
  duration_ms,
  total_embedding_ms,
  total_qdrant_ms,
  status,
  started_at,
  completed_at
FROM webhook.crawl_sessions
WHERE started_at > NOW() - INTERVAL '24 hours'
ORDER BY started_at DESC;

-- name: jobs with sessions
SELECT
  qs.id,
  qs.data->>'url' as url,
  qs.status as job_status,
  cs.job_id,
  cs.operation_type,
  cs.total_urls,
  cs.completed_urls,
  cs.duration_ms
FROM nuq.queue_scrape qs
LEFT JOIN webhook.crawl_sessions cs ON cs.job_id = qs.group_id::text
WHERE qs.group_id IS NOT NULL
  AND qs.created_at > NOW() - INTERVAL '1 hour';
