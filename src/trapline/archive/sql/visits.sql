-- name: InternMimetypes :exec
-- Make sure that every media type has its row.
INSERT INTO archive.mimetype (name)
SELECT DISTINCT name FROM unnest(sqlc.arg(names)::text[]) AS name
ORDER BY name
ON CONFLICT DO NOTHING;

-- name: FindMimetypes :many
-- The ids of media types.
SELECT id, name FROM archive.mimetype WHERE name = ANY (sqlc.arg(names)::text[]);

-- name: AddVisits :many
-- Write finished visits; the uuid tells which id belongs to which.
INSERT INTO archive.visit (
    organisation_id, uuid, agent_id, job_id, task_id, site_id, url_id,
    crawl_type, started_at, took_ms, exit_code, message
)
SELECT *
FROM unnest(
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(uuids)::uuid[],
    sqlc.narg(agent_ids)::bigint[],
    sqlc.narg(job_ids)::uuid[],
    sqlc.narg(task_ids)::bigint[],
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(crawl_types)::smallint[],
    sqlc.arg(started_ats)::timestamptz[],
    sqlc.arg(took_mss)::integer[],
    sqlc.arg(exit_codes)::smallint[],
    sqlc.narg(messages)::text[]
)
RETURNING id, uuid;

-- name: AddRequests :exec
-- Write the requests of visits.
INSERT INTO archive.request (
    visit_id, started_at, number, organisation_id, url_id, sent_at, total_ms, dns_ms, connect_ms,
    tls_ms, first_byte_ms, robots_approved, exit_code, status, etag, last_modified, remote_address
)
SELECT *
FROM unnest(
    sqlc.arg(visit_ids)::bigint[],
    sqlc.arg(started_ats)::timestamptz[],
    sqlc.arg(numbers)::smallint[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(sent_ats)::timestamptz[],
    sqlc.narg(total_mss)::real[],
    sqlc.narg(dns_mss)::real[],
    sqlc.narg(connect_mss)::real[],
    sqlc.narg(tls_mss)::real[],
    sqlc.narg(first_byte_mss)::real[],
    sqlc.arg(robots_approveds)::boolean[],
    sqlc.arg(exit_codes)::smallint[],
    sqlc.narg(statuses)::smallint[],
    sqlc.narg(etags)::text[],
    sqlc.narg(last_modifieds)::timestamptz[],
    sqlc.narg(remote_addresses)::text[]
);

-- name: AddRedirects :exec
-- Write the redirects that visits met.
INSERT INTO archive.redirect (
    visit_id, started_at, number, organisation_id, request_number, url_id, to_url_id, source,
    is_permanent, by_security_policy, last_modified
)
SELECT *
FROM unnest(
    sqlc.arg(visit_ids)::bigint[],
    sqlc.arg(started_ats)::timestamptz[],
    sqlc.arg(numbers)::smallint[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.narg(request_numbers)::smallint[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(to_url_ids)::bigint[],
    sqlc.arg(sources)::smallint[],
    sqlc.arg(permanents)::boolean[],
    sqlc.arg(security_policies)::boolean[],
    sqlc.narg(last_modifieds)::timestamptz[]
);

-- name: AddFiles :exec
-- Write the files that visits brought home.
INSERT INTO archive.file (
    visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
    mimetype_id, canonical_url_id, charset, headers, sha256
)
SELECT
    visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
    mimetype_id, canonical_url_id, charset, headers::jsonb, sha256
FROM unnest(
    sqlc.arg(visit_ids)::bigint[],
    sqlc.arg(started_ats)::timestamptz[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.narg(request_numbers)::smallint[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.narg(last_modifieds)::timestamptz[],
    sqlc.narg(sizes)::bigint[],
    sqlc.arg(mimetype_ids)::integer[],
    sqlc.narg(canonical_url_ids)::bigint[],
    sqlc.narg(charsets)::text[],
    sqlc.narg(headers)::text[],
    sqlc.narg(sha256s)::bytea[]
) AS new (
    visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
    mimetype_id, canonical_url_id, charset, headers, sha256
);

-- name: PurgeVisits :one
-- Delete some visits of a site that is no more, with all that they own.
WITH old AS (
    SELECT v.started_at, v.id FROM archive.visit v WHERE v.site_id = sqlc.arg(site_id)
    LIMIT sqlc.arg(most)::integer
),
requests AS (
    DELETE FROM archive.request r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
redirects AS (
    DELETE FROM archive.redirect r USING old
    WHERE r.started_at = old.started_at AND r.visit_id = old.id
),
files AS (
    DELETE FROM archive.file f USING old
    WHERE f.started_at = old.started_at AND f.visit_id = old.id
),
gone AS (
    DELETE FROM archive.visit v USING old
    WHERE v.started_at = old.started_at AND v.id = old.id
    RETURNING v.id
)
SELECT count(*) AS visits FROM gone;
