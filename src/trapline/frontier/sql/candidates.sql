-- name: DiscoverCandidates :exec
-- Note URLs as places to go; those that are known stay as they are.
INSERT INTO frontier.candidate (site_id, url_id, organisation_id)
SELECT DISTINCT site_id, url_id, organisation_id
FROM unnest(
    sqlc.arg(site_ids)::uuid[], sqlc.arg(url_ids)::bigint[], sqlc.arg(organisation_ids)::uuid[]
) AS new (site_id, url_id, organisation_id)
ORDER BY site_id, url_id
ON CONFLICT DO NOTHING;

-- name: VisitCandidates :exec
-- Note what visits learnt. A contentful one replaces the validators, any other keeps them.
INSERT INTO frontier.candidate AS c (
    site_id, url_id, organisation_id, last_visit_at, last_exit_code, last_contentful_at,
    last_etag, last_modified, looks, changes, seconds, failures, due_at
)
SELECT
    site_id, url_id, organisation_id, visited_at, exit_code, contentful_at,
    etag, last_modified, looks, changes, seconds, failures, due_at
FROM unnest(
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(visited_ats)::timestamptz[],
    sqlc.arg(exit_codes)::smallint[],
    sqlc.narg(contentful_ats)::timestamptz[],
    sqlc.narg(etags)::text[],
    sqlc.narg(last_modifieds)::timestamptz[],
    sqlc.arg(looks)::double precision[],
    sqlc.arg(changes)::double precision[],
    sqlc.arg(seconds)::double precision[],
    sqlc.arg(failures)::integer[],
    sqlc.narg(due_ats)::timestamptz[]
) AS new (
    site_id, url_id, organisation_id, visited_at, exit_code, contentful_at,
    etag, last_modified, looks, changes, seconds, failures, due_at
)
ORDER BY site_id, url_id
ON CONFLICT (site_id, url_id) DO UPDATE SET
    last_visit_at = excluded.last_visit_at,
    last_exit_code = excluded.last_exit_code,
    last_contentful_at = coalesce(excluded.last_contentful_at, c.last_contentful_at),
    last_etag = CASE
        WHEN excluded.last_contentful_at IS NULL THEN c.last_etag ELSE excluded.last_etag
    END,
    last_modified = CASE
        WHEN excluded.last_contentful_at IS NULL THEN c.last_modified ELSE excluded.last_modified
    END,
    looks = excluded.looks,
    changes = excluded.changes,
    seconds = excluded.seconds,
    failures = excluded.failures,
    due_at = excluded.due_at;

-- name: PurgeCandidates :one
-- Delete some candidates of a site that is no more.
WITH gone AS (
    DELETE FROM frontier.candidate WHERE (site_id, url_id) IN (
        SELECT c.site_id, c.url_id FROM frontier.candidate c WHERE c.site_id = sqlc.arg(site_id)
        LIMIT sqlc.arg(most)::integer
    ) RETURNING url_id
)
SELECT count(*) AS candidates FROM gone;
