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
    site_id, url_id, organisation_id, last_visit_at, last_exit_code,
    last_contentful_at, last_etag, last_modified, visits, changes, gone, due_at
)
SELECT
    site_id, url_id, organisation_id, visited_at, exit_code,
    CASE WHEN contentful THEN visited_at END, etag, last_modified,
    1, changed::int, gone::int, due_at
FROM unnest(
    sqlc.arg(site_ids)::uuid[],
    sqlc.arg(url_ids)::bigint[],
    sqlc.arg(organisation_ids)::uuid[],
    sqlc.arg(visited_ats)::timestamptz[],
    sqlc.arg(exit_codes)::smallint[],
    sqlc.arg(contentfuls)::boolean[],
    sqlc.narg(etags)::text[],
    sqlc.narg(last_modifieds)::timestamptz[],
    sqlc.arg(changeds)::boolean[],
    sqlc.arg(gones)::boolean[],
    sqlc.narg(due_ats)::timestamptz[]
) AS new (
    site_id, url_id, organisation_id, visited_at, exit_code, contentful,
    etag, last_modified, changed, gone, due_at
)
ORDER BY site_id, url_id
ON CONFLICT (site_id, url_id) DO UPDATE SET
    last_visit_at = excluded.last_visit_at,
    last_exit_code = excluded.last_exit_code,
    last_contentful_at = coalesce(excluded.last_contentful_at, c.last_contentful_at),
    last_etag = CASE WHEN excluded.last_contentful_at IS NULL THEN c.last_etag ELSE excluded.last_etag END,
    last_modified = CASE
        WHEN excluded.last_contentful_at IS NULL THEN c.last_modified ELSE excluded.last_modified
    END,
    visits = c.visits + 1,
    changes = c.changes + excluded.changes,
    gone = CASE WHEN excluded.gone = 0 THEN 0 ELSE c.gone + 1 END,
    due_at = excluded.due_at;

-- name: FindCandidates :many
-- What is known of URLs in a site, for conditional requests and recrawl.
SELECT c.*, u.hash
FROM frontier.url u
JOIN frontier.candidate c ON c.url_id = u.id
WHERE u.organisation_id = sqlc.arg(organisation_id)
  AND u.hash = ANY (sqlc.arg(hashes)::bytea[])
  AND c.site_id = sqlc.arg(site_id);
