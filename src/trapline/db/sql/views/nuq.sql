-- NuQ, the queue of Firecrawl: tasks that visit pages as queue_scrape, their jobs as group_crawl.
-- A status, and whether there is a group, is a constant of each branch: so a query that asks for one
-- reads only that branch, by the index of its own tables.

DO $$
BEGIN
    IF to_regtype('nuq.job_status') IS NULL THEN
        CREATE TYPE nuq.job_status AS ENUM ('queued', 'active', 'completed', 'failed');
        CREATE TYPE nuq.group_status AS ENUM ('active', 'completed', 'cancelled');
    END IF;
END
$$;

-- What was asked for, in the words of NuQ. Headers of a webhook are left out: they carry secrets.
CREATE OR REPLACE FUNCTION nuq.data_of(t queue.task, j queue.job) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
    'mode', t.kind,
    'team_id', t.organisation_id,
    'url', t.payload ->> 'url',
    'sitemapUrl', CASE t.kind WHEN 'kickoff_sitemap' THEN t.payload ->> 'url' END,
    'location', CASE t.kind WHEN 'kickoff_sitemap' THEN t.payload ->> 'url' END,
    'scrapeOptions',
    coalesce(j.metadata #> '{firecrawl,options,scrapeOptions}', j.options -> 'scrape', '{}'),
    'crawlerOptions',
    CASE WHEN j.kind <> 'scrape' THEN
        coalesce(j.metadata #> '{firecrawl,options}', j.options, '{}') - 'scrapeOptions' - 'scrape'
    END,
    'internalOptions', jsonb_build_object('teamId', t.organisation_id),
    'origin', coalesce(j.metadata ->> 'origin', 'api'),
    'crawl_id', CASE WHEN j.kind <> 'scrape' THEN j.id END,
    'sitemapped', CASE WHEN t.kind = 'single_urls' THEN t.source = 2 END,
    'v1', true,
    'is_scrape', j.kind = 'scrape',
    'zeroDataRetention', j.zero_data_retention,
    'traceContext',
    CASE WHEN coalesce(t.trace_id, j.trace_id) IS NOT NULL THEN
        jsonb_build_object('traceId', coalesce(t.trace_id, j.trace_id))
    END
)) || jsonb_build_object('apiKeyId', j.metadata -> 'api_key');

CREATE OR REPLACE FUNCTION nuq.webhook_of(e deliver.endpoint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_build_object('webhook', jsonb_build_object(
    'url', e.url, 'events', to_jsonb(e.events), 'metadata', e.metadata));

-- What was found, in the words of NuQ. Bytes are not in it: they are compressed, in store.blob.
CREATE OR REPLACE FUNCTION nuq.document_of(t queue.task, d queue.done, v store.version)
RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
    'id', v.id::text,
    'url', d.result ->> 'url',
    'content', coalesce(v.markdown, ''),
    'markdown', v.markdown,
    'llm_extraction', d.result #> '{answers,json}',
    'createdAt', v.fetched_at,
    'updatedAt', d.finished_at,
    'type', v.page_type,
    'linksOnPage', v.links,
    'childrenLinks', jsonb_path_query_array(
        v.links, '$[*] ? (@ starts with $origin)',
        jsonb_build_object('origin', substring(d.result ->> 'url' FROM '^https?://[^/]+/'))),
    'provider', 'trapline',
    'warning', v.warning,
    'metadata', coalesce(v.metadata -> 'declared', '{}') || jsonb_build_object(
        'title', v.title,
        'description', v.metadata -> 'description',
        'language', v.language,
        'author', v.metadata -> 'author',
        'sourceURL', t.payload ->> 'url',
        'url', d.result ->> 'url',
        'statusCode', d.result -> 'status',
        'contentType', v.content_type
    )
));

CREATE OR REPLACE VIEW nuq.queue_scrape WITH (security_invoker = true) AS
-- Pages of a crawl or batch that came.
SELECT
    queue.uuid_of(t.id) AS id,
    'completed'::nuq.job_status AS status,
    t.priority::integer AS priority,
    t.created_at,
    d.finished_at,
    NULL::uuid AS lock,
    NULL::timestamptz AS locked_at,
    d.stalls::integer AS stalls,
    nuq.data_of(t, j) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = t.job_id LIMIT 1), '{}') AS data,
    nuq.document_of(t, d, v) AS returnvalue,
    NULL::text AS failedreason,
    t.organisation_id AS owner_id,
    t.job_id AS group_id,
    NULL::text AS listen_channel_id
FROM queue.task t
JOIN queue.done d ON d.task_id = t.id
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
WHERE d.status = 0 AND t.kind IN ('single_urls', 'kickoff', 'kickoff_sitemap')
    AND j.kind IN ('crawl', 'batch_scrape', 'ingest', 'warm')
UNION ALL
-- Single scrapes, whose id is the one that their caller got.
SELECT
    j.id,
    'completed' AS status,
    t.priority,
    j.created_at,
    d.finished_at,
    NULL AS lock,
    NULL AS locked_at,
    d.stalls,
    nuq.data_of(t, j) AS data,
    nuq.document_of(t, d, v) AS returnvalue,
    NULL AS failedreason,
    j.organisation_id AS owner_id,
    NULL AS group_id,
    NULL AS listen_channel_id
FROM queue.job j
JOIN queue.task t ON t.job_id = j.id
JOIN queue.done d ON d.task_id = t.id
LEFT JOIN store.version v ON v.id = (d.result ->> 'version_id')::bigint
WHERE d.status = 0 AND t.kind = 'single_urls' AND j.kind = 'scrape'
UNION ALL
-- What failed, was skipped or was cancelled, always with a reason.
SELECT
    queue.uuid_of(t.id) AS id,
    'failed' AS status,
    t.priority,
    t.created_at,
    d.finished_at,
    NULL AS lock,
    NULL AS locked_at,
    d.stalls,
    nuq.data_of(t, j) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = t.job_id LIMIT 1), '{}') AS data,
    NULL AS returnvalue,
    coalesce(d.error, CASE d.status WHEN 2 THEN 'skipped' ELSE 'cancelled' END) AS failedreason,
    t.organisation_id AS owner_id,
    t.job_id AS group_id,
    NULL AS listen_channel_id
FROM queue.done d
JOIN queue.task t ON t.id = d.task_id
JOIN queue.job j ON j.id = t.job_id
WHERE d.status <> 0 AND t.kind IN ('single_urls', 'kickoff', 'kickoff_sitemap')
    AND j.kind IN ('crawl', 'batch_scrape', 'ingest', 'warm')
UNION ALL
SELECT
    j.id,
    'failed' AS status,
    t.priority,
    j.created_at,
    d.finished_at,
    NULL AS lock,
    NULL AS locked_at,
    d.stalls,
    nuq.data_of(t, j) AS data,
    NULL AS returnvalue,
    coalesce(d.error, CASE d.status WHEN 2 THEN 'skipped' ELSE 'cancelled' END) AS failedreason,
    j.organisation_id AS owner_id,
    NULL AS group_id,
    NULL AS listen_channel_id
FROM queue.done d
JOIN queue.task t ON t.id = d.task_id
JOIN queue.job j ON j.id = t.job_id
WHERE d.status <> 0 AND t.kind = 'single_urls' AND j.kind = 'scrape'
UNION ALL
-- What runs.
SELECT
    queue.uuid_of(t.id) AS id,
    'active' AS status,
    t.priority,
    t.created_at,
    NULL AS finished_at,
    queue.uuid_of(l.id) AS lock,
    l.claimed_at AS locked_at,
    x.stalls,
    nuq.data_of(t, j) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = t.job_id LIMIT 1), '{}') AS data,
    NULL AS returnvalue,
    NULL AS failedreason,
    t.organisation_id AS owner_id,
    t.job_id AS group_id,
    'trapline_job' AS listen_channel_id
FROM queue.leased x
JOIN queue.lease l ON l.id = x.lease_id
JOIN queue.task t ON t.id = x.task_id
JOIN queue.job j ON j.id = t.job_id
WHERE t.kind IN ('single_urls', 'kickoff', 'kickoff_sitemap')
    AND j.kind IN ('crawl', 'batch_scrape', 'ingest', 'warm')
UNION ALL
SELECT
    j.id,
    'active' AS status,
    t.priority,
    j.created_at,
    NULL AS finished_at,
    queue.uuid_of(l.id) AS lock,
    l.claimed_at AS locked_at,
    x.stalls,
    nuq.data_of(t, j) AS data,
    NULL AS returnvalue,
    NULL AS failedreason,
    j.organisation_id AS owner_id,
    NULL AS group_id,
    'trapline_job' AS listen_channel_id
FROM queue.leased x
JOIN queue.lease l ON l.id = x.lease_id
JOIN queue.task t ON t.id = x.task_id
JOIN queue.job j ON j.id = t.job_id
WHERE t.kind = 'single_urls' AND j.kind = 'scrape'
UNION ALL
-- What waits, but for what is held back by a limit: that is the backlog.
SELECT
    queue.uuid_of(t.id) AS id,
    'queued' AS status,
    t.priority,
    t.created_at,
    NULL AS finished_at,
    NULL AS lock,
    NULL AS locked_at,
    w.stalls,
    nuq.data_of(t, j) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = t.job_id LIMIT 1), '{}') AS data,
    NULL AS returnvalue,
    NULL AS failedreason,
    t.organisation_id AS owner_id,
    t.job_id AS group_id,
    'trapline_job' AS listen_channel_id
FROM (
    SELECT r.task_id, r.stalls FROM queue.ready r
    UNION ALL SELECT w.task_id, w.stalls FROM queue.waiting w
) w
JOIN queue.task t ON t.id = w.task_id
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN queue.quota q ON q.organisation_id = t.organisation_id
LEFT JOIN tenancy.organisation o ON o.id = t.organisation_id
WHERE t.kind IN ('single_urls', 'kickoff', 'kickoff_sitemap')
    AND j.kind IN ('crawl', 'batch_scrape', 'ingest', 'warm')
    AND j.status IN ('pending', 'running', 'paused')
    AND NOT coalesce(j.active >= j.max_active, false)
    AND NOT coalesce(q.active >= o.max_concurrency, false)
UNION ALL
SELECT
    j.id,
    'queued' AS status,
    t.priority,
    j.created_at,
    NULL AS finished_at,
    NULL AS lock,
    NULL AS locked_at,
    w.stalls,
    nuq.data_of(t, j) AS data,
    NULL AS returnvalue,
    NULL AS failedreason,
    j.organisation_id AS owner_id,
    NULL AS group_id,
    'trapline_job' AS listen_channel_id
FROM (
    SELECT r.task_id, r.stalls FROM queue.ready r
    UNION ALL SELECT w.task_id, w.stalls FROM queue.waiting w
) w
JOIN queue.task t ON t.id = w.task_id
JOIN queue.job j ON j.id = t.job_id
WHERE t.kind = 'single_urls' AND j.kind = 'scrape'
    AND j.status IN ('pending', 'running', 'paused');

-- Queued, and their job or organisation has as many in flight as it may have.
CREATE OR REPLACE VIEW nuq.queue_scrape_backlog WITH (security_invoker = true) AS
SELECT
    queue.uuid_of(t.id) AS id,
    nuq.data_of(t, j) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = t.job_id LIMIT 1), '{}') || '{"concurrencyLimited": true}' AS data,
    t.created_at,
    t.priority::integer AS priority,
    'trapline_job'::text AS listen_channel_id,
    t.organisation_id AS owner_id,
    t.job_id AS group_id,
    w.deadline AS times_out_at
FROM (
    SELECT r.task_id, r.deadline FROM queue.ready r
    UNION ALL SELECT w.task_id, w.deadline FROM queue.waiting w
) w
JOIN queue.task t ON t.id = w.task_id
JOIN queue.job j ON j.id = t.job_id
LEFT JOIN queue.quota q ON q.organisation_id = t.organisation_id
LEFT JOIN tenancy.organisation o ON o.id = t.organisation_id
WHERE t.kind IN ('single_urls', 'kickoff', 'kickoff_sitemap')
    AND j.status IN ('pending', 'running', 'paused')
    AND (j.active >= j.max_active OR q.active >= o.max_concurrency);

CREATE OR REPLACE VIEW nuq.group_crawl WITH (security_invoker = true) AS
SELECT
    j.id,
    CASE j.status
        WHEN 'completed' THEN 'completed' WHEN 'failed' THEN 'completed'
        WHEN 'cancelled' THEN 'cancelled' ELSE 'active'
    END::nuq.group_status AS status,
    j.created_at,
    j.organisation_id AS owner_id,
    (extract(epoch FROM j.ttl) * 1000)::bigint AS ttl,
    j.expires_at
FROM queue.job j
WHERE j.kind IN ('crawl', 'batch_scrape', 'ingest', 'warm') AND NOT j.standing;

-- One row for each group that has ended; it is told of in the transaction that ends it.
CREATE OR REPLACE VIEW nuq.queue_crawl_finished WITH (security_invoker = true) AS
SELECT
    j.id,
    'completed'::nuq.job_status AS status,
    j.priority::integer AS priority,
    j.finished_at AS created_at,
    j.finished_at,
    NULL::uuid AS lock,
    NULL::timestamptz AS locked_at,
    0 AS stalls,
    jsonb_build_object('mode', 'crawl_finished', 'team_id', j.organisation_id, 'crawl_id', j.id,
                       'url', j.options -> 'url') AS data,
    jsonb_build_object('status', j.status, 'total', j.total, 'completed', j.completed,
                       'failed', j.failed, 'skipped', j.skipped,
                       'cancelled', j.cancelled) AS returnvalue,
    j.error AS failedreason,
    j.organisation_id AS owner_id,
    j.id AS group_id,
    'trapline_job'::text AS listen_channel_id
FROM queue.job j
WHERE j.kind IN ('crawl', 'batch_scrape', 'ingest', 'warm') AND NOT j.standing
    AND j.status IN ('completed', 'failed', 'cancelled');
