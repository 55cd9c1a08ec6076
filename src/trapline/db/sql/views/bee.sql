-- Blue Banded Bee: hosts as domains, URLs as pages, jobs with their counters, tasks that visit pages.
-- Its tables have no schema: put `bee` on the search path.

CREATE OR REPLACE VIEW bee.domains WITH (security_invoker = true) AS
SELECT h.id, h.name::varchar AS name, h.created_at FROM frontier.host h;

CREATE OR REPLACE VIEW bee.pages WITH (security_invoker = true) AS
SELECT u.id, u.host_id AS domain_id, u.path, u.created_at FROM frontier.url u;

-- The host of a URL, and the URL itself, as numbers; null until a visit has seen it.
CREATE OR REPLACE FUNCTION bee.domain_of(organisation uuid, url text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT h.id FROM frontier.host h
    WHERE h.organisation_id = organisation AND h.name = substring(url FROM '^https?://([^/?]+)'));

CREATE OR REPLACE FUNCTION bee.page_of(organisation uuid, url text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT u.id FROM frontier.url u
    WHERE u.organisation_id = organisation AND u.hash = sha256(convert_to(url, 'UTF8')));

CREATE OR REPLACE VIEW bee.jobs WITH (security_invoker = true) AS
SELECT
    j.id::text AS id,
    bee.domain_of(j.organisation_id, j.options ->> 'url') AS domain_id,
    j.member_id::text AS user_id,
    j.organisation_id::text AS organisation_id,
    CASE j.status WHEN 'paused' THEN 'pending' ELSE j.status END AS status,
    CASE
        WHEN j.status = 'completed' THEN 100.0
        WHEN j.total - u.total > 0 THEN
            100.0 * (j.completed + j.failed + j.skipped - u.ended) / (j.total - u.total)
        ELSE 0.0
    END::real AS progress,
    (j.total - u.total)::integer AS total_tasks,
    (j.completed - u.completed)::integer AS completed_tasks,
    (j.failed - u.failed)::integer AS failed_tasks,
    j.skipped::integer AS skipped_tasks,
    -- total_tasks = sitemap_tasks + found_tasks: what was submitted is found, too.
    (j.total - u.total - least(j.from_sitemap, j.total - u.total))::integer AS found_tasks,
    least(j.from_sitemap, j.total - u.total)::integer AS sitemap_tasks,
    j.created_at,
    j.started_at,
    j.finished_at AS completed_at,
    coalesce(j.max_active, 1) AS concurrency,
    j.kind = 'crawl' AS find_links,
    least(j.task_limit, 2147483647)::integer AS max_pages,
    nullif(j.options -> 'include', '[]')::text AS include_paths,
    nullif(j.options -> 'exclude', '[]')::text AS exclude_paths,
    j.required_workers
FROM queue.job j
-- The few tasks that are no pages. A scrape has none.
CROSS JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(d.task_id) AS ended,
        count(*) FILTER (WHERE d.status = 0) AS completed,
        count(*) FILTER (WHERE d.status = 1) AS failed
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE j.kind <> 'scrape' AND t.job_id = j.id AND NOT t.counted
) u
WHERE NOT j.standing;

-- What the last request of a visit was answered with.
CREATE OR REPLACE FUNCTION bee.response_time(job uuid, visit bigint) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT round(r.total_ms)::integer
    FROM archive.visit v
    JOIN archive.request r ON r.started_at = v.started_at AND r.visit_id = v.id
    WHERE v.job_id = job AND v.id = visit ORDER BY r.number DESC LIMIT 1);

CREATE OR REPLACE FUNCTION bee.content_type(job uuid, visit bigint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT m.name
    FROM archive.visit v
    JOIN archive.file f ON f.started_at = v.started_at AND f.visit_id = v.id
    JOIN archive.mimetype m ON m.id = f.mimetype_id
    WHERE v.job_id = job AND v.id = visit);

-- What a cache on the way said of itself.
CREATE OR REPLACE FUNCTION bee.cache_status(job uuid, visit bigint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT h.pair ->> 1
    FROM archive.visit v
    JOIN archive.file f ON f.started_at = v.started_at AND f.visit_id = v.id
    CROSS JOIN LATERAL jsonb_array_elements(f.headers) WITH ORDINALITY AS h (pair, place)
    WHERE v.job_id = job AND v.id = visit
        AND lower(h.pair ->> 0) IN ('cf-cache-status', 'x-cache', 'x-cache-status', 'cache-status')
    ORDER BY h.place LIMIT 1);

CREATE OR REPLACE VIEW bee.tasks WITH (security_invoker = true) AS
SELECT
    t.id::text AS id,
    t.job_id::text AS job_id,
    bee.domain_of(t.organisation_id, t.payload ->> 'url') AS domain_id,
    bee.page_of(t.organisation_id, t.payload ->> 'url') AS page_id,
    x.status,
    CASE t.source WHEN 1 THEN 'link' WHEN 2 THEN 'sitemap' ELSE 'manual' END AS source_type,
    t.payload ->> 'found_on' AS source_url,
    t.created_at,
    x.started_at,
    x.finished_at AS completed_at,
    x.status_code,
    bee.response_time(t.job_id, x.visit_id) AS response_time,
    bee.cache_status(t.job_id, x.visit_id) AS cache_status,
    bee.content_type(t.job_id, x.visit_id) AS content_type,
    x.error,
    greatest(x.attempts - 1, 0) AS retry_count,
    (-t.priority)::real AS priority_score
FROM (
    SELECT d.task_id, 'completed'::text AS status, d.started_at, d.finished_at,
        (d.result ->> 'status')::integer AS status_code,
        (d.result ->> 'visit_id')::bigint AS visit_id, d.error, d.attempts::integer AS attempts
    FROM queue.done d WHERE d.status = 0
    UNION ALL
    SELECT d.task_id, CASE d.status WHEN 1 THEN 'failed' ELSE 'skipped' END AS status,
        d.started_at, d.finished_at, (d.result ->> 'status')::integer AS status_code,
        (d.result ->> 'visit_id')::bigint AS visit_id,
        coalesce(d.error, CASE d.status WHEN 3 THEN 'cancelled' END) AS error, d.attempts
    FROM queue.done d WHERE d.status <> 0
    UNION ALL
    SELECT l.task_id, 'running' AS status, e.claimed_at AS started_at, NULL AS finished_at,
        NULL AS status_code, NULL AS visit_id, NULL AS error, l.attempts
    FROM queue.leased l JOIN queue.lease e ON e.id = l.lease_id
    UNION ALL
    SELECT r.task_id, 'pending' AS status, NULL AS started_at, NULL AS finished_at,
        NULL AS status_code, NULL AS visit_id, NULL AS error, r.attempts
    FROM queue.ready r
    WHERE EXISTS (SELECT FROM queue.lane l WHERE l.id = r.lane_id AND l.open)
    UNION ALL
    SELECT w.task_id, 'pending' AS status, NULL AS started_at, NULL AS finished_at,
        NULL AS status_code, NULL AS visit_id, NULL AS error, w.attempts
    FROM queue.waiting w
    WHERE EXISTS (SELECT FROM queue.lane l WHERE l.id = w.lane_id AND l.open)
) x
JOIN queue.task t ON t.id = x.task_id
WHERE t.kind = 'single_urls';

CREATE OR REPLACE VIEW bee.users WITH (security_invoker = true) AS
SELECT m.id::text AS id, m.email, m.full_name, m.organisation_id::text AS organisation_id,
    m.created_at, m.updated_at
FROM tenancy.member m;

CREATE OR REPLACE VIEW bee.organisations WITH (security_invoker = true) AS
SELECT o.id::text AS id, o.name, o.created_at, o.updated_at FROM tenancy.organisation o;
