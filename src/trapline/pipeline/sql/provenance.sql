-- name: VisitsOfTask :many
-- The visits of a task, oldest first: one for each attempt that got as far as a request.
SELECT v.id, v.uuid, v.started_at, v.took_ms, v.exit_code, v.message, v.agent_id,
       u.url::text AS "url!"
FROM archive.visit v JOIN frontier.url_text u ON u.id = v.url_id
WHERE v.job_id = sqlc.arg(job_id) AND v.task_id = sqlc.arg(task_id)
    AND v.started_at >= sqlc.arg(since)::timestamptz
ORDER BY v.started_at, v.id LIMIT sqlc.arg(most)::integer;

-- name: RequestsOfVisit :many
-- The requests of a visit with their timings.
SELECT r.number, u.url::text AS "url!", r.sent_at, r.total_ms, r.dns_ms, r.connect_ms, r.tls_ms,
       r.first_byte_ms, r.exit_code, r.status, r.remote_address, r.robots_approved
FROM archive.request r JOIN frontier.url_text u ON u.id = r.url_id
WHERE r.visit_id = sqlc.arg(visit_id) AND r.started_at = sqlc.arg(started_at)
ORDER BY r.number;

-- name: RedirectsOfVisit :many
-- The redirects of a visit.
SELECT r.number, a.url::text AS "from_url!", b.url::text AS "to_url!", r.is_permanent, r.by_security_policy
FROM archive.redirect r
JOIN frontier.url_text a ON a.id = r.url_id
JOIN frontier.url_text b ON b.id = r.to_url_id
WHERE r.visit_id = sqlc.arg(visit_id) AND r.started_at = sqlc.arg(started_at)
ORDER BY r.number;

-- name: HeadersOfVisit :one
-- The response headers and the size of the body that a visit brought.
SELECT f.headers, f.size, f.charset, m.name AS media_type
FROM archive.file f JOIN archive.mimetype m ON m.id = f.mimetype_id
WHERE f.visit_id = sqlc.arg(visit_id) AND f.started_at = sqlc.arg(started_at)
LIMIT 1;

-- name: PagesLinkingTo :many
-- Pages of a site whose latest versions link to a URL: of so many that changed last.
SELECT few.id AS page_id, u.url::text AS "url!", left(v.title, 300)::text AS "title?"
FROM (
    SELECT p.id, p.url_id, p.version_id FROM store.page p
    WHERE p.site_id = sqlc.arg(site_id) AND p.gone_at IS NULL AND p.version_id IS NOT NULL
    ORDER BY (CASE WHEN p.changed_at IS NULL THEN p.first_seen_at ELSE p.changed_at END) DESC, p.id DESC
    LIMIT sqlc.arg(among)::integer
) few
JOIN store.version v ON v.id = few.version_id
JOIN frontier.url_text u ON u.id = few.url_id
WHERE v.links @> jsonb_build_array(sqlc.arg(url)::text) AND u.url <> sqlc.arg(url)::text
LIMIT sqlc.arg(most)::integer;

-- name: PagesOfUrls :many
-- The pages of a site that have these URLs.
SELECT u.url::text AS "url!", p.id AS page_id, p.gone_at
FROM frontier.url x
JOIN store.page p ON p.url_id = x.id AND p.site_id = sqlc.arg(site_id)
JOIN frontier.url_text u ON u.id = x.id
WHERE x.organisation_id = sqlc.arg(organisation_id) AND x.hash = ANY (sqlc.arg(url_hashes)::bytea[]);
