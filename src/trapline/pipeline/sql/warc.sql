-- name: VisitsOfJob :many
-- returns: ExportedVisit
-- Visits of a job with their files, after an id.
SELECT
    v.id, v.uuid, v.job_id, v.started_at, v.took_ms, v.exit_code, v.message,
    u.url::text AS "url!", a.name AS "agent?", a.user_agent AS "user_agent?",
    fu.url::text AS "file_url?", m.name AS "media_type?", f.headers AS "headers?",
    f.request_number AS "file_request?", f.sha256 AS "sha256?"
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
LEFT JOIN queue.agent a ON a.id = v.agent_id
LEFT JOIN archive.file f ON f.started_at = v.started_at AND f.visit_id = v.id
LEFT JOIN frontier.url_text fu ON fu.id = f.url_id
LEFT JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE v.job_id = sqlc.arg(job_id) AND v.id > sqlc.arg(after)::bigint
ORDER BY v.id
LIMIT sqlc.arg(most)::integer;

-- name: VisitsInOrder :many
-- returns: ExportedVisit
-- All visits, or those of a site, after a key in the order of time.
SELECT
    v.id, v.uuid, v.job_id, v.started_at, v.took_ms, v.exit_code, v.message,
    u.url::text AS "url!", a.name AS "agent?", a.user_agent AS "user_agent?",
    fu.url::text AS "file_url?", m.name AS "media_type?", f.headers AS "headers?",
    f.request_number AS "file_request?", f.sha256 AS "sha256?"
FROM archive.visit v
JOIN frontier.url_text u ON u.id = v.url_id
LEFT JOIN queue.agent a ON a.id = v.agent_id
LEFT JOIN archive.file f ON f.started_at = v.started_at AND f.visit_id = v.id
LEFT JOIN frontier.url_text fu ON fu.id = f.url_id
LEFT JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE (sqlc.narg(site_id)::uuid IS NULL OR v.site_id = sqlc.narg(site_id))
  AND (v.started_at, v.id) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after)::bigint)
ORDER BY v.started_at, v.id
LIMIT sqlc.arg(most)::integer;

-- name: RequestsOf :many
-- The requests of visits, each with the target of its redirect.
SELECT
    r.visit_id, r.number, r.sent_at, r.total_ms, r.dns_ms, r.connect_ms, r.tls_ms, r.first_byte_ms,
    r.robots_approved, r.exit_code, r.status, r.etag, r.last_modified, r.remote_address,
    u.url::text AS "url!", t.url::text AS "redirected_to?"
FROM unnest(sqlc.arg(started_ats)::timestamptz[], sqlc.arg(visit_ids)::bigint[])
    AS wanted (started_at, visit_id)
JOIN archive.request r USING (started_at, visit_id)
JOIN frontier.url_text u ON u.id = r.url_id
LEFT JOIN archive.redirect d
    ON d.started_at = r.started_at AND d.visit_id = r.visit_id AND d.request_number = r.number
   AND d.source = 1
LEFT JOIN frontier.url_text t ON t.id = d.to_url_id
ORDER BY r.visit_id, r.number;

-- name: SeenSince :many
-- Pages that were seen after these times: an older capture must not replace them.
SELECT p.site_id, p.url_id
FROM unnest(
    sqlc.arg(site_ids)::uuid[], sqlc.arg(url_ids)::bigint[], sqlc.arg(ats)::timestamptz[]
) AS imported (site_id, url_id, at)
JOIN store.page p USING (site_id, url_id)
WHERE p.last_seen_at > imported.at;

-- name: SiteNamed :one
-- The site with this id, name or base URL.
SELECT id FROM store.site
WHERE id::text = sqlc.arg(named) OR name_key = lower(sqlc.arg(named)) OR base_url = sqlc.arg(named)
ORDER BY implicit, variant
LIMIT 1;
