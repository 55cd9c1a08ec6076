-- NuQ, the queue of Firecrawl: tasks that visit pages as queue_scrape, their jobs as group_crawl.
-- Whether there is a group is a constant of each branch, as the status is in queue.place: so a query
-- that asks for one reads only that branch, by the index of its own tables.

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
CREATE OR REPLACE FUNCTION nuq.document_of(
    t queue.task, result jsonb, finished_at timestamptz, v store.version
)
RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
    'id', v.id::text,
    'url', result ->> 'url',
    'content', coalesce(v.markdown, ''),
    'markdown', v.markdown,
    'llm_extraction', result #> '{answers,json}',
    'createdAt', v.fetched_at,
    'updatedAt', finished_at,
    'type', v.page_type,
    'linksOnPage', v.links,
    'childrenLinks', jsonb_path_query_array(
        v.links, '$[*] ? (@ starts with $origin)',
        jsonb_build_object('origin', substring(result ->> 'url' FROM '^https?://[^/]+/'))),
    'provider', 'trapline',
    'warning', v.warning,
    'metadata', coalesce(v.metadata -> 'declared', '{}') || jsonb_build_object(
        'title', v.title,
        'description', v.metadata -> 'description',
        'language', v.language,
        'author', v.metadata -> 'author',
        'sourceURL', t.payload ->> 'url',
        'url', result ->> 'url',
        'statusCode', result -> 'status',
        'contentType', v.content_type
    )
));

-- The status of a place; an unknown state would show itself as null.
CREATE OR REPLACE FUNCTION nuq.status_of(state text) RETURNS nuq.job_status
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE state
    WHEN 'completed' THEN 'completed'::nuq.job_status
    -- What was skipped or cancelled has not come either, and says why.
    WHEN 'failed' THEN 'failed'::nuq.job_status WHEN 'skipped' THEN 'failed'::nuq.job_status
    WHEN 'running' THEN 'active'::nuq.job_status WHEN 'queued' THEN 'queued'::nuq.job_status
END;

CREATE OR REPLACE VIEW nuq.queue_scrape WITH (security_invoker = true) AS
-- Tasks of crawls and batches.
SELECT
    queue.uuid_of((p.task).id) AS id,
    nuq.status_of(p.state) AS status,
    (p.task).priority::integer AS priority,
    (p.task).created_at AS created_at,
    p.finished_at,
    queue.uuid_of(p.lease_id) AS lock,
    CASE WHEN p.state = 'running' THEN p.started_at END AS locked_at,
    p.stalls,
    nuq.data_of(p.task, p.job) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = (p.task).job_id LIMIT 1
    ), '{}') AS data,
    CASE WHEN p.state = 'completed' THEN nuq.document_of(p.task, p.result, p.finished_at, v) END AS returnvalue,
    p.error AS failedreason,
    (p.task).organisation_id AS owner_id,
    (p.task).job_id AS group_id,
    CASE WHEN p.state IN ('running', 'queued') THEN 'trapline_job' END AS listen_channel_id
FROM queue.place p
LEFT JOIN store.version v ON v.id = (p.result ->> 'version_id')::bigint
WHERE (p.task).kind IN ('single_urls', 'kickoff', 'kickoff_sitemap')
    AND (p.job).kind IN ('crawl', 'batch_scrape', 'ingest', 'warm')
    -- What a limit holds back is the backlog.
    AND NOT p.held
UNION ALL
-- Single scrapes, whose id is the one that their caller got.
SELECT
    (p.job).id AS id,
    nuq.status_of(p.state) AS status,
    (p.task).priority,
    (p.task).created_at AS created_at,
    p.finished_at,
    queue.uuid_of(p.lease_id) AS lock,
    CASE WHEN p.state = 'running' THEN p.started_at END AS locked_at,
    p.stalls,
    nuq.data_of(p.task, p.job) AS data,
    CASE WHEN p.state = 'completed' THEN nuq.document_of(p.task, p.result, p.finished_at, v) END AS returnvalue,
    p.error AS failedreason,
    (p.job).organisation_id AS owner_id,
    NULL AS group_id,
    CASE WHEN p.state IN ('running', 'queued') THEN 'trapline_job' END AS listen_channel_id
FROM queue.place p
LEFT JOIN store.version v ON v.id = (p.result ->> 'version_id')::bigint
WHERE (p.task).kind = 'single_urls' AND (p.job).kind = 'scrape';

-- Queued, and their job or organisation has as many in flight as it may have.
CREATE OR REPLACE VIEW nuq.queue_scrape_backlog WITH (security_invoker = true) AS
SELECT
    queue.uuid_of((p.task).id) AS id,
    nuq.data_of(p.task, p.job) || coalesce((
        SELECT nuq.webhook_of(e) FROM deliver.endpoint e WHERE e.job_id = (p.task).job_id LIMIT 1
    ), '{}') || '{"concurrencyLimited": true}' AS data,
    (p.task).created_at AS created_at,
    (p.task).priority::integer AS priority,
    'trapline_job'::text AS listen_channel_id,
    (p.task).organisation_id AS owner_id,
    (p.task).job_id AS group_id,
    p.deadline AS times_out_at
FROM queue.place p
WHERE (p.task).kind IN ('single_urls', 'kickoff', 'kickoff_sitemap') AND p.held;

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
