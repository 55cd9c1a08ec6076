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
    j.id_text::text AS id,
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
-- The few tasks that are no pages. A scrape has none. Who does not ask for them does not count them.
LEFT JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(d.task_id) AS ended,
        count(*) FILTER (WHERE d.status = 0) AS completed,
        count(*) FILTER (WHERE d.status = 1) AS failed
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE j.kind <> 'scrape' AND t.job_id = j.id AND NOT t.counted
) u ON true
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
    (p.task).id::text AS id,
    (p.job).id_text::text AS job_id,
    bee.domain_of((p.task).organisation_id, (p.task).payload ->> 'url') AS domain_id,
    bee.page_of((p.task).organisation_id, (p.task).payload ->> 'url') AS page_id,
    CASE p.state WHEN 'queued' THEN 'pending' ELSE p.state END AS status,
    CASE (p.task).source WHEN 1 THEN 'link' WHEN 2 THEN 'sitemap' ELSE 'manual' END AS source_type,
    (p.task).payload ->> 'found_on' AS source_url,
    (p.task).created_at AS created_at,
    p.started_at,
    p.finished_at AS completed_at,
    (p.result ->> 'status')::integer AS status_code,
    bee.response_time((p.task).job_id, (p.result ->> 'visit_id')::bigint) AS response_time,
    bee.cache_status((p.task).job_id, (p.result ->> 'visit_id')::bigint) AS cache_status,
    bee.content_type((p.task).job_id, (p.result ->> 'visit_id')::bigint) AS content_type,
    p.error,
    greatest(p.attempts - 1, 0) AS retry_count,
    -- The homepage has 1; see trapline.frontier.priority.
    ((1000 - (p.task).priority) / 1000.0)::real AS priority_score
FROM queue.place p
WHERE (p.task).kind = 'single_urls';

CREATE OR REPLACE VIEW bee.users WITH (security_invoker = true) AS
SELECT m.id::text AS id, m.email, m.full_name, m.organisation_id::text AS organisation_id,
    m.created_at, m.updated_at
FROM tenancy.member m;

CREATE OR REPLACE VIEW bee.organisations WITH (security_invoker = true) AS
SELECT o.id::text AS id, o.name, o.created_at, o.updated_at FROM tenancy.organisation o;
