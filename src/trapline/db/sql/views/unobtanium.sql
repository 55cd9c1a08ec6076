-- Unobtanium: the provenance of every byte. Times are seconds since 1970, ids are numbers; the id of
-- what belongs to a visit is made of the visit's and its place there.

CREATE OR REPLACE FUNCTION unobtanium.part_of(visit bigint, number smallint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN visit * 32768 + number;

CREATE OR REPLACE FUNCTION unobtanium.seconds(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN floor(extract(epoch FROM moment))::bigint;

CREATE OR REPLACE VIEW unobtanium.url WITH (security_invoker = true) AS
SELECT u.id AS url_id, u.url FROM frontier.url_text u;

CREATE OR REPLACE VIEW unobtanium.mimetype WITH (security_invoker = true) AS
SELECT m.id AS mimetype_id, m.name AS mimetype FROM archive.mimetype m;

CREATE OR REPLACE VIEW unobtanium.agent WITH (security_invoker = true) AS
SELECT
    a.id AS agent_id,
    unobtanium.seconds(a.started_at) AS time_started_unix_utc,
    unobtanium.seconds(CASE WHEN NOT a.died THEN a.finished_at END) AS time_finished_unix_utc,
    a.uuid AS agent_uuid,
    a.name,
    a.user_agent AS http_user_agent
FROM queue.agent a;

CREATE OR REPLACE VIEW unobtanium.crawl_log WITH (security_invoker = true) AS
SELECT
    v.id AS crawl_log_id,
    v.agent_id,
    v.url_id,
    v.crawl_type::integer AS crawl_type,
    v.uuid AS crawl_uuid,
    unobtanium.seconds(v.started_at) AS time_started_unix_utc,
    v.took_ms AS time_taken_ms,
    v.exit_code::integer AS exit_code,
    v.message
FROM archive.visit v;

CREATE OR REPLACE VIEW unobtanium.request WITH (security_invoker = true) AS
SELECT
    unobtanium.part_of(r.visit_id, r.number) AS request_id,
    r.visit_id AS crawl_log_id,
    r.url_id,
    unobtanium.seconds(r.sent_at) AS time_sent_unix_utc,
    round(r.total_ms)::integer AS request_duration_ms,
    r.robots_approved AS robotstxt_approved,
    r.exit_code::integer AS exit_code,
    unobtanium.seconds(r.last_modified) AS server_last_modified_unix_utc,
    r.status::integer AS http_status_code,
    r.etag::varchar AS http_etag
FROM archive.request r;

CREATE OR REPLACE VIEW unobtanium.file WITH (security_invoker = true) AS
SELECT
    f.visit_id AS file_id,
    f.visit_id AS crawl_log_id,
    unobtanium.part_of(f.visit_id, f.request_number) AS request_id,
    f.url_id,
    unobtanium.seconds(f.last_modified) AS last_modified_unix_utc,
    f.size AS file_size,
    f.mimetype_id,
    f.canonical_url_id
FROM archive.file f;

-- The text that was read from the file. Its own bytes are compressed, in store.blob.
CREATE OR REPLACE VIEW unobtanium.file_text WITH (security_invoker = true) AS
SELECT f.visit_id AS file_id, v.text
FROM archive.file f
JOIN LATERAL (
    SELECT s.markdown AS text FROM store.version s
    WHERE s.sha256 = f.sha256 AND s.organisation_id = f.organisation_id
    ORDER BY s.id LIMIT 1
) v ON true;

CREATE OR REPLACE VIEW unobtanium.redirect WITH (security_invoker = true) AS
SELECT
    unobtanium.part_of(r.visit_id, r.number) AS redirect_id,
    r.visit_id AS crawl_log_id,
    unobtanium.part_of(r.visit_id, r.request_number) AS request_id,
    r.url_id,
    unobtanium.seconds(r.last_modified) AS last_modified_unix_utc,
    r.to_url_id,
    r.source::integer AS information_source,
    r.is_permanent,
    r.by_security_policy
FROM archive.redirect r;

CREATE OR REPLACE VIEW unobtanium.crawl_candidate WITH (security_invoker = true) AS
SELECT
    c.url_id,
    unobtanium.seconds(c.last_visit_at) AS last_crawl_time_unix_utc,
    c.last_exit_code::integer AS last_crawl_exit_code,
    unobtanium.seconds(c.last_contentful_at) AS last_contentful_crawl_time_unix_utc,
    c.last_etag AS last_contentful_http_etag
FROM frontier.candidate c;
