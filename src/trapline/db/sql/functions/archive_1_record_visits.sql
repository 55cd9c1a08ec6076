-- Insert finished visits with their requests, redirects and files; return their ids in order.
CREATE OR REPLACE FUNCTION archive.record_visits(
    p_visits archive.new_visit[], p_requests archive.new_request[],
    p_redirects archive.new_redirect[], p_files archive.new_file[]
) RETURNS bigint[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT nextval('archive.visit_id_seq') FROM generate_series(1, cardinality(p_visits)));
BEGIN
    INSERT INTO archive.visit (
        id, organisation_id, uuid, agent_id, job_id, task_id, site_id, url_id, crawl_type,
        started_at, took_ms, exit_code, message)
    OVERRIDING SYSTEM VALUE
    SELECT ids[v.position], v.organisation_id, v.uuid, v.agent_id, v.job_id, v.task_id, v.site_id,
           v.url_id, v.crawl_type, v.started_at, v.took_ms, v.exit_code, v.message
    FROM unnest(p_visits) WITH ORDINALITY AS v (
        organisation_id, uuid, agent_id, job_id, task_id, site_id, url_id, crawl_type, started_at,
        took_ms, exit_code, message, position);

    INSERT INTO archive.request (
        visit_id, started_at, number, organisation_id, url_id, sent_at, total_ms, dns_ms,
        connect_ms, tls_ms, first_byte_ms, robots_approved, exit_code, status, etag, last_modified,
        remote_address)
    SELECT ids[r.visit], (p_visits[r.visit]).started_at, r.number, (p_visits[r.visit]).organisation_id,
           r.url_id, r.sent_at, r.total_ms, r.dns_ms, r.connect_ms, r.tls_ms, r.first_byte_ms,
           r.robots_approved, r.exit_code, r.status, r.etag, r.last_modified, r.remote_address
    FROM unnest(p_requests) AS r;

    IF cardinality(p_redirects) > 0 THEN
        INSERT INTO archive.redirect (
            visit_id, started_at, number, organisation_id, request_number, url_id, to_url_id,
            source, is_permanent, by_security_policy, last_modified)
        SELECT ids[r.visit], (p_visits[r.visit]).started_at, r.number,
               (p_visits[r.visit]).organisation_id, r.request_number, r.url_id, r.to_url_id,
               r.source, r.is_permanent, r.by_security_policy, r.last_modified
        FROM unnest(p_redirects) AS r;
    END IF;

    IF cardinality(p_files) > 0 THEN
        INSERT INTO archive.mimetype (name)
        SELECT DISTINCT f.media_type FROM unnest(p_files) AS f
        WHERE NOT EXISTS (SELECT FROM archive.mimetype m WHERE m.name = f.media_type)
        ORDER BY f.media_type
        ON CONFLICT DO NOTHING;
        INSERT INTO archive.file (
            visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
            mimetype_id, canonical_url_id, charset, headers, sha256)
        SELECT ids[f.visit], (p_visits[f.visit]).started_at, (p_visits[f.visit]).organisation_id,
               f.request_number, f.url_id, f.last_modified, f.size, m.id, f.canonical_url_id,
               f.charset, f.headers::jsonb, f.sha256
        FROM unnest(p_files) AS f
        CROSS JOIN LATERAL (
            SELECT m.id FROM archive.mimetype m WHERE m.name = f.media_type OFFSET 0) m;
    END IF;
    RETURN ids;
END
$$;
